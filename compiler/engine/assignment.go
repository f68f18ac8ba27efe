package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
)

// assignments are the assignments of a schedule and the results of building them.
type assignments struct {
	in      *Inputs
	tuples  *tuples
	emitter *emitter
	targets sync.Map    // *model.DeploymentTarget -> *targetKey
	rows    []row       // by assignment
	spill   spill       // the files of the emitted assignments
	roots   []extent    // in the spill, of the files at the roots of cluster types
	types   []typeState // by cluster type
	// requested are the quota requests by name of the workspace; it has workspaces with a quota
	// only.
	requested map[string]kubernetes.Requests
}

// row is the result of one assignment.
type row struct {
	key     cache.Key // of its emission; zero if it failed before
	summary []byte    // an emissionSummary, encoded as in the cache; nil if it failed before
	files   extent    // in the spill; the zero extent if it was not emitted
	failed  bool
	// without are the names of the CustomResourceDefinitions that the assignment leaves out,
	// because another assignment of the cluster type brings them for both.
	without map[string]bool
}

// table returns the cache table of a cluster type's emitted assignments and their tuples.
func (as *assignments) table(clusterType string) table {
	return as.in.request.Meter.table(cache.Assignment,
		as.in.request.Platform.Module+" "+as.in.Name+" "+clusterType)
}

// tableOf returns the table of an assignment's cluster type.
func (as *assignments) tableOf(assignment int) table {
	return as.table(as.in.Schedule.Assignments[assignment].ClusterType.Name)
}

// failedIn reports whether an assignment in the span failed.
func (as *assignments) failedIn(at span) bool {
	return slices.ContainsFunc(as.rows[at.first:at.next], func(r row) bool { return r.failed })
}

// putAway writes the results of a cluster type to the cache. It keeps the summaries in memory and
// releases the rest of the cache's table.
func (as *assignments) putAway(ct int) {
	table := as.table(as.in.Model.ClusterTypes[ct].Name)
	_ = table.Flush() // the cache remembers what it cannot write, which only costs time
	rows := as.rows[as.in.spans[ct].first:as.in.spans[ct].next]
	emitted := 0
	for i := range rows {
		if rows[i].files.block > 0 {
			emitted++
		}
	}
	if emitted > len(rows)/2 { // otherwise the summaries share their memory already
		for i := range rows {
			if rows[i].failed {
				continue
			}
			if summary, ok := table.Get(rows[i].key); ok {
				rows[i].summary = summary // it shares its memory with the other summaries
			}
		}
	}
	table.Release()
}

// buildClusterType makes the rows of a cluster type's assignments. It returns the objects of the
// newly emitted assignments, by assignment.
func (as *assignments) buildClusterType(ctx context.Context, s span,
	composer *compose.Composer) (map[int][]backends.Object, error) {
	if err := as.identify(ctx, s, composer); err != nil {
		return nil, err
	}
	var missing []int
	lacking := 0 // of missing: assignments without their content do not count as computed
	for i := s.first; i < s.next; i++ {
		r := &as.rows[i]
		if r.failed {
			continue
		}
		if a := &as.in.Schedule.Assignments[i]; as.in.needsContent(a) && as.emitter.lacksSource(a) {
			missing, lacking = append(missing, i), lacking+1
			continue
		}
		var ok bool
		if r.summary, ok = as.tableOf(i).Get(r.key); ok {
			if summary, good := decodeSummary(r.summary); good {
				r.failed = summary.failed
				continue
			}
		}
		missing = append(missing, i)
	}
	as.in.request.Meter.count(cache.Assignment, len(missing)-lacking, s.next-s.first-len(missing))
	objects, err := as.emit(ctx, missing)
	for i := s.first; i < s.next; i++ {
		as.tuples.release(i)
	}
	return objects, err
}

// identify computes the keys of the rows of a cluster type's assignments.
func (as *assignments) identify(ctx context.Context, s span, composer *compose.Composer) error {
	numbers := make([]int32, 0, s.next-s.first)
	for i := s.first; i < s.next; i++ {
		numbers = append(numbers, as.in.Plan.TupleOf[i])
	}
	if s.first == s.next {
		return nil
	}
	ct := as.in.Schedule.Assignments[s.first].ClusterType
	if err := as.tuples.resolve(ctx, as.table(ct.Name), numbers, composer); err != nil {
		return err
	}
	healthy := as.in.reconciler(ct) != nil
	k := &keys{hash: cache.NewHash(""), clusterType: as.in.clusterTypeFacts(ct),
		capabilities: capabilities(ct)}
	for i := s.first; i < s.next; i++ {
		a := &as.in.Schedule.Assignments[i]
		t := as.tuples.summary(i)
		r := &as.rows[i]
		if r.failed = a.Failed || as.in.Plan.Failed[i] || t.failed || !healthy; !r.failed {
			r.key = as.assignmentKey(k, i, a, t.digest)
		}
	}
	return nil
}

// emit emits assignments that have not failed so far, and caches the results.
func (as *assignments) emit(ctx context.Context, missing []int) (map[int][]backends.Object, error) {
	objects, files := map[int][]backends.Object{}, make([][]backends.File, len(missing))
	if len(missing) == 0 {
		return objects, nil
	}
	emitted, err := as.emitter.emissions(ctx, missing, as.leftOut(missing))
	if err != nil {
		return nil, err
	}
	for n, i := range missing {
		summary := emitted[n].summary
		objects[i], files[n] = emitted[n].Objects, emitted[n].Files
		r := &as.rows[i]
		r.summary, r.failed = summary.encode(), summary.failed
		if !summary.passing {
			as.tableOf(i).Put(r.key, r.summary)
		}
	}
	for n, at := range as.spill.add(files) {
		as.rows[missing[n]].files = at
	}
	return objects, nil
}

// leftOut returns the names of the definitions that assignments leave out, by assignment.
func (as *assignments) leftOut(numbers []int) map[int]map[string]bool {
	out := map[int]map[string]bool{}
	for _, i := range numbers {
		out[i] = as.rows[i].without
	}
	return out
}

// diagnostics returns the diagnostics of the backends, with the origins of the values that they
// are about. If an environment has errors, it keeps its tree and kalypso does not know where that
// tree is. In that case diagnostics leaves out the errors about a missing location of the tree.
func (as *assignments) diagnostics(ctx context.Context) ([]diag.Diagnostic, error) {
	var out []diag.Diagnostic
	for i := range as.rows {
		summary, ok := decodeSummary(as.rows[i].summary)
		if !ok || !summary.hasDiagnostics {
			continue
		}
		ds, err := summary.decodeDiagnostics()
		if err != nil {
			return nil, err
		}
		if ds, err = as.located(ctx, i, ds); err != nil {
			return nil, err
		}
		unknown := as.in.Model.Invalid[model.Ref{Collection: "environments", Name: as.in.Name}]
		for _, d := range ds {
			if d.Code == diag.NeedsGitOps && unknown {
				continue
			}
			out = append(out, d.For(as.in.id(i)))
		}
	}
	return out, nil
}

// located returns the diagnostics of an assignment with the origins of the values that they are
// about.
func (as *assignments) located(ctx context.Context, i int, ds []diag.Diagnostic) ([]diag.Diagnostic,
	error) {
	if !slices.ContainsFunc(ds, func(d diag.Diagnostic) bool { return d.Path != "" }) {
		return ds, nil
	}
	tuple := as.in.Plan.TupleOf[i]
	table := as.tableOf(i)
	key := as.in.key("located").Bytes(as.rows[i].summary).Bytes(
		as.in.Plan.Tuples[tuple].Digest[:]).Sum()
	var out []diag.Diagnostic
	if text, ok := table.Get(key); ok && json.Unmarshal(text, &out) == nil {
		return out, nil
	}
	g, err := as.tuples.graph(ctx, tuple)
	if err != nil {
		return nil, err
	}
	out = nil
	for _, d := range ds {
		out = append(out, locate(d, g))
	}
	text, err := json.Marshal(out)
	if err == nil {
		table.Put(key, text)
	}
	return out, err
}

// folder describes the folder of an emitted assignment.
func (as *assignments) folder(i int, summary emissionSummary) backends.Folder {
	a := &as.in.Schedule.Assignments[i]
	version, from := versionOf(as.in, a)
	return backends.Folder{
		DeploymentTarget: a.Target.FullName,
		Workspace:        a.Workload.Workspace,
		Workload:         a.Workload.Name,
		Namespace:        as.in.Plan.Namespaces[i],
		Version:          version,
		VersionFrom:      from,
		Orphan:           summary.orphan,
		DependsOn:        a.DependsOn,
		Wave:             a.Wave,
		Backend:          as.in.reconciler(a.ClusterType).Backend,
		Retained:         summary.retention.Kept,
		Shared:           summary.shared,
	}
}

// contents returns the files of emitted assignments. It reads them from the spill, and emits the
// assignments again that the spill does not have.
func (as *assignments) contents(ctx context.Context, numbers []int) ([][]backends.File, error) {
	held := make([]extent, len(numbers))
	for n, i := range numbers {
		held[n] = as.rows[i].files
	}
	out := as.spill.read(held)
	var missing []int
	for n, i := range numbers {
		if out[n] == nil {
			missing = append(missing, i)
		}
	}
	emitted, err := as.emitAgain(ctx, missing)
	if err != nil {
		return nil, err
	}
	for n := range numbers {
		if out[n] == nil {
			out[n], emitted = emitted[0].Files, emitted[1:]
		}
	}
	return out, nil
}

// emitAgain emits assignments again whose summaries are known and whose files are not.
func (as *assignments) emitAgain(ctx context.Context, numbers []int) ([]emission, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	emitted, err := as.emitter.emissions(ctx, numbers, as.leftOut(numbers))
	if err != nil {
		return nil, err
	}
	for n, i := range numbers {
		if summary := emitted[n].summary; summary.failed {
			// The content of its source has been removed since. Nothing else can fail only now.
			return nil, fmt.Errorf("%s was built, and cannot be built once more (%s): build again",
				as.in.id(i),
				codes(summary.diagnostics))
		}
	}
	return emitted, nil
}

// keys computes the keys of a cluster type's assignments, one after the other.
type keys struct {
	hash        *cache.Hash
	clusterType cache.Key // the facts that they all share
	// capabilities is the part of the key that only rendered charts have.
	capabilities cache.Key
	specs        []byte
}

// assignmentKey identifies all inputs of an assignment's emission. values is the digest of its
// composed values.
func (as *assignments) assignmentKey(k *keys, i int, a *schedule.Assignment,
	values model.Digest) cache.Key {
	content := as.in.needsContent(a)
	h := k.hash.Reset("assignment").Key(k.clusterType).Key(as.targetFacts(a, content))
	if content && a.Manifests.Helm != nil {
		h.Key(k.capabilities)
	}
	h.String(a.Version).String(as.in.Plan.Namespaces[i]).Int(a.Wave)
	// the policies matter to the bounds of workspaces
	hashStrings(hashStrings(h, a.DependsOn), a.Policies)
	k.specs = as.in.Plan.AppendSpecs(k.specs[:0], i, values)
	return h.String(string(values)).Bytes(k.specs).Sum()
}

// targetFacts identifies the input that a deployment target's assignments share on all cluster
// types: the workload and the target with all their fields. TestKeys lists the exceptions.
// Pins are not part of it, and the lock's entry counts only if the content of the source is
// needed.
func (as *assignments) targetFacts(a *schedule.Assignment, content bool) cache.Key {
	known, _ := as.targets.Load(a.Target)
	others, _ := known.(*targetKey)
	for d := others; d != nil; d = d.other {
		if d.content == content && d.manifests == a.Manifests {
			return d.facts
		}
	}
	w, t := *a.Workload, *a.Target
	w.Targets, w.Requires, w.Digest = nil, nil, ""
	t.Version, t.Manifests, t.Requires, t.AllowEmpty, t.DependsOn, t.Digest = "", a.Manifests, nil,
		false, nil, ""
	if a.Manifests.Helm == nil {
		w.Chart, t.Chart = model.ChartValues{}, model.ChartValues{}
	}
	h := cache.NewHash("deployment target").Bytes(model.Encode(w)).Bytes(model.Encode(t)).
		String(as.in.workspaceDigest(a.Workload))
	if source, ok := dependency.SourceOf(a.Manifests); ok && content {
		entry, _ := as.in.request.Library.Lock.Find(source)
		h.Bytes(model.Encode(entry))
	} else if chart := a.Manifests.Helm; chart != nil && chart.Path != "" {
		c, _ := openChart(as.in, chart)
		h.String(string(c.digest))
	}
	d := &targetKey{a.Manifests, content, h.Sum(), others}
	as.targets.Store(a.Target, d)
	return d.facts
}

// targetKey is the key of a deployment target with one of its manifests, in a linked list of all
// its manifests. The schedule shares manifests, so that their pointers distinguish them.
type targetKey struct {
	manifests model.Manifests
	content   bool       // whether the key covers the content of the source
	facts     cache.Key  // of the target, its workload and the manifests
	other     *targetKey // the key with other manifests of the target; nil at the end of the list
}

// cachedType is the cached result of a cluster type that built without diagnostics about its
// assignments.
type cachedType struct {
	Digest model.Digest `json:"digest"` // as tree.ClusterType has it
	// the results of Graph.Lists for all tuples
	Lists []string `json:"lists,omitempty"`
	// about the files at its root, unresolved
	Diagnostics []diag.Diagnostic `json:"diagnostics,omitempty"`
}

// typeState is the state of a cluster type. recall sets it before any part of the type is built.
type typeState struct {
	cachedType
	key cache.Key // of cachedType; zero if its assignments have to be examined
	// same reports whether the folder equals the recorded one, so that its assignments have no
	// rows.
	same bool

	mu       sync.Mutex
	complete bool // whether it has rows although it is the same, because its content was requested
}
