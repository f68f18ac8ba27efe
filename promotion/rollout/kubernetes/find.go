package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// assignmentAnnotation is on every object that kalypso emits.
const assignmentAnnotation = "kalypso.io/assignment"

// expected is what objects are looked for.
type expected struct {
	commits     map[string]bool // as git writes them
	assignments map[string]*rollout.Assignment
	objects     map[string]place // by the name of what brings a folder
}

// place is what an object brings a folder of, and where.
type place struct {
	assignment *rollout.Assignment
	cluster    string // "" for that of the destination
}

func newExpected(w *rollout.Wanted) *expected {
	e := &expected{commits: map[string]bool{}, assignments: map[string]*rollout.Assignment{}, objects: map[string]place{}}
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
	// brings says that the object brings the folder, so that what it applied says
	// which commit runs. Others are the workload's own, of other repositories.
	brings bool
	object string // for messages
	judgement
}

// judgement is what the status of an object says.
type judgement struct {
	state   rollout.State
	message string
	// current says that what the state is about is a wanted commit, as far as the
	// object brings a folder.
	current bool
	since   time.Time // zero where the object does not say
}

// find reports whether an object is of an assignment, by the annotation or, where that is
// missing, by its name, and what it says. An object that says it is of one assignment
// and has the name of another's is of none.
func (e *expected) find(k kind, o *unstructured.Unstructured, context string) (finding, bool) {
	f := finding{object: k.name + " " + o.GetNamespace() + "/" + o.GetName()}
	named, isNamed := e.objects[o.GetName()]
	isNamed = isNamed && k.name != helmReleases.name
	id, annotated := o.GetAnnotations()[assignmentAnnotation]
	a, wanted := e.assignments[id]
	switch {
	case annotated && (!wanted || isNamed && named.assignment != a), !annotated && !isNamed:
		return finding{}, false
	case isNamed:
		f.place, f.brings = named, true
	default:
		f.place, f.brings = place{assignment: a}, a.Object == ""
	}
	if f.cluster == "" {
		f.cluster = destination(k, o, context)
	}
	var err error
	if f.judgement, err = k.judge(o, e.commits); err != nil {
		f.judgement = judgement{state: rollout.Progressing, message: "has a status that cannot be read: " + err.Error()}
	}
	if f.brings && f.state != rollout.Progressing && !f.current {
		// What became of another commit, good or bad, says nothing of the wanted one.
		f.judgement = judgement{state: rollout.Progressing, message: "is not at a wanted commit: " + f.message}
	}
	return f, true
}

// destination returns the cluster that an object brings something to: the context's
// own, unless an Application names another one; "" where it has but an address.
func destination(k kind, o *unstructured.Unstructured, context string) string {
	if k.name != applications.name {
		return context
	}
	name, _, _ := unstructured.NestedString(o.Object, "spec", "destination", "name")
	server, _, _ := unstructured.NestedString(o.Object, "spec", "destination", "server")
	switch {
	case name != "" && name != "in-cluster":
		return terminal.Line(name)
	case server != "" && server != "https://kubernetes.default.svc":
		return ""
	}
	return context
}

// badness orders the states that objects have, the worst last.
var badness = map[rollout.State]int{rollout.Healthy: 0, rollout.Progressing: 1, rollout.Failed: 2}

// reports returns one report for each assignment and cluster, sorted: the worst of
// what its objects say. Without an object that brings the folder and has applied a
// wanted commit nothing is healthy, because nothing says what it is that is.
func (e *expected) reports(found []finding, by string, now time.Time) []rollout.Report {
	type key struct{ assignment, cluster string }
	groups := map[key][]finding{}
	for _, f := range found {
		k := key{f.assignment.ID, f.cluster}
		groups[k] = append(groups[k], f)
	}
	var out []rollout.Report
	for k, group := range groups {
		slices.SortFunc(group, func(a, b finding) int {
			return cmp.Or(cmp.Compare(badness[b.state], badness[a.state]), strings.Compare(a.object, b.object))
		})
		worst := group[0]
		r := rollout.Report{Assignment: k.assignment, Cluster: k.cluster, By: by, State: worst.state, At: now, Since: since(group)}
		if worst.state != rollout.Healthy {
			r.Message = terminal.Line(fmt.Sprintf("%s %s", worst.object, worst.message))
		}
		if r.State == rollout.Healthy && !slices.ContainsFunc(group, func(f finding) bool { return f.brings && f.current }) {
			r.State, r.Since = rollout.Progressing, time.Time{}
			r.Message = terminal.Line("no object says which commit runs: " + cmp.Or(worst.assignment.Object, "the one that brings the folder") + " is not there")
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b rollout.Report) int {
		return cmp.Or(strings.Compare(a.Assignment, b.Assignment), strings.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// since returns from when on all of a group that are in the worst state, the first's,
// have been in it.
func since(group []finding) time.Time {
	last := group[0].since
	for _, f := range group {
		if f.state != group[0].state {
			break
		}
		if f.since.IsZero() {
			return time.Time{}
		}
		if f.since.After(last) {
			last = f.since
		}
	}
	return last
}
