// Package status reads reports of rollouts from the statuses that reconcilers set on
// the commits of a GitOps branch: Flux's notification-controller
// (https://fluxcd.io/flux/components/notification/providers/#git-commit-status-updates)
// and Argo CD's notifications
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/notifications/services/github).
//
// In come the statuses, out come reports. Anybody who may set statuses can say
// anything: Options.By says whose word counts.
package status

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// Options say which statuses count.
type Options struct {
	// By are who may report, as forge.Status.By; none for anybody.
	By []string
	// Clusters are the names of clusters by what stands for them in a status's name:
	// with Flux the first eight digits of the uid of the cluster's Provider, unless
	// that has a commitStatusExpr. What is not among them is a cluster's own name.
	Clusters map[string]string
}

// Source reads reports from statuses. Its methods may be called by several
// goroutines.
type Source struct {
	statuses func(context.Context, []git.Hash) (map[git.Hash][]forge.Status, error)
	options  Options
}

var _ rollout.Source = (*Source)(nil)

// New returns a source that asks for statuses as forge.Forge.Statuses answers.
func New(statuses func(context.Context, []git.Hash) (map[git.Hash][]forge.Status, error), o Options) *Source {
	return &Source{statuses, o}
}

// Name is "commit statuses".
func (*Source) Name() string { return "commit statuses" }

// Reports returns one report for each assignment and cluster that a status of one of
// the wanted commits is about: see Read. Its errors are those of asking.
func (s *Source) Reports(ctx context.Context, w *rollout.Wanted) ([]rollout.Report, error) {
	statuses, err := s.statuses(ctx, w.Commits)
	if err != nil {
		return nil, fmt.Errorf("reading the statuses of %d commits of %s: %w", len(w.Commits), w.Environment, err)
	}
	return Read(w, statuses, s.options).Reports, nil
}

// Reading is what statuses say.
type Reading struct {
	Reports []rollout.Report // sorted by assignment and cluster
	// Ignored is how many statuses are about an assignment and are not by who may
	// report.
	Ignored int
}

// Read returns what statuses say of what is wanted. For each assignment and cluster
// the newest commit counts that has a status of it, and of that the newest one of each name; what
// an older commit has counts only where no newer one has any, because the same
// assignment was wanted by both.
//
// A status is about an assignment if a whole segment of its name, between slashes, is
// the name of the assignment's object: kustomization/NAME/0c9c2e41, argocd/NAME,
// continuous-delivery/NAME, prod-eu/kustomization/NAME, NAME. What stands beside it, and is
// no kind of object or program, is the cluster. A name that fits two assignments is
// about none.
func Read(w *rollout.Wanted, statuses map[git.Hash][]forge.Status, o Options) Reading {
	r := reading{objects: objectsOf(w), options: o, said: map[subject][]said{}}
	for age, commit := range w.Commits {
		for order, s := range statuses[commit] {
			r.add(age, order, s)
		}
	}
	out := Reading{Ignored: r.ignored}
	for about, all := range r.said {
		out.Reports = append(out.Reports, report(about, all))
	}
	slices.SortFunc(out.Reports, func(a, b rollout.Report) int {
		return cmp.Or(cmp.Compare(a.Assignment, b.Assignment), cmp.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// subject is what a status is about.
type subject struct{ assignment, cluster string }

// said is a status of a commit. Statuses of younger commits, and of one commit those
// that come later, are newer.
type said struct {
	age, order int // of the commit, 0 for the youngest; in its list
	status     forge.Status
}

// reading is the state of Read.
type reading struct {
	objects map[string]subject // by the object's name
	options Options
	ignored int
	said    map[subject][]said
}

// objectsOf returns what each object is about. Two assignments with one name of an
// object cannot be told apart: the name is that of neither.
func objectsOf(w *rollout.Wanted) map[string]subject {
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
	about, ok := r.about(s.Name)
	if !ok {
		return
	}
	if len(r.options.By) > 0 && !slices.Contains(r.options.By, s.By) {
		r.ignored++
		return
	}
	r.said[about] = append(r.said[about], said{age, order, s})
}

// maxName is how long the name of a status may be: those of forges have at most
// 255 characters.
const maxName = 1024

// about says what a status is about, if it is about anything that is wanted.
func (r *reading) about(name string) (subject, bool) {
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
		} else if !kinds[strings.ToLower(segment)] {
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

// kinds are the segments of a name that say what reports and not which: the kinds of
// object that rollout.Assignment.Object is, and what the examples of Argo CD's
// notifications put in front.
var kinds = map[string]bool{"kustomization": true, "application": true, "argocd": true, "continuous-delivery": true, "": true}

// report returns the report that the statuses of a subject make: that of the youngest
// commit that has any. Where statuses of several names are about the subject, the
// newest of each counts, and the worst of those: they may be of two clusters that
// nothing tells apart.
func report(about subject, all []said) rollout.Report {
	names := map[string][]said{}
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
		if worst.Assignment == "" || cmp.Or(badness[r.State]-badness[worst.State], r.At.Compare(worst.At)) > 0 {
			worst = r
		}
	}
	return worst
}

// badness orders the states that statuses have, the worst last.
var badness = map[rollout.State]int{rollout.Healthy: 0, rollout.Progressing: 1, rollout.Failed: 2}

// newest returns the report that the newest of the statuses of one name makes, and the
// age of its commit. It has been so since the first of those that say the same without
// another between them, also of older commits.
func newest(about subject, all []said) (rollout.Report, int) {
	slices.SortFunc(all, func(a, b said) int {
		return cmp.Or(cmp.Compare(a.age, b.age), b.status.At.Compare(a.status.At), cmp.Compare(b.order, a.order))
	})
	first := all[0].status
	report := rollout.Report{
		Assignment: about.assignment, Cluster: about.cluster, State: stateOf(first.State),
		Message: terminal.Line(first.Description), By: terminal.Line(first.By), At: first.At, Since: first.At,
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
