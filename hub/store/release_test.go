package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// TestReleasesOf finds the commits that changed the content of a ring. A rollback counts, and a
// commit about another ring does not.
func TestReleasesOf(t *testing.T) {
	commit := func(id string, rings ...string) state.Commit {
		c := state.Commit{ID: id}
		for i := 0; i < len(rings); i += 2 {
			c.Rings = append(c.Rings, state.Ring{Name: rings[i], Base: rings[i+1], Own: "e"})
		}
		return c
	}
	w := &state.DesiredState{Environment: "prod", Commits: []state.Commit{
		commit("6", "canary", "A", "wide", "A"), // rolled back
		commit("5", "canary", "B", "wide", "A"), // a commit about something else
		commit("4", "canary", "B", "wide", "A"),
		commit("3", "canary", "A", "wide", "A"),
		commit("2", "canary", "A"),
		commit("1", "canary", "0"),
	}}
	for older, want := range map[bool][]string{
		false: {"6 canary A", "4 canary B", "3 wide A", "2 canary A", "1 canary 0"},
		true:  {"6 canary A", "4 canary B", "3 wide A", "2 canary A"}, // the first known commit may be about anything
	} {
		w.Older = older
		var got []string
		for _, r := range store.ReleasesOf(w) {
			got = append(got, fmt.Sprint(r.Commit, " ", r.Ring, " ", r.Base))
		}
		if !slices.Equal(got, want) {
			t.Errorf("older %t: %v, and should be %v", older, got, want)
		}
	}
}

// A release begins when its newest new content was committed, and a rollback when somebody decided
// it.
func TestCommitted(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 25, 9, minute, 0, 0, time.UTC) }
	ring := func(s, sMinute, e, eMinute int) state.Ring {
		return state.Ring{Base: fmt.Sprint(s), Own: fmt.Sprint(e), BaseTime: at(sMinute), OwnTime: at(eMinute)}
	}
	first := ring(1, 10, 1, 5)
	unknown := state.Ring{Base: "9", Own: "9"}
	for name, c := range map[string]struct {
		was, is state.Ring
		want    int
	}{
		"S":                {first, ring(2, 20, 1, 5), 20},
		"E":                {first, ring(1, 10, 2, 21), 21},
		"both":             {first, ring(2, 20, 2, 21), 21},
		"S after E":        {ring(1, 10, 1, 25), ring(2, 20, 1, 25), 20},
		"back":             {ring(2, 20, 1, 5), first, 40},
		"back with E":      {ring(2, 20, 1, 5), ring(1, 10, 2, 30), 40},
		"E back":           {ring(1, 10, 2, 21), first, 40},
		"not known":        {first, unknown, 40},
		"after not known":  {unknown, first, 10},
		"later than it is": {first, ring(2, 50, 1, 5), 40},
	} {
		w := &state.DesiredState{Commits: []state.Commit{{ID: "b", Time: at(40), Rings: []state.Ring{c.is}}, {ID: "a", Time: at(11), Rings: []state.Ring{c.was}}}}
		if got := store.ReleasesOf(w)[0]; !got.Committed.Equal(at(c.want)) || !got.At.Equal(at(40)) {
			t.Errorf("%s: it was committed at %s, and should be at %s", name, got.Committed, at(c.want))
		}
	}
}

// The times of releases have the order of the branch, even for two in the same second.
func TestReleasesInOrder(t *testing.T) {
	at := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	w := &state.DesiredState{}
	for i, seconds := range []int{9, 1, 1, 1, 5} { // the newest first; the clock was set back once
		rings := []state.Ring{{Name: "a", Base: fmt.Sprint(i)}, {Name: "b", Base: fmt.Sprint(i)}}
		w.Commits = append(w.Commits, state.Commit{ID: fmt.Sprint(i), Time: at.Add(time.Duration(seconds) * time.Second), Rings: rings})
	}
	var got []string
	for _, r := range store.ReleasesOf(w) {
		got = append(got, r.At.Sub(at).String())
	}
	if want := []string{"9s", "9s", "1.002s", "1.002s", "1.001s", "1.001s", "1s", "1s", "5s", "5s"}; !slices.Equal(got, want) {
		t.Errorf("they are %v, and should be %v", got, want)
	}
}

// The release time of a newer commit is when the hub reads it. If a branch has started over, this
// applies to all commits.
func TestReadAt(t *testing.T) {
	committed, now := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC), time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	of := func(ids ...string) *state.DesiredState {
		w := &state.DesiredState{}
		for i, id := range ids {
			w.Commits = append(w.Commits, state.Commit{ID: id, Time: committed.Add(-time.Duration(i) * time.Minute), Rings: []state.Ring{{Base: id}}})
		}
		return w
	}
	for name, c := range map[string]struct {
		before *state.DesiredState
		now    int // how many were released now
	}{
		"never read": {nil, 0}, "nothing there": {of(), 3}, "one is new": {of("b", "a"), 1}, "nothing is new": {of("c", "b", "a"), 0}, "begun anew": {of("x", "y"), 3},
	} {
		n := 0
		for _, r := range store.ReadAt(now, c.before, of("c", "b", "a")) {
			if !r.At.Before(now) {
				n++
			}
		}
		if n != c.now {
			t.Errorf("%s: %d were released now, and should be %d", name, n, c.now)
		}
	}
}
