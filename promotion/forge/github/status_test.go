package github_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// short is statuses as text.
func short(statuses []forge.Status) (out []string) {
	for _, s := range statuses {
		out = append(out, fmt.Sprintf("%s %s %q by %s", s.Name, s.State, s.Description, s.By))
	}
	return out
}

// The history of statuses and check runs is one list, oldest first. Commits that GitHub does not
// know have no statuses.
func TestStatuses(t *testing.T) {
	for _, host := range hosts {
		w := start(t, host)
		other := w.repo.Commit("promote", "", "tree", "newer")
		at := w.Clock.Now()
		add := func(after time.Duration, name, state, by string) {
			w.repo.AddStatus(forgetest.GitHubStatus{Commit: w.head, Context: name, State: state, Creator: by, Description: state + "!", At: at.Add(after)})
		}
		add(0, "kalypso/qa", "pending", "kalypso[bot]")
		add(time.Second, "kalypso/qa", "success", "kalypso[bot]")
		add(time.Second, "kalypso/qa", "error", "mallory")
		add(time.Minute, "other", "surprise", "")
		run := func(after time.Duration, app, name, status, conclusion string) {
			w.repo.AddCheckRun(forgetest.GitHubCheckRun{Commit: w.head, App: app, Name: name, Status: status, Conclusion: conclusion, Title: "It ran", At: at.Add(after)})
		}
		run(2*time.Second, "github-actions", "smoke", "completed", "skipped")
		run(3*time.Second, "github-actions", "smoke", "completed", "timed_out")
		run(4*time.Second, "", "smoke", "in_progress", "")
		w.repo.AddStatus(forgetest.GitHubStatus{Commit: other, Context: "x", State: "failure", Creator: "ann"})

		got, err := w.forge.Statuses(t.Context(), []git.Hash{w.head, other, {1}, w.head})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			`kalypso/qa pending "pending!" by kalypso[bot]`,
			`kalypso/qa success "success!" by kalypso[bot]`,
			`kalypso/qa failure "error!" by mallory`,
			`smoke success "It ran" by github-actions[bot]`,
			`smoke failure "It ran" by github-actions[bot]`,
			`smoke pending "It ran" by `,
			`other pending "surprise!" by `,
		}
		if !reflect.DeepEqual(short(got[w.head]), want) || len(got[other]) != 1 || len(got) != 2 {
			t.Errorf("%s: %s", host, strings.Join(short(got[w.head]), "\n"))
		}
		if first := got[w.head][0]; !first.At.Equal(at) {
			t.Errorf("%s, want %s", first.At, at)
		}
	}
}

// Lists are read to their end, and unchanged pages do not count again.
func TestStatusPages(t *testing.T) {
	for _, host := range hosts {
		w := start(t, host)
		for i := range 250 {
			w.repo.AddStatus(forgetest.GitHubStatus{Commit: w.head, Context: fmt.Sprint(i), State: "success", Creator: "ann"})
		}
		for range 2 {
			got, err := w.forge.Statuses(t.Context(), []git.Hash{w.head})
			if err != nil || len(got[w.head]) != 250 || got[w.head][0].Name != "0" || got[w.head][249].Name != "249" {
				t.Fatalf("%d, %v", len(got[w.head]), err)
			}
		}
		unchanged := 0
		for _, r := range w.Log() {
			if r.Status == 304 {
				unchanged++
			}
		}
		if n := len(w.Log()); n != 8 || unchanged != 4 {
			t.Errorf("%d requests, %d without a change", n, unchanged)
		}
	}
}

// Check runs may be hidden from a token that may see statuses; anything else may not.
func TestStatusesWithoutChecks(t *testing.T) {
	w := start(t, "github.com")
	w.repo.AddStatus(forgetest.GitHubStatus{Commit: w.head, Context: "x", State: "success"})
	w.Inject(forgetest.Fault{Method: "GET", Path: "/repos/acme/fleet/commits/" + w.head.String() + "/check-runs", Status: 403, Body: `{"message":"Resource not accessible"}`})
	if got, err := w.forge.Statuses(t.Context(), []git.Hash{w.head}); len(got[w.head]) != 1 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	w.Inject(forgetest.Fault{Method: "GET", Path: "/repos/acme/fleet/commits/" + w.head.String() + "/statuses", Status: 403, Body: `{"message":"no"}`})
	if _, err := w.forge.Statuses(t.Context(), []git.Hash{w.head}); err == nil {
		t.Error("statuses that are refused are none")
	}
}

// Each user sets a status only once, even if the answer was lost.
func TestSetStatus(t *testing.T) {
	s := forge.Status{Name: "kalypso/qa", State: forge.Success, Description: "100/100", URL: "https://hub.example/1"}
	path := "/repos/acme/fleet/statuses/*"
	for _, c := range []struct {
		name   string
		faults []forgetest.Fault
		lag    int
	}{
		{name: "at once"},
		{name: "answer lost", faults: []forgetest.Fault{lost("POST", path)}},
		{name: "request lost", faults: []forgetest.Fault{{Method: "POST", Path: path, Times: 2}}},
		{name: "bad gateway after it", faults: []forgetest.Fault{{Method: "POST", Path: path, Status: 502, Done: true}}},
		{name: "error before it", faults: []forgetest.Fault{{Method: "POST", Path: path, Status: 500, Times: 2}}},
		{name: "too many", faults: []forgetest.Fault{{Method: "POST", Path: path, Status: 429, Header: map[string]string{"Retry-After": "5"}}}},
		{name: "secondary limit", faults: []forgetest.Fault{{Method: "POST", Path: path, Status: 403, Header: map[string]string{"Retry-After": "7"}}}},
		{name: "list fails", faults: []forgetest.Fault{{Method: "GET", Times: 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, "github.com")
			w.repo.AddStatus(forgetest.GitHubStatus{Commit: w.head, Context: s.Name, State: "success", Description: s.Description, Creator: "mallory"})
			w.Inject(c.faults...)
			for range 2 {
				if err := w.forge.SetStatus(t.Context(), w.head, s); err != nil {
					t.Fatal(err)
				}
			}
			converted := w.repo.Statuses()
			if len(converted) != 2 || converted[1].Creator != "kalypso[bot]" || converted[1].Description != "100/100" || converted[1].State != "success" || converted[1].TargetURL != s.URL {
				t.Errorf("%+v", converted)
			}
		})
	}
	w := start(t, "github.com")
	for _, s := range []forge.Status{s, {Name: s.Name, State: forge.Failure, Description: s.Description}, s, {Name: s.Name, State: s.State, Description: "99/100"}} {
		if err := w.forge.SetStatus(t.Context(), w.head, s); err != nil {
			t.Fatal(err)
		}
	}
	if converted := w.repo.Statuses(); len(converted) != 4 {
		t.Errorf("what changes is not said: %+v", converted)
	}
	if err := w.forge.SetStatus(t.Context(), git.Hash{1}, s); !errors.Is(err, forge.ErrUnknownCommit) || !strings.Contains(err.Error(), "No commit found") {
		t.Error(err)
	}
}

// SetStatus also finds an existing status on later pages, and does not set it again.
func TestSetStatusAmongMany(t *testing.T) {
	w := start(t, "github.com")
	s := forge.Status{Name: "kalypso/qa", State: forge.Success}
	w.repo.AddStatus(forgetest.GitHubStatus{Commit: w.head, Context: s.Name, State: "success", Creator: "kalypso[bot]"})
	for i := range 120 {
		w.repo.AddStatus(forgetest.GitHubStatus{Commit: w.head, Context: fmt.Sprint(i), State: "success", Creator: "kalypso[bot]"})
	}
	if err := w.forge.SetStatus(t.Context(), w.head, s); err != nil || w.Count("POST", "/repos/*") > 0 {
		t.Errorf("%v, %v", err, w.Log())
	}
}
