package observe

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

// subject identifies the assignment or the object that a finding is about.
type subject struct{ cluster, assignment, object string }

// finding is an object that kalypso wrote.
type finding struct {
	subject
	state   state.ReportedState
	message string
	since   time.Time
	title   string
	// applies is how certain it is that the object applies the assignment's folder. If it does, its
	// commit is from the GitOps branch: 2 by its name, 1 by its kind, 0 not at all.
	applies int
	commit  string
	from    origin.Origin
	applied string // the commit that was applied last, if that is not commit; may be state.Unknown
	// the commit before it, if the state does not tell whether their content is the same
	before  string
	last    string // the commit that other objects are about, if that is not commit
	created time.Time
	uid     string
}

// find returns the finding of an object on a cluster. It returns false if kalypso did not write the
// object, or if the object is not part of an assignment.
func find(k reconcilers.Kind, o *unstructured.Unstructured, on string, m *memory,
	of reconcilers.Sources) (finding, bool) {
	f := finding{title: k.Title(o), created: o.GetCreationTimestamp().Time, uid: string(o.GetUID())}
	f.cluster = destination(k, o, on)
	switch assignment := assignmentOf(k, o); {
	case assignment != "":
		f.assignment, f.applies = assignment, applies(k, o.GetName(), assignment, f.cluster)
	case (k.Name == reconcilers.Kustomizations.Name || k.Name == reconcilers.Applications.Name) &&
		strings.HasSuffix(o.GetName(), assignmentSuffix):
		f.object, f.applies = o.GetName(), 2
	default:
		return f, false
	}
	f.judge(k, o, m, of)
	return f, f.cluster != ""
}

// judge sets the fields that follow from an object's status.
func (f *finding) judge(k reconcilers.Kind, o *unstructured.Unstructured, m *memory,
	of reconcilers.Sources) {
	j := k.Judge(o, of)
	m.recall(f.title, o, &j)
	f.state, f.message, f.since = reported(&j), j.Message, j.Since
	if f.applies > 0 {
		f.commit, f.from, f.before, f.last = first(j.At), j.Origin, j.Before, j.Last
		if f.commit != "" && j.State != rollout.Healthy && !slices.Contains(j.Applied, f.commit) {
			f.applied = cmp.Or(first(j.Applied), state.Unknown)
		}
	}
}

// Event returns the cluster and the item of an object that its reconciler sends by itself, like
// those of a snapshot. on is the cluster that sends the object. The hub knows an object without an
// assignment by its name. If sure is false, the object may be about the workload's own repository.
// It then applies the assignment's folder only if its commit is one of the GitOps branch.
func Event(k reconcilers.Kind, o *unstructured.Unstructured, on string) (cluster string,
	item api.Item, sure bool) {
	f, ok := find(k, o, on, nil, nil)
	if !ok {
		f.object, f.applies = o.GetName(), 2
		f.judge(k, o, nil, nil)
	}
	item = f.item(f.subject)
	item.State, item.Since = f.state.String(), f.since
	if f.state != state.ReportedOK {
		item.Message = bounded(f.title + " " + f.message)
	}
	return f.cluster, item, f.applies > 1
}

// assignmentSuffix ends the names that backends.AssignmentName returns, unless they are cut.
var assignmentSuffix = backends.AssignmentName("", "", "")[len("--"):]

// assignmentOf returns the assignment that an object names, or "" if it names no assignment.
// Bundles of Fleet name it in labels.
func assignmentOf(k reconcilers.Kind, o *unstructured.Unstructured) string {
	if k.Name != reconcilers.BundleDeployments.Name {
		return o.GetAnnotations()[reconcilers.AssignmentAnnotation]
	}
	labels := o.GetLabels()
	environment, clusterType, target := labels["kalypso.io/environment"],
		labels["kalypso.io/cluster-type"], labels["kalypso.io/deployment-target"]
	if environment == "" || clusterType == "" || target == "" {
		return ""
	}
	return environment + "/" + clusterType + "/" + target
}

// applies returns how certain it is that an object applies an assignment's folder. The objects of
// kalypso's own backends have known names, but a team's own backend may choose any name.
func applies(k reconcilers.Kind, name, assignment, cluster string) int {
	switch k.Name {
	case reconcilers.HelmReleases.Name:
		return 0
	case reconcilers.BundleDeployments.Name:
		return 2
	}
	environment, rest, _ := strings.Cut(assignment, "/")
	clusterType, target, _ := strings.Cut(rest, "/")
	usual := backends.AssignmentName(environment, clusterType, target)
	if name == usual || name == model.ShortName(usual+"-"+cluster, model.MaxLabel) {
		return 2
	}
	return 1
}

// destination returns the cluster that an object is for. It returns the host if only the address is
// known.
func destination(k reconcilers.Kind, o *unstructured.Unstructured, on string) string {
	name := k.Destination(o, on)
	if u, err := url.Parse(reconcilers.Server(o)); name == "" && err == nil {
		return terminal.Line(u.Host)
	}
	return name
}

// item returns the item of an object that applies the folder of an assignment, without its state.
func (f *finding) item(of subject) api.Item {
	return api.Item{
		Assignment: of.assignment, Object: of.object, Commit: f.commit, Applied: f.applied,
		Repository: f.from.Repository, Branch: f.from.Branch, Path: f.from.Path,
	}
}

func reported(j *reconcilers.Judgement) state.ReportedState {
	switch {
	case j.State == rollout.Healthy:
		return state.ReportedOK
	case j.State == rollout.Failed:
		return state.ReportedFailed
	case j.Suspended != "":
		return state.ReportedSuspended
	case j.Drifted:
		return state.ReportedDrifted
	}
	return state.ReportedProgressing
}

// first returns the first commit among revisions. Versions of charts are not commits.
func first(revisions []string) string {
	for _, r := range revisions {
		if (len(r) == 40 || len(r) == 64) && strings.Trim(r, "0123456789abcdef") == "" {
			return r
		}
	}
	return ""
}

// maxMessage is how many bytes of a message a hub accepts.
const maxMessage = 4096

// bounded returns a text as a message.
func bounded(text string) string {
	text = terminal.Line(text)
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// itemsOf returns an item for each subject, from its worst object. Among equally bad objects it
// chooses the innermost, because the others wait for it. The commit comes from the object that
// applies the folder. If that object has applied nothing yet, and nothing has failed, there is no
// item.
func itemsOf(found []finding) map[string][]api.Item {
	groups := map[subject][]finding{}
	for _, f := range found {
		groups[f.subject] = append(groups[f.subject], f)
	}
	out := map[string][]api.Item{}
	for s, group := range groups {
		slices.SortFunc(group, func(a, b finding) int {
			return cmp.Or(b.state.Compare(a.state), cmp.Compare(a.applies, b.applies),
				strings.Compare(a.title, b.title))
		})
		worst, applied := group[0], group[0]
		for _, f := range group {
			if f.applies > applied.applies {
				applied = f
			}
		}
		item := applied.item(s)
		item.State, item.Since = worst.state.String(), worstSince(group)
		if applied.commit == "" && worst.state != state.ReportedFailed {
			continue
		}
		if alone := len(group) == 1 || group[1].state.Compare(worst.state) < 0; alone &&
			worst.title == applied.title {
			item.Before = applied.before // all else is ready
		}
		// the failure belongs to the commit that was applied before
		if worst.state == state.ReportedFailed && applied.state != worst.state && applied.last != "" {
			item.Commit = applied.last
		}
		if worst.state != state.ReportedOK {
			item.Message = bounded(worst.title + " " + worst.message)
		}
		out[s.cluster] = append(out[s.cluster], item)
	}
	return out
}

// uidsOf returns the uid of the oldest object of each cluster. It distinguishes the cluster from
// another one of its name, because later objects do not change it.
func uidsOf(found []finding) map[string]string {
	oldest := map[string]finding{}
	for _, f := range found {
		if is, there := oldest[f.cluster]; !there ||
			cmp.Or(f.created.Compare(is.created), strings.Compare(f.uid, is.uid)) < 0 {
			oldest[f.cluster] = f
		}
	}
	out := map[string]string{}
	for name, f := range oldest {
		out[name] = f.uid
	}
	return out
}

// worstSince returns the latest time at which an object entered the worst state, which is the first
// object's. It is zero if one of them does not have that time.
func worstSince(group []finding) (last time.Time) {
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

// memory has the failures of an API server's objects at the last read. While a failed commit is
// applied again, its object lacks some or all of that information.
type memory struct{ was, is map[string]failure }

// failure is how an object failed to apply a commit.
type failure struct {
	commit     string
	generation int64
	message    string
	since      time.Time
}

// recall marks a judgement as failed if it is about one more attempt after a failure. m may be nil.
func (m *memory) recall(title string, o *unstructured.Unstructured, j *reconcilers.Judgement) {
	if m == nil {
		return
	}
	key, commit := title+" "+string(o.GetUID()), first(j.At)
	switch was, there := m.was[key]; {
	case commit == "":
	case j.State == rollout.Failed && !j.Again:
		m.is[key] = failure{commit, o.GetGeneration(), j.Message, j.Since}
	case j.Again && there && was.commit == commit && was.generation == o.GetGeneration():
		if j.Since.IsZero() {
			j.Since = was.since
		}
		j.State, j.Message, m.is[key] = rollout.Failed, was.message, was
	}
}
