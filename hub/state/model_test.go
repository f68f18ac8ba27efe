package state_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// reference is what a Fleet has to be, as simply as it can be said: all that was ever wanted and
// reported, looked at from the beginning each time.
type reference struct {
	stale   time.Duration
	wanted  *state.Wanted
	reports []state.Report
}

// state returns the state of an assignment on a cluster.
func (m *reference) state(c state.Cluster, f state.Folder, t state.Target, now time.Time) state.State {
	var last, snapshot time.Time
	for _, r := range m.reports {
		if r.Cluster == c.Name && r.Received.After(last) {
			last = r.Received
		}
	}
	var best state.Item
	var at time.Time
	for pass := range 2 { // snapshots first: what is older than the newest does not count
		for _, r := range m.reports {
			when := r.At
			if when.After(r.Received) {
				when = r.Received
			}
			if r.Cluster != c.Name || r.Snapshot != (pass == 0) || when.Before(snapshot) {
				continue
			}
			is, found := state.Item{}, r.Snapshot
			for _, it := range r.Items {
				if it.Assignment == m.wanted.Environment+"/"+f.ClusterType+"/"+t.Name {
					is, found = it, true
				}
			}
			if r.Snapshot {
				snapshot = when
			}
			if found && (when.After(at) || when.Equal(at) && cmp.Or(cmp.Compare(is.State, best.State), cmp.Compare(is.Commit, best.Commit)) > 0) {
				best, at = is, when
			}
		}
	}
	stale := !last.IsZero() && now.Sub(last) > m.stale
	if best.State == state.Nothing {
		if stale && !at.IsZero() {
			return state.Stale
		}
		return state.Missing
	}
	running, known := "", false
	if place := m.wanted.In(best.Commit); place >= 0 {
		running, known = m.wanted.At(place, state.Key(f.Name, t.Name)), true
		if c.Entry != "" && m.wanted.At(place, state.EntryKey(c.Name)) != c.Entry {
			running = ""
		}
	}
	switch ready := known && running == t.Digest; {
	case ready && best.State == state.ReportedFailed:
		return state.Failed
	case stale:
		return state.Stale
	case !known:
		return state.Drifted
	case !ready:
		return state.Behind
	case best.State == state.ReportedDrifted:
		return state.Drifted
	case best.State == state.ReportedProgressing:
		return state.Progressing
	}
	return state.OK
}

// world makes random histories.
type world struct {
	*rand.Rand
	start   time.Time
	commits []state.Commit // newest first
	digests map[string]string
}

const unknownCommit = "ffff"

func (w *world) wanted() *state.Wanted {
	out := &state.Wanted{Environment: "prod", Commits: w.commits}
	for _, name := range []string{"edge.a", "edge.b"} {
		f := state.Folder{Name: name, ClusterType: "edge", Listed: true}
		for _, t := range []string{"hello-main", "shop-main", "till-main"} {
			if d := w.digests[state.Key(name, t)]; d != "" {
				f.Targets = append(f.Targets, state.Target{Name: t, Workload: t[:4], Digest: d})
			}
		}
		out.Folders = append(out.Folders, f)
	}
	for i := range 6 {
		c := state.Cluster{Name: fmt.Sprintf("c%d", i), Folder: out.Folders[i%2].Name, Entry: w.digests[state.EntryKey(fmt.Sprintf("c%d", i))]}
		out.Clusters = append(out.Clusters, c)
	}
	return out
}

// commit changes some digests: to new ones, to those of before, or of something else.
func (w *world) commit() {
	was := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(w.digests)) {
		if w.IntN(3) > 0 {
			continue
		}
		if is := fmt.Sprintf("d%d", w.IntN(3)); is != w.digests[key] {
			was[key], w.digests[key] = w.digests[key], is
		}
	}
	commits := slices.Clone(w.commits)
	if len(commits) > 0 {
		commits[0].Was = was // of the one before the new one
	}
	w.commits = append([]state.Commit{{ID: fmt.Sprintf("%04x", len(commits))}}, commits...)
}

func (w *world) report(now time.Time) state.Report {
	r := state.Report{Cluster: fmt.Sprintf("c%d", w.IntN(6)), Received: now, At: now.Add(time.Duration(w.IntN(20)-15) * time.Second), Snapshot: w.IntN(2) == 0}
	for _, t := range []string{"hello-main", "shop-main", "till-main"} {
		if w.IntN(3) == 0 {
			continue
		}
		commit := w.commits[w.IntN(len(w.commits))].ID
		if w.IntN(10) == 0 {
			commit = unknownCommit
		}
		r.Items = append(r.Items, state.Item{Assignment: "prod/edge/" + t, Commit: commit, State: state.Reported(1 + w.IntN(4))})
	}
	return r
}

// TestModel holds a Fleet against the reference, with reports that are late, doubled, lost and
// by clocks that are wrong.
func TestModel(t *testing.T) {
	for seed := range uint64(300) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), start: time.Unix(1_700_000_000, 0).UTC(), digests: map[string]string{}}
		for _, f := range []string{"edge.a", "edge.b"} {
			for _, target := range []string{"hello-main", "shop-main", "till-main"} {
				w.digests[state.Key(f, target)] = "d0"
			}
		}
		if seed%2 == 0 {
			for i := range 6 {
				w.digests[state.EntryKey(fmt.Sprintf("c%d", i))] = "d0"
			}
		}
		now := w.start
		fleet, m := state.New(time.Minute, now), &reference{stale: time.Minute}
		w.commit()
		m.wanted = w.wanted()
		fleet.Want(now, m.wanted)
		var late []state.Report
		for step := range 60 {
			now = now.Add(time.Duration(w.IntN(30)) * time.Second)
			switch w.IntN(6) {
			case 0:
				w.commit()
				m.wanted = w.wanted()
				fleet.Want(now, m.wanted)
			case 1:
				late = append(late, w.report(now))
			case 2: // what was held up comes, twice
				for _, r := range late {
					r.Received = now
					for range 2 {
						fleet.Observe(&r)
					}
					m.reports = append(m.reports, r)
				}
				late = nil
			default:
				r := w.report(now)
				fleet.Observe(&r)
				m.reports = append(m.reports, r)
			}
			fleet.Expire(now)
			check(t, fleet, m, now, fmt.Sprintf("seed %d, step %d", seed, step))
			if t.Failed() {
				return
			}
		}
	}
}

func check(t *testing.T, fleet *state.Fleet, m *reference, now time.Time, where string) {
	t.Helper()
	var tally state.Tally
	rows := map[string]state.State{}
	fleet.List(state.Filter{}, state.Position{}, func(r state.Row) bool {
		rows[r.Cluster+" "+r.Target] = r.State
		tally[r.State]++
		return true
	})
	for _, c := range m.wanted.Clusters {
		for _, f := range m.wanted.Folders {
			if f.Name != c.Folder {
				continue
			}
			for _, target := range f.Targets {
				if want, got := m.state(c, f, target, now), rows[c.Name+" "+target.Name]; want != got {
					t.Errorf("%s: %s on %s is %s, and should be %s", where, target.Name, c.Name, got, want)
				}
			}
		}
	}
	var counted state.Tally
	for _, g := range fleet.Count(state.Filter{}, state.ByTarget) {
		counted.Add(&g.Tally)
	}
	if counted != tally {
		t.Errorf("%s: counted %v, and there are %v", where, counted, tally)
	}
}
