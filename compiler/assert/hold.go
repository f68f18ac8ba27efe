package assert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// count compares the number of assignments with the number that the test expects. If errors
// hide assignments, the number is unknown.
func (t *test) count(h *compose.Holder) {
	switch {
	case t.Count == nil:
	case t.in.Model.Incomplete:
		t.unknown = true
	default:
		for _, d := range h.Facts(t.Count, model.IntOf(int64(len(t.matches))),
			func(string) model.Ref { return model.Ref{} }) {
			d.Message += ", in " + t.in.Name
			t.ds = append(t.ds, d)
		}
	}
}

// facts compares the facts of each assignment with the facts that the test expects.
func (t *test) facts(h *compose.Holder) {
	if t.Assignment == nil {
		return
	}
	for _, i := range t.matches {
		a := &t.in.Schedule.Assignments[i]
		for _, d := range h.Facts(t.Assignment, t.in.Plan.Tested(i),
			func(path string) model.Ref { return t.written(i, path) }) {
			t.ds = append(t.ds, d.For(a.ID(t.in.Name)))
		}
	}
}

// written returns the place of the fact at a path of an assignment. Most facts are a field
// of the workload, of the deployment target or of the cluster type. The others follow from
// these.
func (t *test) written(i int, path string) model.Ref {
	a := &t.in.Schedule.Assignments[i]
	target := a.Workload.TargetRef(a.Target.Name)
	clusterType := a.ClusterType.Ref()
	candidates := []model.Ref{target.At(path), clusterType.At(path), target.Entity().At(path)}
	for _, p := range a.Policies {
		policy := model.Ref{Collection: "schedulingPolicies", Name: p}
		if pin := policy.At("pin").At(path); strings.HasPrefix(path, "version") ||
			strings.HasPrefix(path, "manifests") {
			candidates = append([]model.Ref{pin}, candidates...)
		}
	}
	for _, ref := range candidates {
		if len(t.in.Model.Positions.Exactly(ref)) > 0 {
			return ref
		}
	}
	return target
}

// valueTest is a test that checks the values of a tuple.
type valueTest struct {
	test *test
	ids  []string // of assignments
	// target is the deployment target of one of these assignments. folders are the folders
	// of their cluster types and classes.
	target  string
	folders map[string]bool
}

// values compares the composed values of assignments with the values that tests expect. It
// does so once for all assignments that share them. If clusters have values of their own,
// it also does so on each of these clusters.
func (e *environment) values(ctx context.Context, h *compose.Holder) error {
	of := map[int32][]valueTest{} // by tuple
	var tuples []int32
	for _, t := range e.tests {
		if t.Values == nil || t.Invalid {
			continue
		}
		for _, i := range t.matches {
			n, a := e.Plan.TupleOf[i], &e.Schedule.Assignments[i]
			if of[n] == nil {
				tuples = append(tuples, n)
			}
			if last := len(of[n]) - 1; last < 0 || of[n][last].test != t {
				of[n] = append(of[n], valueTest{test: t, target: a.Target.FullName, folders: map[string]bool{}})
			}
			last := &of[n][len(of[n])-1]
			last.ids, last.folders[a.ClusterType.Name] = append(last.ids, a.ID(e.Name)), true
		}
	}
	slices.Sort(tuples)
	var failed error
	err := e.Graphs(ctx, tuples, func(n int32, g *compose.Graph) {
		for _, a := range of[n] {
			if g.Failed {
				a.test.unknown = true
				continue
			}
			if err := e.hold(ctx, h, n, g, &a); err != nil {
				failed = err
			}
		}
	})
	return errors.Join(err, failed)
}

// hold compares the values of assignments with the values that a test expects. It checks
// the graph that clusters share, and the complete values of each cluster with values of its
// own.
func (e *environment) hold(ctx context.Context, h *compose.Holder, tuple int32, g *compose.Graph,
	a *valueTest) error {
	var clusters []*model.Cluster
	plain := false // whether some clusters have only the shared values
	for _, folder := range slices.Sorted(maps.Keys(a.folders)) {
		of := a.test.clustersOf(folder)
		plain, clusters = plain || len(of) == 0, append(clusters, of...)
	}
	own := slices.DeleteFunc(slices.Clone(clusters),
		func(c *model.Cluster) bool { return len(c.ValuesOf(a.target).Fields()) == 0 })
	common := map[string]bool{} // paths
	if plain || len(own) < len(clusters) {
		for _, d := range h.Values(a.test.Values, g) {
			common[d.Path] = true
			a.test.ds = append(a.test.ds, d.For(a.ids...))
		}
	}
	alike := map[string][]*model.Cluster{} // clusters with the same failures, by the paths
	for _, c := range own {
		if paths := strings.Join(h.BrokenOn(a.test.Values, g, c.ValuesOf(a.target)), "\n"); paths != "" {
			alike[paths] = append(alike[paths], c)
		}
	}
	for _, paths := range slices.Sorted(maps.Keys(alike)) {
		of, there := alike[paths], g
		if e.Plan.Tuples[tuple].PerCluster { // to describe the origin of its values
			if err := e.GraphsOn(ctx, tuple, of[:1],
				func(_ *model.Cluster, g *compose.Graph) { there = g }); err != nil {
				return err
			}
		}
		for _, d := range h.ValuesOn(a.test.Values, there, of[0]) {
			if common[d.Path] {
				continue
			}
			d.Message += ", on cluster " + of[0].Name
			if more := len(of) - 1; more > 0 {
				d.Message += fmt.Sprintf(" and %d more", more)
			}
			a.test.ds = append(a.test.ds,
				d.At(model.Ref{Collection: "clusters", Name: of[0].Name}, "the cluster").For(a.ids...))
		}
	}
	return nil
}

// clustersOf returns the clusters that the test is about and that follow a folder.
func (t *test) clustersOf(folder string) []*model.Cluster {
	if t.clusters == nil {
		t.clusters = map[string][]*model.Cluster{}
		for _, c := range t.in.SelectClusters(t.Clusters) {
			t.clusters[c.Folder] = append(t.clusters[c.Folder], c)
		}
	}
	return t.clusters[folder]
}
