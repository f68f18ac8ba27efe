package hub_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/hub"
)

const (
	newer = "2222222222222222222222222222222222222222"
	older = "1111111111111111111111111111111111111111"
)

var (
	now    = time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	before = now.Add(-time.Hour)
)

// source is a hub that answers with some lines.
func source(t *testing.T, status int, lines ...any) *hub.Source {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.String(); got != "/v1/rollout?environment=prod&ring=first" {
			t.Errorf("asked %s", got)
		}
		w.WriteHeader(status)
		for _, l := range lines {
			_ = json.NewEncoder(w).Encode(l)
		}
	}))
	t.Cleanup(s.Close)
	client, err := api.NewClient(s.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	return hub.New(client, "https://hub.example", func() time.Time { return now })
}

var wanted = &rollout.DesiredState{Environment: "prod", Ring: "first", Commits: []git.Hash{plumbing.NewHash(newer)},
	Assignments: []rollout.Assignment{{ID: "prod/eu/shop-main", Clusters: []string{"c"}}}}

func row(s state.State) state.Row {
	return state.Row{Environment: "prod", ClusterType: "eu", Target: "shop-main", Cluster: "c", State: s, Message: "m", Changed: before, Seen: before, Commit: older, By: "kalypso observe"}
}

func end(commit string) api.RolloutEnd { return api.RolloutEnd{End: true, GitOps: commit} }

// A promotion counts the hub's state.
func TestStates(t *testing.T) {
	failed := row(state.Failed)
	failed.Since = before.Add(-time.Minute)
	for _, c := range []struct {
		row         state.Row
		want, tally string
	}{
		{row(state.OK), "healthy 14:00", "1/1 ok"},
		{row(state.Progressing), "progressing 14:00 m", "0/1 ok, 1 progressing"},
		{row(state.Behind), "progressing 14:00 is behind, at commit 1111111111: m", "0/1 ok, 1 progressing"},
		{row(state.Drifted), "progressing 14:00 has drifted, at commit 1111111111: m", "0/1 ok, 1 progressing"},
		{row(state.Stale), "stale 14:00 last reported at 2026-01-02T14:00:00Z", "0/1 ok, 1 stale"},
		{row(state.Missing), "", "0/1 ok, 1 unknown"},
		{failed, "failed 13:59 m", "0/1 ok, 1 failed"},
	} {
		reports, err := source(t, 200, c.row, end(newer)).Reports(t.Context(), wanted)
		got := ""
		for _, r := range reports {
			got += strings.TrimSpace(fmt.Sprintf("%s %s %s", r.State, r.Since.Format("15:04"), r.Message))
		}
		tally := rollout.Count(wanted, reports, rollout.Options{Now: now, StaleAfter: time.Minute}).String()
		if err != nil || got != c.want || tally != c.tally {
			t.Errorf("%s: got %s, %s, %v", c.row.State, got, tally, err)
		}
	}
}

func TestErrors(t *testing.T) {
	other := row(state.OK)
	other.Target = "another"
	for name, c := range map[string]struct {
		status int
		lines  []any
		want   string
		kind   any
	}{
		"another commit":    {200, []any{row(state.OK), end(older)}, "it is at commit 1111111111 of the GitOps branch of prod, and what is rolled out is in 2222222222", nil},
		"nothing read yet":  {200, []any{end("")}, "it has not read the GitOps branch of prod yet", nil},
		"cut off":           {200, []any{row(state.OK)}, "unexpected EOF", nil},
		"no such thing":     {404, []any{map[string]string{"title": "no environment prod"}}, "the hub says 404: no environment prod", nil},
		"another token":     {401, []any{map[string]string{"title": "who"}}, "the hub says 401: who", new(*forge.AuthError)},
		"too much to do":    {503, []any{map[string]string{"title": "later"}}, "later", new(*forge.UnavailableError)},
		"another's, wanted": {200, []any{other, end(newer)}, "", nil},
	} {
		reports, err := source(t, c.status, c.lines...).Reports(t.Context(), wanted)
		if len(reports) > 0 || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.As(err, c.kind) {
			t.Errorf("%s: got %v, %v", name, reports, err)
		}
	}
}

// A gate counts the same as the hub, also for a cluster type that lists no clusters.
func TestSameCounts(t *testing.T) {
	for seed := range uint64(40) {
		world, at := hubtest.New(seed), hubtest.Start()
		fleet := state.New(time.Minute, 0, at)
		for range 25 {
			at = at.Add(time.Duration(world.IntN(20)) * time.Second)
			if world.IntN(5) == 0 {
				world.Commit()
			}
			fleet.Want(at, world.Wanted())
			report := world.Report(at)
			fleet.Observe(&report)
			fleet.Expire(at)
		}
		var lines []any
		commit := fleet.Rollout(state.Filter{Environments: state.In("prod")}, state.Position{}, func(r state.Row) bool {
			lines = append(lines, r)
			return true
		})
		is := &rollout.DesiredState{Environment: "prod", Ring: "first", Commits: []git.Hash{plumbing.NewHash(newer)}}
		w := world.Wanted()
		for i := range w.Folders {
			f := &w.Folders[i]
			for _, target := range f.Targets {
				a := rollout.Assignment{ID: "prod/" + f.ClusterType + "/" + target.Name}
				for _, c := range w.Clusters {
					if of := w.Folder(c.Folder); of.ClusterType == f.ClusterType && slices.ContainsFunc(of.Targets, func(t state.Target) bool { return t.Name == target.Name }) {
						a.Clusters = append(a.Clusters, c.Name)
					}
				}
				if !slices.ContainsFunc(is.Assignments, func(other rollout.Assignment) bool { return other.ID == a.ID }) {
					is.Assignments = append(is.Assignments, a)
				}
			}
		}
		reports, err := source(t, 200, append(lines, end(newer))...).Reports(t.Context(), is)
		if err != nil || commit == "" {
			t.Fatal(commit, err)
		}
		got := rollout.Count(is, reports, rollout.Options{Now: now, StaleAfter: time.Hour}).Tally
		var tally state.Tally
		for _, g := range fleet.Count(state.Filter{}, state.ByTarget) {
			tally.Add(&g.Tally)
		}
		want := rollout.Tally{
			Wanted: tally.Wanted(), Healthy: tally[state.OK], Progressing: tally[state.Progressing] + tally[state.Behind] + tally[state.Drifted],
			Failed: tally[state.Failed], Stale: tally[state.Stale], Unknown: tally[state.Missing], Suspended: tally[state.Suspended],
		}
		if got != want {
			t.Errorf("seed %d: the gate counts %s, and the hub %s", seed, got, want)
		}
	}
}
