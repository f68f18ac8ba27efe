package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// TestReleasesOf finds the commits by which a ring got something else: a rollback is one, and a
// commit about another ring is none.
func TestReleasesOf(t *testing.T) {
	commit := func(id string, rings ...string) state.Commit {
		c := state.Commit{ID: id}
		for i := 0; i < len(rings); i += 2 {
			c.Rings = append(c.Rings, state.Ring{Name: rings[i], Base: rings[i+1], Own: "e"})
		}
		return c
	}
	w := &state.Wanted{Environment: "prod", Commits: []state.Commit{
		commit("6", "canary", "A", "wide", "A"), // rolled back
		commit("5", "canary", "B", "wide", "A"), // a commit about something else
		commit("4", "canary", "B", "wide", "A"),
		commit("3", "canary", "A", "wide", "A"),
		commit("2", "canary", "A"),
		commit("1", "canary", "0"),
	}}
	for older, want := range map[bool][]string{
		false: {"6 canary A", "4 canary B", "3 wide A", "2 canary A", "1 canary 0"},
		true:  {"6 canary A", "4 canary B", "3 wide A", "2 canary A"}, // the first one that is known may be about anything
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
