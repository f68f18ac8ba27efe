// Package engine compiles one environment, from the files of a platform to the tree to write.
// Each file is a step, or has types that steps share. The files are listed in the order of the
// data flow. Each file uses only declarations of files above it:
//
//	meter.go        the cache, and counts of its use
//	request.go      the request of a build, and its reports
//	inputs.go       the inputs of all later steps: the model, its schedule, its configuration plan
//	key.go          keys of results, derived from the inputs
//	content.go      the content that manifests are rendered from
//	scope.go        the cluster types of a build, with the record of the output
//	composed.go     values of single clusters
//	planning.go     evaluate, schedule, and plan the configuration: makes the inputs
//	reason.go       why a part stays as the record describes it: one table
//	retain.go       keep the previous selections of lost selectors, and clusters that errors hide
//	entry.go        the folder that each cluster follows, if its cluster type has entries
//	emission.go     summaries of emissions, in the form of the cache
//	tuple.go        compose the values of tuples, which many assignments share
//	spill.go        files of emissions, until they are written
//	render.go       render charts, overlays and playbooks
//	boundsunit.go   the users and the rights of systemd units
//	bounds.go       check assignments against the bounds of their workspaces
//	images.go       replace the images of a cluster type
//	emit.go         one emission, by a backend
//	assignment.go   identify assignments, and emit the assignments that are not cached
//	recall.go       skip the cluster types that have not changed
//	collision.go    which assignment has the better claim to an object
//	definition.go   CustomResourceDefinitions that several assignments bring
//	build.go        build all assignments, and find the objects that two of them create
//	settle.go       keep folders of failed assignments, and fail their dependents
//	clustertype.go  the folder of a cluster type, and the tree
//	change.go       the folders of clusters before and after the build
//	outlive.go      objects that stay on clusters
//	removal.go      check the removals, and report them
//	engine.go       Plan and Build: the steps in their order
//
// Steps report problems of the platform as diagnostics. They return an error only if something
// cannot be read, or if a context has ended.
//
// In the hello-world example, Plan finds the assignment dev/drone/hello-world-functional-test.
// Build turns it into the folder drone/hello-world-functional-test, in the tree of environment
// dev. The folder has a namespace, a platform config and the objects of Flux.
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
	"github.com/kalypso-io/kalypso/compiler/fleet"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Environment is one environment of a build: Plan plans it, and Build compiles it. It is not safe
// for concurrent use, except that after Build several goroutines may read it.
type Environment struct {
	*Inputs
	// Tree is the output; nil if the output must stay as it is. Its content is made when it is
	// requested, from the files that the build has read. These files must still exist then.
	Tree *tree.Tree
	// Effect describes the changes of the build on clusters, compared with the record of the
	// output. It is nil if there are no changes or no record. Removals counts the removals,
	// whether they are allowed or not.
	Effect   *effect.Effect
	Removals effect.Removals
	// Counts counts the results of the build.
	Counts Counts

	reports     *reports
	tuples      *tuples
	emitter     *emitter
	assignments *assignments
	displaced   bool
	same        map[string]bool // the cluster types that the build leaves out
	beside      func(clusterType string) (*tree.ClusterTypeRecord, error)
}

// Plan plans an environment: it evaluates it, schedules it, and plans the configuration of its
// assignments.
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

// Build compiles a planned environment. previous is the record of its output, which may be nil.
// Build ignores the record of another platform or environment, because kalypso refuses to
// overwrite that output.
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
		// The content of the record is not known, so the output stays as it is.
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
	// Make the reasons name the codes of the errors.
	for _, d := range e.reports.all {
		for _, a := range d.Assignments {
			k.errors[a] = append(k.errors[a], d)
		}
	}
	types, err := (&assembly{in: s.in, scope: s, assignments: e.assignments, keeper: k}).clusterTypes(
		ctx)
	if err != nil {
		return err
	}
	e.Tree, e.Counts = treeOf(types, k, entries, e.reports)
	if e.displaced || e.Model.Invalid[model.Ref{Collection: "environments", Name: e.Name}] {
		e.Tree, e.Counts = nil, Counts{} // its gitops is not known, so the output stays as it is
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

// Close removes the stored content of the environment's tree.
func (e *Environment) Close() error {
	if e.assignments == nil {
		return nil
	}
	return e.assignments.spill.close()
}

// Diagnostics returns the diagnostics of the environment so far. They have positions after Build.
func (e *Environment) Diagnostics() []diag.Diagnostic { return e.reports.all }

// Displace keeps the environment's output as it is, and adds the diagnostics that explain why.
func (e *Environment) Displace(ds ...diag.Diagnostic) {
	e.displaced = true
	e.reports.add(ds...)
}

// Failed reports whether the assignment with this number has an error, so that it is not built.
func (e *Environment) Failed(assignment int) bool { return e.assignments.rows[assignment].failed }

// Files returns the files of an assignment's folder, sorted by path. It returns nil if the
// assignment failed. After Build, it is safe for concurrent use by multiple goroutines.
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
func (e *Environment) GraphOn(ctx context.Context, assignment int,
	cluster *model.Cluster) (*compose.Graph, error) {
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

// Graphs calls f with the configuration graph of each of the given tuples of the plan.
func (e *Environment) Graphs(ctx context.Context, tuples []int32,
	f func(tuple int32, g *compose.Graph)) error {
	const atOnce = 256 // tuples whose functions of the assignment are evaluated together
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

// Select returns the numbers of the assignments that each selector of assignments selects, in
// ascending order.
func (e *Environment) Select(selectors []model.Selector) [][]int {
	return e.Plan.Select(selectors, newSatisfier(expr.In(e.request.Workers)))
}

// MayMatch reports whether a selector of assignments may select assignments of the environment.
func (e *Environment) MayMatch(s model.Selector) bool {
	return selector.MayHold(s, "environment", e.Name, newSatisfier(expr.In(e.request.Workers)))
}

// Filter returns the filter of the rows of an inventory of the environment; nil if all rows
// are its clusters.
func (e *Environment) Filter(inv *model.Inventory) *fleet.Filter {
	return fleet.NewFilter(inv, newSatisfier(expr.In(e.request.Workers)))
}

// Configuration returns the digest of the composed values of the assignment with this number:
// the version of its configuration. If the build took the assignment from the record,
// Configuration reads the cache, or composes the values, and may fail.
func (e *Environment) Configuration(ctx context.Context, assignment int) (model.Digest, error) {
	name := e.Schedule.Assignments[assignment].ClusterType.Name
	ct, _ := slices.BinarySearchFunc(e.Model.ClusterTypes, name,
		func(ct model.ClusterType, name string) int { return strings.Compare(ct.Name, name) })
	if err := e.assignments.complete(ctx, &scope{in: e.Inputs, same: e.same}, ct); err != nil {
		return "", err
	}
	return e.tuples.summary(assignment).digest, nil
}

// ApplicationValues returns the application's composed values for the chart of a deployment
// target, with their provenance. They are the same on all cluster types.
func (e *Environment) ApplicationValues(w *model.Workload,
	t *model.DeploymentTarget) *compose.Graph {
	return e.emitter.applicationValues(w, t)
}

// Keys returns the keys of the cluster types of the build, by name. A key identifies all inputs
// of a cluster type's folder. Cluster types with errors are absent.
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

// SetBeside provides another output's records for clusters that errors hide, for a build without a
// record. of returns the record of a cluster type, or nil if the other output does not have it.
func (e *Environment) SetBeside(of func(clusterType string) (*tree.ClusterTypeRecord, error)) {
	e.beside = of
}

// Clusters returns the clusters that pull the folder of a cluster type, in the form of a record.
// It returns nil if there is no such cluster type.
func (e *Environment) Clusters(clusterType string) *tree.ClusterTypeRecord {
	if e.Model == nil {
		return nil
	}
	s := &scope{in: e.Inputs}
	for i := range e.Model.ClusterTypes {
		if ct := &e.Model.ClusterTypes[i]; ct.Name == clusterType {
			return &tree.ClusterTypeRecord{Name: ct.Name, Clusters: s.in.clusterNames(ct.Name),
				Facts: s.facts(ct)}
		}
	}
	return nil
}

// HasEntries reports whether the clusters that follow a folder pull their own entries.
func (e *Environment) HasEntries(folder string) bool {
	i, found := slices.BinarySearchFunc(e.Model.ClusterTypes, folder,
		func(ct model.ClusterType, name string) int { return strings.Compare(ct.Name, name) })
	return found && e.Model.ClusterTypes[i].Entries == model.ClusterEntries
}

// Record returns the record that the environment would get in an empty place. It returns nil if
// nothing would be written. The content of the record is made when it is read.
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

// LeaveOut leaves cluster types out of the build. The tree marks their folders as outside.
func (e *Environment) LeaveOut(clusterTypes map[string]bool) { e.same = clusterTypes }

// LeftOut reports whether a cluster type is left out of the build.
func (e *Environment) LeftOut(clusterType string) bool { return e.same[clusterType] }

// AllFailed yields the number of each failed assignment of the build.
func (e *Environment) AllFailed(yield func(int) bool) {
	s := &scope{in: e.Inputs, same: e.same}
	for i := range e.assignments.rows {
		if e.assignments.rows[i].failed && s.builds(e.Schedule.Assignments[i].ClusterType.Name) &&
			!yield(i) {
			return
		}
	}
}

// Version returns the version of an assignment. Unless the platform names it, it is derived from
// the source of the manifests, if that has one.
func (e *Environment) Version(assignment int) (string, model.VersionSource) {
	return versionOf(e.Inputs, &e.Schedule.Assignments[assignment])
}

// NeedsContent reports whether the emission of an assignment needs the content of its source, or
// at least its pin.
func (e *Environment) NeedsContent(assignment int) bool {
	return e.needsContent(&e.Schedule.Assignments[assignment])
}

// Requested returns the total requests of a workspace's assignments from its quota, after Build.
// It counts only assignments within the quota. It returns nil if the workspace has no requests.
func (e *Environment) Requested(workspace string) kubernetes.Requests {
	return e.assignments.requested[workspace]
}

// SelectTested returns the numbers of the assignments that each test is about, in ascending
// order. It includes assignments that fail.
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
		out[i] = slices.DeleteFunc(out[i],
			func(n int) bool { return !folders[e.Schedule.Assignments[n].ClusterType.Name] })
	}
	return out
}

// SelectClusters returns the clusters that a selector of clusters selects, sorted by name. A nil
// selector selects all clusters.
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
			if !yield(selector.Facts{"name": selector.Values(all[i].Name),
				"labels": selector.Labels(labels)}) {
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

// GraphsOn calls f with the configuration graph of a tuple on each of the given clusters, without
// the clusters' own values.
func (e *Environment) GraphsOn(ctx context.Context, tuple int32, clusters []*model.Cluster,
	f func(c *model.Cluster, g *compose.Graph)) error {
	const atOnce = 256 // clusters whose functions of the assignment are evaluated together
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
