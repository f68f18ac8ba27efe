package compiler

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// row is what became of one assignment.
type row struct {
	key    cache.Key // of its emission; zero where it failed before
	head   []byte    // an emissionHead, as it is in the cache; nil where it failed before
	failed bool
	// without are the CustomResourceDefinitions, by name, that another assignment of
	// the cluster type brings for both.
	without map[string]bool
}

// build emits the assignments of every cluster type of this build.
func (e *Environment) build(ctx context.Context) error {
	var types []int
	total := 0
	for ct, s := range e.spans {
		if e.builds(e.Model.ClusterTypes[ct].Name) {
			types, total = append(types, ct), total+s.next-s.first
		}
	}
	progress := e.progress(total)
	collisions := make([][]collision, len(e.spans))
	group, ctx := errgroup.WithContext(ctx)
	workers := min(runtime.GOMAXPROCS(0), max(1, len(types)))
	for w := range workers {
		group.Go(func() error {
			composer := e.Plan.NewComposer()
			for n := w; n < len(types); n += workers {
				ct := types[n]
				objects, err := e.buildClusterType(ctx, e.spans[ct], composer)
				if err != nil {
					return err
				}
				if collisions[ct], err = e.collisions(ct, objects); err == nil {
					err = e.shareDefinitions(ctx, ct, collisions[ct])
				}
				if err != nil {
					return err
				}
				e.putAway(ct)
				progress(e.spans[ct].next - e.spans[ct].first)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_ = e.tupleTable().Flush()
	e.reportTuples()
	if err := e.reportEmissions(); err != nil {
		return err
	}
	e.collide(slices.Concat(collisions...))
	return nil
}

// putAway writes what was emitted of a cluster type to the cache, and leaves nothing of
// the cache's table in memory but the heads.
func (e *Environment) putAway(ct int) {
	table := e.assignmentTable(e.Model.ClusterTypes[ct].Name)
	_ = table.Flush() // what it cannot write the cache remembers itself, and only costs time
	rows := e.rows[e.spans[ct].first:e.spans[ct].next]
	size := 0
	for i := range rows {
		size += len(rows[i].head)
	}
	heads := make([]byte, 0, size)
	for i := range rows {
		begin := len(heads)
		if heads = append(heads, rows[i].head...); rows[i].head != nil {
			rows[i].head = heads[begin:len(heads):len(heads)]
		}
	}
	table.Release()
}

// mine says whether an assignment is of a cluster type of this build.
func (e *Environment) mine(assignment int) bool {
	return e.builds(e.Schedule.Assignments[assignment].ClusterType.Name)
}

// buildClusterType makes the rows of a cluster type's assignments, and returns the
// objects of those that had to be emitted, by assignment.
func (e *Environment) buildClusterType(ctx context.Context, s span, composer *compose.Composer) (map[int][]backends.Object, error) {
	if err := e.identify(ctx, s, composer); err != nil {
		return nil, err
	}
	var missing []int
	lacking := 0 // of missing: what cannot be made is not counted as computed
	for i := s.first; i < s.next; i++ {
		r := &e.rows[i]
		if r.failed {
			continue
		}
		if a := &e.Schedule.Assignments[i]; e.needsContent(a) && e.lacks(a) {
			missing, lacking = append(missing, i), lacking+1
			continue
		}
		var ok bool
		if r.head, ok = e.assignmentTable(e.Schedule.Assignments[i].ClusterType.Name).Head(r.key); ok {
			if head, good := decodeHead(r.head); good {
				r.failed = head.failed
				continue
			}
		}
		missing = append(missing, i)
	}
	e.meter.count(cache.Assignment, len(missing)-lacking, s.next-s.first-len(missing))
	objects, err := e.emit(ctx, missing)
	for i := s.first; i < s.next; i++ {
		e.release(i)
	}
	return objects, err
}

// identify makes the keys of the rows of a cluster type's assignments.
func (e *Environment) identify(ctx context.Context, s span, composer *compose.Composer) error {
	numbers := make([]int32, 0, s.next-s.first)
	for i := s.first; i < s.next; i++ {
		numbers = append(numbers, e.Plan.TupleOf[i])
	}
	if err := e.resolve(ctx, numbers, composer); err != nil {
		return err
	}
	if err := e.wait(ctx, numbers); err != nil {
		return err
	}
	if s.first == s.next {
		return nil
	}
	ct := e.Schedule.Assignments[s.first].ClusterType
	healthy := e.reconciler(ct) != nil
	k := &keys{hash: cache.NewHash(""), clusterType: e.clusterTypeFacts(ct), capabilities: capabilities(ct)}
	for i := s.first; i < s.next; i++ {
		a := &e.Schedule.Assignments[i]
		t := e.tuples[e.Plan.TupleOf[i]]
		r := &e.rows[i]
		if r.failed = a.Failed || e.Plan.Failed[i] || t.head.Failed || !healthy; !r.failed {
			r.key = e.assignmentKey(k, i, a, t.head.Digest)
		}
	}
	return nil
}

// emit emits assignments, which have not failed before, and remembers what became
// of them.
func (e *Environment) emit(ctx context.Context, missing []int) (map[int][]backends.Object, error) {
	if len(missing) == 0 {
		return nil, nil
	}
	emitted, err := e.emissions(ctx, missing)
	if err != nil {
		return nil, err
	}
	objects := map[int][]backends.Object{}
	for n, i := range missing {
		head := emitted[n].head
		objects[i] = emitted[n].Objects
		r := &e.rows[i]
		r.head, r.failed = head.encode(), head.failed
		if !head.passing {
			table := e.assignmentTable(e.Schedule.Assignments[i].ClusterType.Name)
			table.Put(r.key, r.head, encodeBody(emitted[n].Files, emitted[n].Objects))
		}
	}
	return objects, nil
}

// orphans says whether the namespace outlives the assignment.
func orphans(namespaceService model.Value) bool {
	deletion, _ := namespaceService.Lookup("deletion")
	return deletion.Text() == "orphan"
}

// reportEmissions reports what the backends had to say, with where the values come
// from that it is about.
func (e *Environment) reportEmissions() error {
	for i := range e.rows {
		head, ok := decodeHead(e.rows[i].head)
		if !ok || !head.hasDiagnostics {
			continue
		}
		ds, err := head.decodeDiagnostics()
		if err != nil {
			return err
		}
		g, err := e.Graph(i)
		if err != nil {
			return err
		}
		for _, d := range ds {
			e.report(locate(d, g).For(e.Schedule.Assignments[i].ID(e.Name)))
		}
	}
	return nil
}

// locate adds where the values come from to a diagnostic about one of them.
func locate(d diag.Diagnostic, g *compose.Graph) diag.Diagnostic {
	if d.Path == "" {
		return d
	}
	for _, leaf := range g.Leaves() {
		if leaf.Path == d.Path {
			for _, o := range leaf.From {
				d.Sites = append([]diag.Site{{Ref: o.Ref}}, d.Sites...)
			}
		}
	}
	return d
}

// folder describes the folder of an assignment that was emitted.
func (e *Environment) folder(i int, head emissionHead) backends.Folder {
	a := &e.Schedule.Assignments[i]
	return backends.Folder{
		DeploymentTarget: a.Target.FullName,
		Workspace:        a.Workload.Workspace,
		Workload:         a.Workload.Name,
		Namespace:        e.Plan.Namespaces[i],
		Version:          a.Version,
		Orphan:           head.orphan,
		DependsOn:        a.DependsOn,
		Wave:             a.Wave,
		Backend:          e.reconciler(a.ClusterType).Backend,
		Retained:         head.retention.Kept,
		Shared:           head.shared,
	}
}

// content returns the files of an assignment that was emitted: from the cache, or
// emitted once more.
func (e *Environment) content(i int) ([]backends.File, error) {
	table := e.assignmentTable(e.Schedule.Assignments[i].ClusterType.Name)
	if body, ok := table.Body(e.rows[i].key); ok {
		if files, _, err := decodeBody(body); err == nil {
			return files, nil
		}
	}
	emission, err := e.emitAgain(i)
	return emission.Files, err
}

func (e *Environment) emitAgain(i int) (backends.Emission, error) {
	emitted, err := e.emissions(e.ctx, []int{i})
	if err != nil {
		return backends.Emission{}, err
	}
	if head := emitted[0].head; head.failed {
		// The content of its source has gone since: nothing else fails now and not before.
		return backends.Emission{}, fmt.Errorf("%s was built, and cannot be built once more (%s): build again",
			e.Schedule.Assignments[i].ID(e.Name), codes(head.diagnostics))
	}
	return emitted[0].Emission, nil
}

// assignment is everything that was decided, as a backend sees it, but for the
// specs and the projection.
func (e *Environment) assignment(i int, g *compose.Graph) *backends.Assignment {
	a := &e.Schedule.Assignments[i]
	out := &backends.Assignment{
		Environment:       e.Name,
		ClusterType:       a.ClusterType.Name,
		Clusters:          e.clusters[a.ClusterType.Name],
		Workspace:         a.Workload.Workspace,
		Application:       a.Workload.Application,
		Workload:          a.Workload.Name,
		Registration:      a.Workload.Registration,
		Target:            a.Target.Name,
		DeploymentTarget:  a.Target.FullName,
		Namespace:         e.Plan.Namespaces[i],
		Labels:            a.Target.Labels,
		ClusterTypeLabels: a.ClusterType.Labels,
		Version:           a.Version,
		GitOps:            e.Model.GitOps,
		Manifests:         a.Manifests,
		Render:            a.Target.Render,
		Restart:           a.Target.RestartOnConfigChange,
		ConfigFormat:      a.ClusterType.ConfigFormat,
		Values:            g.Plain,
		Removed:           g.Removed,
		Digest:            g.Digest,
		NamespaceService:  backends.Spec{Ref: model.Ref{Collection: "namespaceServices", Name: a.ClusterType.NamespaceService}},
		Reconciler:        backends.Spec{Ref: reconcilerRef(a.ClusterType)},
		DependsOn:         a.DependsOn,
		Wave:              a.Wave,
		Ref:               a.Workload.TargetRef(a.Target.Name),
	}
	for _, secret := range g.Secrets {
		out.Secrets = append(out.Secrets, secretOf(secret))
	}
	return out
}

func secretOf(s compose.Secret) backends.Secret {
	text := func(name string) string {
		v, there := s.Ref.Lookup(name)
		if !there {
			return ""
		}
		return v.Text()
	}
	return backends.Secret{Name: s.Path, Store: text("store"), Key: text("key"), Property: text("property"), Version: text("version")}
}
