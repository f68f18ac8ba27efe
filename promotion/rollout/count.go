package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Unreachable is how clusters count that have reported once, but not lately.
type Unreachable string

// The values of Unreachable.
const (
	Block   Unreachable = "block"   // wait for them, also ""
	Exclude Unreachable = "exclude" // do not count them
)

// Options configure Count.
type Options struct {
	Now time.Time
	// StaleAfter is the maximal age of a report; 0 for any. A report without a time is too
	// old. A failure never is: it holds until a newer report, because otherwise a broken
	// cluster would become one that may be excluded.
	StaleAfter  time.Duration
	Unreachable Unreachable
}

// Tally counts clusters by the state of an assignment on them. The states add up to Wanted.
type Tally struct {
	Wanted      int `json:"wanted"`
	Healthy     int `json:"healthy"`
	Progressing int `json:"progressing"`
	Suspended   int `json:"suspended,omitempty"`
	Failed      int `json:"failed"`
	Stale       int `json:"stale"`
	Unknown     int `json:"unknown"`
	// Excluded is the number of Stale clusters that are not compared with Healthy.
	Excluded int `json:"excluded"`
}

// Counts is the state of a rollout. Its own Tally is the sum of the tallies of its
// assignments. An assignment on each of 100 clusters counts 100 times, so that "73/100 ok"
// counts pairs, and one cluster that is down does not fail all its assignments
// everywhere.
type Counts struct {
	Tally
	Assignments []AssignmentState `json:"assignments"` // sorted by ID
}

// AssignmentState is the state of an assignment on all of its clusters.
type AssignmentState struct {
	ID       string `json:"id"`
	Workload string `json:"workload"`
	Version  string `json:"version,omitempty"`
	// State is the worst of its clusters: Failed, then Unknown, Stale, Progressing,
	// Healthy. Excluded ones do not count, unless there are no others.
	State State `json:"state"`
	// Cluster, Message and By belong to the first cluster in that state. They are "" without a
	// report. Cluster is also "" if the report does not name one.
	Cluster string `json:"cluster,omitempty"`
	Message string `json:"message,omitempty"`
	By      string `json:"by,omitempty"`
	// Since is since when all clusters have been in State; the zero Time if it is not
	// known for one of them.
	Since time.Time `json:"since,omitzero"`
	// Counts counts the clusters that the platform lists. If it lists no clusters, the
	// assignment counts as one, in State: clusters that never reported are not missed.
	Counts Tally `json:"counts,omitzero"`
	// Clusters are the clusters that the platform lists, sorted by name. If it lists no clusters,
	// they are the clusters that have reported.
	Clusters []ClusterState `json:"clusters"`
}

// ClusterState is the state of an assignment on a cluster.
type ClusterState struct {
	Name  string `json:"name"` // "" if the report names none
	State State  `json:"state"`
	// Excluded reports whether it is not counted.
	Excluded bool      `json:"excluded,omitempty"`
	Message  string    `json:"message,omitempty"`
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at,omitzero"`    // the time of the report
	Since    time.Time `json:"since,omitzero"` // since when the state holds
}

// clustersOf returns the states of clusters, given the report of each.
func clustersOf(reports []Report, exclude bool) []ClusterState {
	out := make([]ClusterState, len(reports))
	for i, r := range reports {
		out[i] = ClusterState{Name: r.Cluster, State: r.State, Excluded: exclude && r.State == Stale,
			Message: r.Message, By: r.By, At: r.At, Since: r.Since}
	}
	return out
}

// Count returns the state of the clusters. For each assignment, the newest report of each cluster
// counts. If several have the same time, the worst of them counts. A report from the future does
// not count, unless it is a failure or stale. Such a report counts as of now. The result does not
// depend on the order of the reports.
//
// If the platform lists clusters, each of them must report by that name. A report without a
// cluster belongs to the only cluster, if there is only one. The counts show other reports for
// clusters without reports. Such reports count only if they are failures, because each failure
// may be about such a cluster.
func Count(w *DesiredState, reports []Report, o Options) *Counts {
	newest := newestReports(reports, o)
	counts := &Counts{Assignments: make([]AssignmentState, 0, len(w.Assignments))}
	for i := range w.Assignments {
		a := &w.Assignments[i]
		state := stateOf(a, newest[a.ID], o.Unreachable == Exclude)
		t := &counts.Tally
		t.Wanted += state.Counts.Wanted
		t.Healthy += state.Counts.Healthy
		t.Progressing += state.Counts.Progressing
		t.Suspended += state.Counts.Suspended
		t.Failed += state.Counts.Failed
		t.Stale += state.Counts.Stale
		t.Unknown += state.Counts.Unknown
		t.Excluded += state.Counts.Excluded
		counts.Assignments = append(counts.Assignments, state)
	}
	slices.SortFunc(counts.Assignments,
		func(a, b AssignmentState) int { return strings.Compare(a.ID, b.ID) })
	return counts
}

// newestReports returns the reports that count, by assignment and cluster, with the stale
// ones marked.
func newestReports(reports []Report, o Options) map[string]map[string]Report {
	newest := map[string]map[string]Report{}
	for _, r := range reports {
		switch r.State {
		case Unknown, Healthy, Progressing, Suspended, Stale, Failed:
		default: // an unknown state of a source
			r.State = Progressing
		}
		switch future := r.At.After(o.Now); {
		case future && (r.State == Failed || r.State == Stale):
			r.At = o.Now
		case future:
			r = Report{Cluster: r.Cluster, Assignment: r.Assignment, By: r.By, State: Unknown,
				Message: fmt.Sprintf("reports %s as of %s, which has not come yet", r.State,
					r.At.UTC().Format(time.RFC3339))}
		}
		clusters := newest[r.Assignment]
		if clusters == nil {
			clusters = map[string]Report{}
			newest[r.Assignment] = clusters
		}
		if last, there := clusters[r.Cluster]; !there || compareReports(last, r) < 0 {
			clusters[r.Cluster] = r
		}
	}
	for _, clusters := range newest {
		for name, r := range clusters {
			if o.StaleAfter > 0 && r.State != Failed && r.State != Unknown &&
				r.At.Before(o.Now.Add(-o.StaleAfter)) {
				r.Since, r.State = time.Time{}, Stale
				clusters[name] = r
			}
		}
	}
	return newest
}

// compareReports orders two reports of a cluster: the greater one counts. It is 0 for equal
// ones only.
func compareReports(a, b Report) int {
	return cmp.Or(a.At.Compare(b.At), a.State.Compare(b.State),
		a.Since.Compare(b.Since), cmp.Compare(a.Message, b.Message), cmp.Compare(a.By, b.By))
}

// stateOf returns the state of an assignment, given the newest report of each cluster.
func stateOf(a *Assignment, newest map[string]Report, exclude bool) AssignmentState {
	if len(a.Clusters) == 0 {
		var all []Report
		for _, r := range newest {
			all = append(all, r)
		}
		slices.SortFunc(all, func(a, b Report) int { return strings.Compare(a.Cluster, b.Cluster) })
		clusters := clustersOf(all, exclude)
		if len(all) == 0 {
			all = []Report{{State: Unknown}}
		}
		state := summary(a, all, exclude)
		state.Counts.count(state.State, exclude)
		state.Clusters = clusters
		return state
	}
	clusters := slices.Compact(slices.Sorted(slices.Values(a.Clusters)))
	strangers := others(clusters, newest)
	var tally Tally
	all := make([]Report, 0, len(clusters))
	for _, name := range clusters {
		r, there := newest[name]
		if unnamed, reported := newest[""]; reported && len(clusters) == 1 &&
			(!there || compareReports(r, unnamed) < 0) {
			r, there = unnamed, true
			r.Cluster = name
		}
		if !there {
			r, strangers = silent(name, strangers)
		}
		tally.count(r.State, exclude)
		all = append(all, r)
	}
	state := summary(a, all, exclude)
	state.Counts, state.Clusters = tally, clustersOf(all, exclude)
	return state
}

// others returns the reports of clusters that are not an assignment's, failures first,
// sorted by cluster.
func others(clusters []string, newest map[string]Report) []Report {
	var out []Report
	for name, r := range newest {
		if _, listed := slices.BinarySearch(clusters, name); !listed {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Report) int {
		return cmp.Or(b.State.Compare(a.State), strings.Compare(a.Cluster, b.Cluster))
	})
	return out
}

// silent returns the state of a cluster that has not reported, given the reports of others,
// and the reports for the next one: a failure counts for one cluster.
func silent(cluster string, others []Report) (Report, []Report) {
	if len(others) == 0 {
		return Report{Cluster: cluster, State: Unknown}, nil
	}
	if r := others[0]; r.State == Failed {
		return Report{Cluster: cluster, State: Failed, By: r.By, Since: r.Since,
			Message: fmt.Sprintf("%q, which may be it, reports: %s", r.Cluster, r.Message)}, others[1:]
	}
	return Report{Cluster: cluster, State: Unknown, By: others[0].By,
		Message: fmt.Sprintf("%q reports, which is none of its clusters", others[0].Cluster)}, others
}

// summary returns the worst of at least one report. Excluded ones do not count, unless
// there are no others.
func summary(a *Assignment, reports []Report, exclude bool) AssignmentState {
	counted := reports
	if exclude {
		counted = slices.DeleteFunc(slices.Clone(reports),
			func(r Report) bool { return r.State == Stale })
	}
	if len(counted) == 0 {
		counted = reports
	}
	worst := counted[0]
	for _, r := range counted {
		if r.State.Compare(worst.State) > 0 {
			worst = r
		}
	}
	state := AssignmentState{ID: a.ID, Workload: a.Workload, Version: a.Version, State: worst.State,
		Cluster: worst.Cluster, Message: worst.Message, By: worst.By, Since: worst.Since}
	for _, r := range counted {
		switch {
		case r.State != worst.State || state.Since.IsZero():
		case r.Since.IsZero() || r.Since.After(state.Since):
			state.Since = r.Since
		}
	}
	return state
}

func (t *Tally) count(s State, exclude bool) {
	t.Wanted++
	switch s {
	case Healthy:
		t.Healthy++
	case Progressing:
		t.Progressing++
	case Suspended:
		t.Suspended++
	case Failed:
		t.Failed++
	case Stale:
		t.Stale++
		if exclude {
			t.Excluded++
		}
	default:
		t.Unknown++
	}
}

// String returns the tally as in "73/100 ok, 2 failed, 25 stale", without zeros. Excluded
// clusters are among the 100 and the 25, so that they are always visible.
func (t Tally) String() string {
	if t.Wanted == 0 {
		return "nothing to roll out"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d/%d ok", t.Healthy, t.Wanted)
	for _, c := range []struct {
		n    int
		what string
	}{{t.Failed, "failed"}, {t.Progressing, "progressing"}, {t.Suspended, "suspended"},
		{t.Stale, "stale"}, {t.Unknown, "unknown"}} {
		if c.n > 0 {
			fmt.Fprintf(&b, ", %d %s", c.n, c.what)
		}
	}
	if t.Excluded > 0 {
		fmt.Fprintf(&b, " (%d excluded)", t.Excluded)
	}
	return b.String()
}
