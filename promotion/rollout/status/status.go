// Package status reads reports of rollouts from the statuses that reconcilers set on the commits
// of a GitOps branch: Flux's notification-controller
// (https://fluxcd.io/flux/components/notification/providers/#git-commit-status-updates) and Argo
// CD's notifications
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/notifications/services/github).
//
// The inputs are statuses, and the results are reports. Anybody who may set statuses can set any
// status, so Options.By limits the authors.
package status

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// Options configure which statuses count.
type Options struct {
	// By are the authors that may report, as forge.Status.By. If it is empty, anybody may report.
	By []string
	// Clusters are the names of clusters by their text in a status's name. With Flux, the text is
	// the first eight digits of the uid of the cluster's Provider, unless the Provider has a
	// commitStatusExpr. A text without an entry is a cluster's own name.
	Clusters map[string]string
}

// Source reads reports from statuses. Its methods may be called by several
// goroutines.
type Source struct {
	statuses func(context.Context, []git.Hash) (map[git.Hash][]forge.Status, error)
	options  Options
}

var _ rollout.Source = (*Source)(nil)

// New returns a source. statuses is forge.Forge.Statuses.
func New(statuses func(context.Context, []git.Hash) (map[git.Hash][]forge.Status, error),
	o Options) *Source {
	return &Source{statuses, o}
}

// Name returns "commit statuses".
func (*Source) Name() string { return "commit statuses" }

// Reports returns one report for each assignment and cluster that has a status on one of
// the wanted commits: see Read. Its errors are the errors of statuses.
func (s *Source) Reports(ctx context.Context, w *rollout.DesiredState) ([]rollout.Report, error) {
	statuses, err := s.statuses(ctx, w.Commits)
	if err != nil {
		return nil, fmt.Errorf("reading the statuses of %d commits of %s: %w", len(w.Commits),
			w.Environment, err)
	}
	return Read(w, statuses, s.options).Reports, nil
}

// Reading is the result of Read.
type Reading struct {
	Reports []rollout.Report // sorted by assignment and cluster
	// Ignored is the number of statuses of assignments by authors that may not report.
	Ignored int
}

// Read returns the reports of the wanted assignments. For each assignment and cluster, the newest
// commit with a status counts, and the newest status of each name on it. An older commit counts
// only if no newer one has any, because both want the same assignment.
//
// A status is about an assignment if a segment of its name, between slashes, is the name of the
// assignment's object. Examples are kustomization/NAME/0c9c2e41, argocd/NAME,
// continuous-delivery/NAME, prod-eu/kustomization/NAME and NAME. The rest of the name, without
// kinds of objects and programs, is the cluster. A name that matches two assignments is about
// neither.
func Read(w *rollout.DesiredState, statuses map[git.Hash][]forge.Status, o Options) Reading {
	r := reading{objects: objectsOf(w), options: o, statuses: map[subject][]datedStatus{}}
	for age, commit := range w.Commits {
		for order, s := range statuses[commit] {
			r.add(age, order, s)
		}
	}
	out := Reading{Ignored: r.ignored}
	for about, all := range r.statuses {
		out.Reports = append(out.Reports, report(about, all))
	}
	slices.SortFunc(out.Reports, func(a, b rollout.Report) int {
		return cmp.Or(cmp.Compare(a.Assignment, b.Assignment), cmp.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// subject is the assignment and the cluster of a status.
type subject struct{ assignment, cluster string }

// datedStatus is a status of a commit. Statuses of newer commits, and later ones of the same
// commit, are newer.
type datedStatus struct {
	age, order int // of the commit, 0 for the youngest; in its list
	status     forge.Status
}

// reading is the state of Read.
type reading struct {
	objects  map[string]subject // by the object's name
	options  Options
	ignored  int
	statuses map[subject][]datedStatus
}

// objectsOf returns the subject of each object. A name that two assignments have is about
// neither.
func objectsOf(w *rollout.DesiredState) map[string]subject {
	out := map[string]subject{}
	add := func(object string, about subject) {
		if object == "" {
			return
		}
		if other, there := out[object]; there && other.assignment != about.assignment {
			about = subject{}
		}
		out[object] = about
	}
	for i := range w.Assignments {
		a := &w.Assignments[i]
		add(a.Object, subject{assignment: a.ID})
		for object, cluster := range a.Objects {
			add(object, subject{a.ID, cluster})
		}
	}
	return out
}

func (r *reading) add(age, order int, s forge.Status) {
	about, ok := r.subjectOf(s.Name)
	if !ok {
		return
	}
	if len(r.options.By) > 0 && !slices.Contains(r.options.By, s.By) {
		r.ignored++
		return
	}
	r.statuses[about] = append(r.statuses[about], datedStatus{age, order, s})
}

// maxName is the maximal length of a status's name: forges allow 255 characters.
const maxName = 1024

// subjectOf returns the subject of a status, if it is about a wanted assignment.
func (r *reading) subjectOf(name string) (subject, bool) {
	if len(name) > maxName {
		return subject{}, false
	}
	var found subject
	var rest []string
	for segment := range strings.SplitSeq(name, "/") {
		if about, is := r.objects[segment]; is {
			if found != (subject{}) || about == (subject{}) {
				return subject{}, false
			}
			found = about
		} else if segment != "" && !slices.Contains(reconcilerSegments(), strings.ToLower(segment)) {
			rest = append(rest, segment)
		}
	}
	if found == (subject{}) {
		return subject{}, false
	}
	if found.cluster == "" {
		name := strings.Join(rest, "/")
		if known, is := r.options.Clusters[name]; is {
			name = known
		}
		found.cluster = terminal.Line(name)
	}
	return found, true
}

// reconcilerSegments are the segments of a name that are not a cluster, in lower case: the
// kinds of rollout.Assignment.Object, and the prefixes that notifications have, of all
// backends.
var reconcilerSegments = sync.OnceValue(func() (out []string) {
	for _, b := range all.List() {
		out = append(out, b.Traits().StatusNames...)
	}
	return out
})

// report returns the report of a subject: the report of the newest commit with statuses. If those
// statuses have several names, the newest of each name counts. The worst of them is the report,
// because they may be about two clusters.
func report(about subject, all []datedStatus) rollout.Report {
	names := map[string][]datedStatus{}
	youngest := all[0].age
	for _, s := range all {
		names[s.status.Name] = append(names[s.status.Name], s)
		youngest = min(youngest, s.age)
	}
	var worst rollout.Report
	for _, name := range slices.Sorted(maps.Keys(names)) {
		r, age := newest(about, names[name])
		if age != youngest {
			continue
		}
		if worst.Assignment == "" || cmp.Or(r.State.Compare(worst.State), r.At.Compare(worst.At)) > 0 {
			worst = r
		}
	}
	return worst
}

// newest returns the report of the newest status of one name, and the age of its commit.
// Since is the time of the first status since which all had that state, also on older
// commits.
func newest(about subject, all []datedStatus) (rollout.Report, int) {
	slices.SortFunc(all, func(a, b datedStatus) int {
		return cmp.Or(cmp.Compare(a.age, b.age), b.status.At.Compare(a.status.At),
			cmp.Compare(b.order, a.order))
	})
	first := all[0].status
	report := rollout.Report{
		Assignment: about.assignment, Cluster: about.cluster, State: stateOf(first.State),
		Message: terminal.Line(first.Description), By: terminal.Line(first.By), At: first.At,
		Since: first.At,
	}
	for _, s := range all[1:] {
		if stateOf(s.status.State) != report.State {
			break
		}
		if s.status.At.Before(report.Since) {
			report.Since = s.status.At
		}
	}
	return report, all[0].age
}

func stateOf(s forge.State) rollout.State {
	switch s {
	case forge.Success:
		return rollout.Healthy
	case forge.Failure:
		return rollout.Failed
	default:
		return rollout.Progressing
	}
}
