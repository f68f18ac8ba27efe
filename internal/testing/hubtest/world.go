// Package hubtest makes random histories of clusters' desired states and reports, and computes
// the state that a hub must derive from them.
package hubtest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/hub/state"
)

// Environment is the one of a World.
const Environment = "prod"

// World makes a random history of an environment prod. It has the clusters c0 to c5 of type edge,
// which the platform lists, and x0 and x1 of type box, which it does not list.
type World struct {
	*rand.Rand
	commits []state.Commit // newest first
	digests map[string]string
	last    map[string]state.Report // the last snapshot of each cluster
	early   int                     // reports of a commit that the hub has not read yet
}

var targets = []string{"hello-main", "shop-main", "till-main"}

// Where the tree of a World is.
const (
	repository = "https://git.example/gitops"
	folder     = "live"
)

// unknownCommit is an id that is not a commit of the branch.
const unknownCommit = "ffff"

// New returns the World of a seed, with a first commit. Those of even seeds have an entry for
// each cluster.
func New(seed uint64) *World {
	w := &World{Rand: rand.New(rand.NewPCG(seed, 1)), digests: map[string]string{}, last: map[string]state.Report{}}
	for _, f := range []string{"box", "edge.a", "edge.b"} {
		for _, target := range targets {
			w.digests[state.Key(f, target)] = "d0"
		}
	}
	if seed%2 == 0 {
		for i := range 6 {
			w.digests[state.EntryKey(fmt.Sprintf("c%d", i))] = "d0"
		}
	}
	w.Commit()
	return w
}

// Start returns the beginning of histories.
func Start() time.Time { return time.Unix(1_700_000_000, 0).UTC() }

// Wanted returns the desired state as of the newest commit.
func (w *World) Wanted() *state.DesiredState {
	out := &state.DesiredState{Environment: Environment, Repository: repository, Branch: Environment,
		Path: folder, Commits: slices.Clone(w.commits)}
	base := w.commits[0].Rings[0].Base
	for _, name := range []string{"box", "edge.a", "edge.b"} {
		f := state.Folder{Name: name, ClusterType: name[:min(4, len(name))], Listed: name != "box", Base: base}
		for _, t := range targets {
			if d := w.digests[state.Key(name, t)]; d != "" {
				f.Targets = append(f.Targets, state.Target{Name: t, Workload: t[:4], Version: d, Digest: d})
			}
		}
		out.Folders = append(out.Folders, f)
	}
	for i := range 6 {
		name := fmt.Sprintf("c%d", i)
		out.Clusters = append(out.Clusters, state.Cluster{Name: name, Folder: out.Folders[1+i%2].Name,
			Entry: w.digests[state.EntryKey(name)]})
	}
	return out
}

// next returns the id of the next commit.
func (w *World) next() string { return fmt.Sprintf("%04x", len(w.commits)) }

// Commit changes some digests: to new ones, to earlier ones, or to the digests of another object.
func (w *World) Commit() {
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
	id := w.next()
	commit := state.Commit{ID: id, Time: Start().Add(time.Duration(len(commits)) * time.Minute),
		Rings: []state.Ring{{Base: "s" + id, Own: "e"}}}
	if w.IntN(4) == 0 { // somebody edits a folder or an entry
		keys := slices.Sorted(maps.Keys(w.digests))
		commit.Edited = map[string]string{keys[w.IntN(len(keys))]: fmt.Sprintf("d%d", 2+w.IntN(3))}
	}
	w.commits = append([]state.Commit{commit}, commits...)
}

// Report returns a report of some cluster: an event or a snapshot, by a clock that may be
// wrong.
func (w *World) Report(now time.Time) state.Report {
	clusterType, name := "edge", fmt.Sprintf("c%d", w.IntN(6))
	if w.IntN(5) == 0 {
		clusterType, name = "box", fmt.Sprintf("x%d", w.IntN(2))
	}
	r := state.Report{Cluster: name, Received: now,
		At: now.Add(time.Duration(w.IntN(20)-15) * time.Second), Snapshot: w.IntN(2) == 0, By: "test"}
	for _, t := range targets {
		if w.IntN(3) > 0 {
			r.Items = append(r.Items, w.item(now, clusterType, t))
		}
	}
	// Of two observations of one time, the one that counts must not be another one when the commit
	// is read.
	if next := w.next(); slices.ContainsFunc(r.Items, func(it state.Item) bool { return it.Commit == next }) {
		w.early++
		r.At = slices.MinFunc([]time.Time{r.At, now}, time.Time.Compare).Add(-time.Duration(w.early) * time.Millisecond)
	}
	if r.Snapshot {
		r.Digest = fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(r.Items))))
		w.last[name] = r
	}
	return r
}

func (w *World) item(now time.Time, clusterType, target string) state.Item {
	it := state.Item{Assignment: Environment + "/" + clusterType + "/" + target,
		State: state.ReportedState(1 + w.IntN(5)), Commit: w.commits[w.IntN(len(w.commits))].ID}
	switch w.IntN(10) {
	case 0:
		it.Commit = unknownCommit
	case 5:
		it.Commit = w.next()
	case 1:
		it.Commit, it.Digest = "", fmt.Sprintf("d%d", w.IntN(6))
	case 2:
		it.Origin.Path = folder + "/edge.a/" + target
	case 6: // from elsewhere, with all or a part of the origin
		it.Origin = []origin.Origin{
			{Path: "old/" + clusterType + "/" + target}, {Path: folder + "/" + clusterType + "/x"}, {Branch: "other"},
			{Repository: "https://git.example.com/fork.git"}, {Repository: repository, Branch: Environment},
		}[w.IntN(5)]
	case 3, 4:
		it.Before = w.commits[w.IntN(len(w.commits))].ID
	}
	if it.State != state.ReportedOK && w.IntN(2) == 0 {
		it.Message, it.Since = fmt.Sprint("message ", w.IntN(3)), now.Add(-time.Duration(w.IntN(3))*time.Minute)
	}
	return it
}

// Same returns a snapshot with the same content as the last one of some cluster. same is the
// short form, without its items, and full is the full form. It returns false if the cluster has
// no snapshot.
func (w *World) Same(now time.Time) (same, full state.Report, there bool) {
	full, there = w.last[fmt.Sprintf("c%d", w.IntN(6))]
	full.At, full.Received = now, now
	same = full
	same.Items, same.Same = nil, true
	return same, full, there
}
