// Package engine is the engine of one environment: from the files of a platform to the tree
// that is to be written. Each file is a step, or types that steps share. In this order, in which
// data goes through them, a file uses only declarations of files above it:
//
//	meter.go        the cache, and counts of its use
//	request.go      the request of a build, and what it reports
//	inputs.go       what all later steps read: the model, its schedule, its configuration plan
//	key.go          keys of results, derived from the inputs
//	scope.go        the cluster types of a build, with the record of the output
//	composed.go     values of single clusters
//	planning.go     evaluate, schedule, and plan the configuration: makes the inputs
//	reason.go       why something stays as the record has it: one table
//	retain.go       keep what lost selectors selected, and clusters that errors hide
//	entry.go        what each cluster pulls, where cluster types have entries for them
//	emission.go     summaries of emissions, as they are cached
//	tuple.go        compose the values of tuples, which many assignments share
//	spill.go        files of emissions, until they are written
//	render.go       render charts, overlays and playbooks
//	boundsunit.go   what units of systemd run, and as whom
//	bounds.go       hold assignments to the bounds of their workspaces
//	emit.go         one emission, by a backend
//	assignment.go   identify assignments, and emit those that the cache does not know
//	recall.go       leave out the cluster types that are as they were
//	collision.go    which assignment has the better claim to an object
//	definition.go   CustomResourceDefinitions that several assignments bring
//	build.go        build all assignments, and find the objects that two of them create
//	settle.go       keep folders of what failed, and fail what depends on it
//	clustertype.go  the folder of a cluster type, and the tree
//	change.go       what clusters have by the record, and will have
//	outlive.go      what stays on clusters
//	removal.go      what goes, and whether so much may
//	engine.go       Plan and Build: the steps in their order
//
// What a step reports is a diagnostic; an error is about what cannot be read, or a context that
// has ended.
//
// In the hello-world example, Plan finds the assignment dev/drone/hello-world-functional-test, and
// Build makes the folder drone/hello-world-functional-test of it, in the tree of environment dev:
// a namespace, a platform config and the objects of Flux.
package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Environment is one environment of a build: planned by Plan, and, after Build, compiled.
// It is for one goroutine, but for what is read of it after Build.
type Environment struct {
	*Inputs
	// Tree is the output; nil where it must stay as it is. What it gives is made when it
	// is asked for, of what the build read, which has to be there then.
	Tree *tree.Tree
	// Effect is what the build changes on clusters, by the record of the output; nil where it
	// changes nothing, or nothing is recorded. Removals count what it removes, whether that is
	// allowed or not.
	Effect   *effect.Effect
	Removals effect.Removals
	// Counts counts what the build gave.
	Counts Counts

	reports     *reports
	tuples      *tuples
	emitter     *emitter
	assignments *assignments
	displaced   bool
	same        map[string]bool // cluster types that are left out
	beside      func(clusterType string) (*tree.ClusterTypeRecord, error)
}

// Plan takes an environment through the pipeline up to what its assignments are
// configured by.
func Plan(ctx context.Context, name string, r *Request) (*Environment, error) {
	e := &Environment{Inputs: &Inputs{Name: name, request: r}, reports: &reports{environment: name}}
	if err := e.plan(ctx, e.reports); err != nil || e.Model == nil {
		return e, err
	}
	e.tuples = newTuples(e.Inputs)
	e.emitter = &emitter{in: e.Inputs, tuples: e.tuples}
	e.assignments = &assignments{in: e.Inputs, tuples: e.tuples, emitter: e.emitter,
		rows: make([]row, len(e.Schedule.Assignments)), roots: make([]extent, len(e.Model.ClusterTypes)),
		types: make([]typeState, len(e.Model.ClusterTypes))}
	return e, nil
}

// Build takes a planned environment through the rest of the pipeline. previous is the
// record of its output, which may be nil; one of something else does not count: writing
// over it is refused.
func (e *Environment) Build(ctx context.Context, previous *tree.Record) error {
	if e.Model == nil {
		return nil
	}
	if previous != nil && (previous.Platform != e.request.Platform.Module ||
		previous.Environment != e.Name && !slices.Contains(e.Formerly(), previous.Environment)) {
		previous = nil
	}
	err := e.build(ctx, &scope{in: e.Inputs, record: previous, same: e.same, beside: e.beside})
	if broken := (*tree.RecordError)(nil); errors.As(err, &broken) {
		// What there is to keep is not known: the output stays as it is.
		e.reports.add(broken.Diagnostic())
		e.Tree, e.Counts = nil, Counts{}
	} else if err != nil {
		return err
	}
	diag.Resolve(e.reports.all, e.Model.Positions)
	return ctx.Err()
}

func (e *Environment) build(ctx context.Context, s *scope) error {
	retained, err := retain(s, e.reports)
	if err != nil {
		return err
	}
	if s.lostClusters, err = lostClusters(s, e.reports); err != nil {
		return err
	}
	entries, err := planEntries(s, retained, e.reports)
	if err != nil {
		return err
	}
	if err := e.assignments.build(ctx, s, retained, e.reports); err != nil {
		return err
	}
	k, err := settle(s, e.assignments, retained, entries, e.reports)
	if err != nil {
		return err
	}
	// Let the reasons name the codes of the errors.
	for _, d := range e.reports.all {
		for _, a := range d.Assignments {
			k.errors[a] = append(k.errors[a], d)
		}
	}
	types, err := (&assembly{in: s.in, scope: s, assignments: e.assignments, keeper: k}).clusterTypes(ctx)
	if err != nil {
		return err
	}
	e.Tree, e.Counts = treeOf(types, k, entries, e.reports)
	if e.displaced || e.Model.Invalid[model.Ref{Collection: "environments", Name: e.Name}] {
		e.Tree, e.Counts = nil, Counts{} // its gitops is not known: the output stays as it is
		return nil
	}
	if s.record == nil {
		return nil
	}
	c := &changes{in: s.in, scope: s, keeper: k, assignments: e.assignments, types: types,
		tree: e.Tree, reports: e.reports}
	checked, err := c.check()
	if e.Effect, e.Removals = checked.effect, checked.removals; checked.refused {
		e.Tree, e.Counts = nil, Counts{}
	}
	return err
}

// Close removes what the build holds of the content of its tree.
func (e *Environment) Close() error {
	if e.assignments == nil {
		return nil
	}
	return e.assignments.spill.close()
}

// Diagnostics are those of the environment so far. They have positions after Build.
func (e *Environment) Diagnostics() []diag.Diagnostic { return e.reports.all }

// Displace leaves the environment's output as it is, and adds the diagnostics that say why.
func (e *Environment) Displace(ds ...diag.Diagnostic) {
	e.displaced = true
	e.reports.add(ds...)
}

// Failed says whether an error concerns the assignment with this number, so that
// it is not built.
func (e *Environment) Failed(assignment int) bool { return e.assignments.rows[assignment].failed }

// Files returns the files of the folder of an assignment with their bytes, sorted by path;
// none where it has failed. It may be called by several goroutines, after Build.
func (e *Environment) Files(ctx context.Context, assignment int) ([]backends.File, error) {
	if e.Failed(assignment) {
		return nil, nil
	}
	all, err := e.assignments.contents(ctx, []int{assignment})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Graph returns the configuration graph of the assignment with this number.
func (e *Environment) Graph(ctx context.Context, assignment int) (*compose.Graph, error) {
	return e.tuples.graph(ctx, e.Plan.TupleOf[assignment])
}

// GraphOn returns the configuration graph of an assignment on one of its clusters, without the
// cluster's own values.
func (e *Environment) GraphOn(ctx context.Context, assignment int, cluster *model.Cluster) (*compose.Graph, error) {
	tuple := e.Plan.TupleOf[assignment]
	if len(e.Plan.Tuples[tuple].Clusters) == 0 {
		return e.Graph(ctx, assignment)
	}
	with, err := e.Plan.PrepareOn(ctx, tuple, []*model.Cluster{cluster})
	if err != nil {
		return nil, err
	}
	return e.Plan.NewComposer().ComposeOn(tuple, cluster, with), nil
}

// Graphs calls f with the configuration graph of each of some tuples of the plan.
func (e *Environment) Graphs(ctx context.Context, tuples []int32, f func(tuple int32, g *compose.Graph)) error {
	const atOnce = 256 // whose functions of the assignment are evaluated together
	composer := e.Plan.NewComposer()
	for some := range slices.Chunk(tuples, atOnce) {
		prepared, err := e.Plan.Prepare(ctx, some)
		if err != nil {
			return err
		}
		for _, n := range some {
			if err := ctx.Err(); err != nil {
				return err
			}
			f(n, composer.Compose(n, prepared))
		}
	}
	return nil
}

// Select returns the numbers of the assignments that each selector of assignments holds
// for, ascending.
func (e *Environment) Select(selectors []model.Selector) [][]int {
	return e.Plan.Select(selectors, newSatisfier(expr.In(e.request.Workers)))
}

// MayMatch says whether a selector of assignments leaves the environment open.
func (e *Environment) MayMatch(s model.Selector) bool {
	return selector.MayHold(s, "environment", e.Name, newSatisfier(expr.In(e.request.Workers)))
}

// Configuration returns the digest of the composed values of the assignment with
// this number: the version of its configuration.
func (e *Environment) Configuration(assignment int) model.Digest {
	name := e.Schedule.Assignments[assignment].ClusterType.Name
	ct, _ := slices.BinarySearchFunc(e.Model.ClusterTypes, name,
		func(ct model.ClusterType, name string) int { return strings.Compare(ct.Name, name) })
	if err := e.assignments.complete(context.Background(), &scope{in: e.Inputs, same: e.same}, ct); err != nil {
		return ""
	}
	return e.tuples.summary(assignment).digest
}

// ApplicationValues returns what the application gives the chart of a deployment
// target, composed, with its provenance. It is the same on all cluster types.
func (e *Environment) ApplicationValues(w *model.Workload, t *model.DeploymentTarget) *compose.Graph {
	return e.emitter.applicationValues(w, t)
}

// Keys returns the keys of the cluster types of the build, by name: of all that the folder
// of each is made of. Those with errors have none.
func (e *Environment) Keys(ctx context.Context) (map[string]cache.Key, error) {
	if e.Model == nil {
		return nil, nil
	}
	s := &scope{in: e.Inputs}
	y := &assembly{in: s.in, scope: s, assignments: e.assignments}
	composer := e.Plan.NewComposer()
	out := map[string]cache.Key{}
	for n, at := range e.spans {
		ct := &e.Model.ClusterTypes[n]
		if !s.builds(ct.Name) {
			continue
		}
		if err := e.assignments.identify(ctx, at, composer); err != nil {
			return nil, err
		}
		if e.reconciler(ct) != nil && !e.assignments.failedIn(at) {
			out[ct.Name] = y.key(n)
		}
	}
	return out, nil
}

// Beside has clusters that errors hide be as they are in another output, where there is no
// record: of that returns what it has of a cluster type, which may be nil.
func (e *Environment) Beside(of func(clusterType string) (*tree.ClusterTypeRecord, error)) {
	e.beside = of
}

// Clusters returns the clusters that pull the folder of a cluster type, as its record has
// them; nil for no such cluster type.
func (e *Environment) Clusters(clusterType string) *tree.ClusterTypeRecord {
	if e.Model == nil {
		return nil
	}
	s := &scope{in: e.Inputs}
	for i := range e.Model.ClusterTypes {
		if ct := &e.Model.ClusterTypes[i]; ct.Name == clusterType {
			return &tree.ClusterTypeRecord{Name: ct.Name, Clusters: s.in.clusterNames(ct.Name), Facts: s.facts(ct)}
		}
	}
	return nil
}

// HasEntries says whether the clusters that follow a folder pull entries of their own.
func (e *Environment) HasEntries(folder string) bool {
	i, found := slices.BinarySearchFunc(e.Model.ClusterTypes, folder,
		func(ct model.ClusterType, name string) int { return strings.Compare(ct.Name, name) })
	return found && e.Model.ClusterTypes[i].Entries == model.ClusterEntries
}

// Record returns the record that a write of the environment into an empty place would leave;
// nil where nothing would be written. It is made as it is read.
func (e *Environment) Record(ctx context.Context, o tree.Options) *tree.Record {
	if e.Tree == nil {
		return nil
	}
	numbers := map[string]int{}
	for n := range e.spans {
		ct := e.Model.ClusterTypes[n].Name
		numbers[ct] = e.spans[n].next - e.spans[n].first
		for i := e.spans[n].first; i < e.spans[n].next && !e.LeftOut(ct); i++ {
			if e.Failed(i) {
				numbers[ct]--
			}
		}
	}
	return e.Tree.Record(ctx, o, func(clusterType string) int { return numbers[clusterType] })
}

// LeaveOut leaves cluster types out of the build. Their folders are in the tree as outside
// of it.
func (e *Environment) LeaveOut(clusterTypes map[string]bool) { e.same = clusterTypes }

// LeftOut says whether a cluster type is left out of the build.
func (e *Environment) LeftOut(clusterType string) bool { return e.same[clusterType] }

// AllFailed yields the number of each assignment of the build that failed.
func (e *Environment) AllFailed(yield func(int) bool) {
	s := &scope{in: e.Inputs, same: e.same}
	for i := range e.assignments.rows {
		if e.assignments.rows[i].failed && s.builds(e.Schedule.Assignments[i].ClusterType.Name) && !yield(i) {
			return
		}
	}
}

// NeedsContent says whether the emission of an assignment needs the content of its source,
// or at least what it is pinned to.
func (e *Environment) NeedsContent(assignment int) bool {
	return e.needsContent(&e.Schedule.Assignments[assignment])
}

// Requested returns what the assignments of a workspace with a quota request of it together,
// after Build, as far as they are within it.
func (e *Environment) Requested(workspace string) kubernetes.Requests {
	return e.assignments.requested[workspace]
}

// SelectTested returns the numbers of the assignments that each of some tests is about,
// ascending, whether they fail or not.
func (e *Environment) SelectTested(tests []*model.Test) [][]int {
	selectors := make([]model.Selector, len(tests))
	for i, t := range tests {
		selectors[i] = t.Match
	}
	out := e.Select(selectors)
	for i, t := range tests {
		if t.Clusters == nil {
			continue
		}
		folders := map[string]bool{}
		for _, c := range e.SelectClusters(t.Clusters) {
			folders[c.Folder] = true
		}
		out[i] = slices.DeleteFunc(out[i], func(n int) bool { return !folders[e.Schedule.Assignments[n].ClusterType.Name] })
	}
	return out
}

// SelectClusters returns the clusters that a selector of clusters holds for, sorted; nil
// selects all.
func (e *Environment) SelectClusters(s *model.Selector) []*model.Cluster {
	all := e.Model.Clusters
	if s == nil {
		out := make([]*model.Cluster, len(all))
		for i := range all {
			out[i] = &all[i]
		}
		return out
	}
	types := map[string]map[string]string{} // labels
	for i := range e.Model.ClusterTypes {
		types[e.Model.ClusterTypes[i].Name] = e.Model.ClusterTypes[i].Labels
	}
	index := selector.NewIndex(func(yield func(selector.Facts) bool) {
		for i := range all {
			labels := maps.Clone(types[all[i].Folder])
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, all[i].Labels)
			if !yield(selector.Facts{"name": selector.Values(all[i].Name), "labels": selector.Labels(labels)}) {
				return
			}
		}
	}, newSatisfier(expr.In(e.request.Workers)))
	var out []*model.Cluster
	for _, n := range index.Select(*s) {
		out = append(out, &all[n])
	}
	return out
}

// GraphsOn calls f with the configuration graph of a tuple on each of some clusters, without
// the clusters' own values.
func (e *Environment) GraphsOn(ctx context.Context, tuple int32, clusters []*model.Cluster,
	f func(c *model.Cluster, g *compose.Graph)) error {
	const atOnce = 256 // whose functions of the assignment are evaluated together
	composer := e.Plan.NewComposer()
	for some := range slices.Chunk(clusters, atOnce) {
		prepared, err := e.Plan.PrepareOn(ctx, tuple, some)
		if err != nil {
			return err
		}
		for _, c := range some {
			if err := ctx.Err(); err != nil {
				return err
			}
			f(c, composer.ComposeOn(tuple, c, prepared))
		}
	}
	return nil
}
