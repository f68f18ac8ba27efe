package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

// expectation are the commits, assignments and objects to look for.
type expectation struct {
	commits     map[string]bool // as git writes them
	assignments map[string]*rollout.Assignment
	objects     map[string]place // by the name of the object that applies a folder
	tree        origin.Tree
}

// place is the assignment and the cluster of an object that applies a folder.
type place struct {
	assignment *rollout.Assignment
	cluster    string // "" for the destination's
}

func newExpectation(w *rollout.DesiredState) *expectation {
	e := &expectation{commits: map[string]bool{}, assignments: map[string]*rollout.Assignment{},
		objects: map[string]place{}, tree: w.Tree}
	for _, c := range w.Commits {
		e.commits[c.String()] = true
	}
	for i := range w.Assignments {
		a := &w.Assignments[i]
		e.assignments[a.ID] = a
		if a.Object != "" {
			e.objects[a.Object] = place{assignment: a}
		}
		for name, cluster := range a.Objects {
			e.objects[name] = place{a, cluster}
		}
	}
	return e
}

// finding is an object of an assignment.
type finding struct {
	place
	// applies reports whether the object applies the folder, so that its revision is the
	// commit that runs. Other objects are the workload's own, from other repositories.
	applies bool
	object  string // for messages
	reconcilers.Judgement
	current bool // the state is about a wanted commit, if the object applies the folder
}

// find returns the finding of an object of an assignment, by the annotation or, without
// one, by its name. An object with the annotation of one assignment and the name of
// another's is of neither.
func (e *expectation) find(k reconcilers.Kind, o *unstructured.Unstructured, context string,
	of reconcilers.Sources) (finding, bool) {
	f := finding{object: k.Title(o), Judgement: k.Judge(o, of)}
	f.current = f.Concerns(e.commits)
	named, isNamed := e.objects[o.GetName()]
	isNamed = isNamed && k.Name != reconcilers.HelmReleases.Name
	id, annotated := o.GetAnnotations()[reconcilers.AssignmentAnnotation]
	a, wanted := e.assignments[id]
	switch {
	case annotated && (!wanted || isNamed && named.assignment != a), !annotated && !isNamed:
		return finding{}, false
	case isNamed:
		f.place, f.applies = named, true
	default:
		f.place, f.applies = place{assignment: a}, a.Object == ""
	}
	if f.cluster == "" {
		f.cluster = k.Destination(o, context)
	}
	if f.applies {
		if differs := e.tree.Differs(f.Origin, f.assignment.ClusterType,
			f.assignment.Target); differs != "" {
			f.current, f.Judgement = false, reconcilers.Judgement{State: rollout.Progressing,
				Message: "has drifted: " + differs + ": it " + f.Message}
		}
	}
	if f.applies && f.State != rollout.Progressing && !f.current {
		// The state of another commit does not prove anything about the wanted one.
		f.Judgement = reconcilers.Judgement{State: rollout.Progressing,
			Message: "is not at a wanted commit: " + f.Message}
	}
	return f, true
}

// reports returns one report for each assignment and cluster, sorted. It is the worst report of
// the objects. Among equally bad objects, it prefers one that does not apply the folder and only
// waits for others. If no object applies the folder and has a wanted commit, the report is not
// healthy, because it is not known which commit runs.
func (e *expectation) reports(found []finding, by string, now time.Time) []rollout.Report {
	type key struct{ assignment, cluster string }
	groups := map[key][]finding{}
	for _, f := range found {
		k := key{f.assignment.ID, f.cluster}
		groups[k] = append(groups[k], f)
	}
	var out []rollout.Report
	for k, group := range groups {
		wait(group)
		slices.SortFunc(group, func(a, b finding) int {
			if order := b.State.Compare(a.State); order != 0 || a.applies == b.applies {
				return cmp.Or(order, strings.Compare(a.object, b.object))
			} else if b.applies {
				return -1
			}
			return 1
		})
		worst := group[0]
		r := rollout.Report{Assignment: k.assignment, Cluster: k.cluster, By: by, State: worst.State,
			At: now, Since: worstSince(group)}
		if worst.Suspended != "" {
			r.State = rollout.Suspended
		}
		if worst.State != rollout.Healthy {
			r.Message = terminal.Line(fmt.Sprintf("%s %s", worst.object, worst.Message))
		}
		if r.State == rollout.Healthy &&
			!slices.ContainsFunc(group, func(f finding) bool { return f.applies && f.current }) {
			r.State, r.Since = rollout.Progressing, time.Time{}
			r.Message = terminal.Line("no object says which commit runs: " +
				cmp.Or(worst.assignment.Object, "the one that brings the folder") + " is not there")
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b rollout.Report) int {
		return cmp.Or(strings.Compare(a.Assignment, b.Assignment), strings.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// wait makes failures of other objects wait for the object that applies the folder, as long as
// that object has not applied a wanted commit. The failures are about the commit that it applied
// before.
func wait(group []finding) {
	if !slices.ContainsFunc(group,
		func(f finding) bool { return f.applies && (!f.current || f.Last != "") }) {
		return
	}
	for i := range group {
		if f := &group[i]; !f.applies && f.State == rollout.Failed {
			f.Judgement = reconcilers.Judgement{State: rollout.Progressing,
				Message: "is not of a wanted commit: " + f.Message}
		}
	}
}

// worstSince returns the latest time since which the objects in the worst state, the first's,
// have been in it.
func worstSince(group []finding) time.Time {
	last := group[0].Since
	for _, f := range group {
		if f.State != group[0].State {
			break
		}
		if f.Since.IsZero() {
			return time.Time{}
		}
		if f.Since.After(last) {
			last = f.Since
		}
	}
	return last
}
