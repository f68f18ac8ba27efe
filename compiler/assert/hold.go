package assert

import (
	"context"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// count holds the number of assignments against what the test wants. Where errors hide
// assignments it is not known.
func (t *test) count(h *compose.Holder) {
	switch {
	case t.Count == nil:
	case t.in.Model.Incomplete:
		t.unknown = true
	default:
		for _, d := range h.Facts(t.Count, model.IntOf(int64(len(t.matches))), func(string) model.Ref { return model.Ref{} }) {
			d.Message += ", in " + t.in.Name
			t.ds = append(t.ds, d)
		}
	}
}

// facts holds what is known of each assignment against what the test wants.
func (t *test) facts(h *compose.Holder) {
	if t.Assignment == nil {
		return
	}
	for _, i := range t.matches {
		a := &t.in.Schedule.Assignments[i]
		for _, d := range h.Facts(t.Assignment, t.in.Plan.Tested(i), func(path string) model.Ref { return t.written(i, path) }) {
			t.ds = append(t.ds, d.For(a.ID(t.in.Name)))
		}
	}
}

// written returns where the fact at a path of an assignment is written: most are a field of
// the workload, of the deployment target or of the cluster type, and the others follow from
// these.
func (t *test) written(i int, path string) model.Ref {
	a := &t.in.Schedule.Assignments[i]
	target := a.Workload.TargetRef(a.Target.Name)
	clusterType := a.ClusterType.Ref()
	candidates := []model.Ref{target.At(path), clusterType.At(path), target.Entity().At(path)}
	for _, p := range a.Policies {
		policy := model.Ref{Collection: "schedulingPolicies", Name: p}
		if pin := policy.At("pin").At(path); strings.HasPrefix(path, "version") || strings.HasPrefix(path, "manifests") {
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

// values holds the composed values of assignments against what tests want, once for all
// assignments that share them.
func (e *environment) values(ctx context.Context, h *compose.Holder) error {
	type asked struct {
		test *test
		ids  []string // of assignments
	}
	of := map[int32][]asked{} // by tuple
	var tuples []int32
	for _, t := range e.tests {
		if t.Values == nil || t.Invalid {
			continue
		}
		for _, i := range t.matches {
			n := e.Plan.TupleOf[i]
			if of[n] == nil {
				tuples = append(tuples, n)
			}
			id := e.Schedule.Assignments[i].ID(e.Name)
			if last := len(of[n]) - 1; last >= 0 && of[n][last].test == t {
				of[n][last].ids = append(of[n][last].ids, id)
			} else {
				of[n] = append(of[n], asked{t, []string{id}})
			}
		}
	}
	slices.Sort(tuples)
	return e.Graphs(ctx, tuples, func(n int32, g *compose.Graph) {
		for _, a := range of[n] {
			if g.Failed {
				a.test.unknown = true
				continue
			}
			for _, d := range h.Values(a.test.Values, g) {
				a.test.ds = append(a.test.ds, d.For(a.ids...))
			}
		}
	})
}
