package github_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// Only the open pull request between two branches of the repository is found.
func TestFindChange(t *testing.T) {
	w := start(t, "github.com")
	w.repo.Commit("promote2", "promote", "tree", "x")
	w.repo.AddPull(forgetest.GitHubPull{Head: "promote", Base: "prod", Fork: true})
	w.repo.AddPull(forgetest.GitHubPull{Head: "promote2", Base: "prod"})
	for _, c := range [][2]string{{"promote", "prod"}, {"promote2", "promote"}, {"prod", "promote"}, {"absent", "prod"}} {
		if got, err := w.forge.FindChange(t.Context(), c[0], c[1]); got != nil || err != nil {
			t.Errorf("%v: %+v, %v", c, got, err)
		}
	}
	number := w.repo.AddPull(forgetest.GitHubPull{Head: "promote", Base: "prod", Title: "T", Author: "ann", Labels: []string{"a"}, Draft: true})
	got, err := w.forge.FindChange(t.Context(), "promote", "prod")
	want := &forge.Change{Number: number, Head: w.head, Base: "prod", Title: "T", Labels: []string{"a"}, Author: "ann", Draft: true, State: forge.ChangeOpen}
	if got != nil {
		want.URL = got.URL
	}
	if !reflect.DeepEqual(got, want) || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// A change request is opened once, whatever happens on the way.
func TestSaveChangeOpens(t *testing.T) {
	const pulls = "/repos/acme/fleet/pulls"
	for _, c := range []struct {
		name   string
		faults []forgetest.Fault
		lag    int
	}{
		{name: "at once"},
		{name: "answer lost", faults: []forgetest.Fault{lost("POST", pulls)}},
		{name: "answer lost, and listed late", faults: []forgetest.Fault{lost("POST", pulls)}, lag: 2},
		{name: "bad gateway", faults: []forgetest.Fault{{Method: "POST", Path: pulls, Status: 502, Done: true}}},
		{name: "request lost", faults: []forgetest.Fault{{Method: "POST", Path: pulls, Times: 2}}},
		{name: "another process", faults: []forgetest.Fault{{Method: "POST", Path: pulls, Status: 422, Done: true, Body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"A pull request already exists for acme:promote."}]}`}}, lag: 1},
		{name: "secondary limit", faults: []forgetest.Fault{{Method: "POST", Path: pulls, Status: 403, Header: map[string]string{"Retry-After": "3"}}}},
		{name: "secondary limit without a time", faults: []forgetest.Fault{refused(403, "POST", pulls, "You have exceeded a secondary rate limit.")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, "github.corp.example")
			w.Inject(c.faults...)
			w.Lag(c.lag)
			got := w.save(t)
			all := w.repo.Pulls()
			if len(all) != 1 || all[0].Number != got.Number || got.Head != w.head || got.Title != "Promote to prod" || got.Author != "kalypso[bot]" {
				t.Errorf("%+v, of %+v", got, all)
			}
		})
	}
}

// Only differences are written, and additions of others stay.
func TestSaveChangeUpdates(t *testing.T) {
	w := start(t, "github.com")
	first := w.save(t)
	w.repo.ChangePull(first.Number, func(p *forgetest.GitHubPull) {
		p.Labels, p.Reviewers, p.Body = []string{"theirs", "Kalypso"}, []string{"bob"}, strings.ReplaceAll(p.Body, "\n", "\r\n")
	})
	w.Forget()
	s := spec()
	if _, err := w.forge.SaveChange(t.Context(), s); err != nil || len(w.Log()) != 1 {
		t.Errorf("%v, %v", err, w.Log())
	}
	s.Title, s.Draft, s.Labels, s.Reviewers = "Another", true, []string{"kalypso", "promotion"}, []string{"bob", "ann", "acme/platform", "kalypso[bot]"}
	got, err := w.forge.SaveChange(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	p := w.repo.Pulls()[0]
	if p.Title != "Another" || !p.Draft || !reflect.DeepEqual(p.Labels, []string{"theirs", "Kalypso", "promotion"}) ||
		!reflect.DeepEqual(p.Reviewers, []string{"bob", "ann"}) || !reflect.DeepEqual(p.Teams, []string{"platform"}) {
		t.Errorf("%+v", p)
	}
	if got.Title != "Another" || !got.Draft || len(got.Labels) != 3 {
		t.Errorf("%+v", got)
	}
	w.repo.Review(first.Number, "ann", "APPROVED")
	w.repo.ChangePull(first.Number, func(p *forgetest.GitHubPull) { p.Teams = nil })
	s.Draft = false
	if _, err := w.forge.SaveChange(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if p := w.repo.Pulls()[0]; p.Draft || len(p.Reviewers) != 1 || len(p.Teams) != 0 {
		t.Errorf("who has reviewed is asked again: %+v", p)
	}
}

// If the repository does not create missing labels itself, they are created.
func TestSaveChangeMakesLabels(t *testing.T) {
	w := start(t, "github.com")
	w.repo.Change(func(r *forgetest.GitHubRepository) { r.OnlyKnownLabels = true })
	s := spec()
	s.Labels = []string{"kalypso", "promotion", "kalypso"}
	w.Inject(refused(404, "POST", "/repos/acme/fleet/issues/*", "Not Found")) // as some servers answer
	for range 2 {
		if got, err := w.forge.SaveChange(t.Context(), s); err != nil || len(got.Labels) != 2 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got := w.repo.Labels(); !reflect.DeepEqual(got, []string{"kalypso", "promotion"}) {
		t.Error(got)
	}
}

func TestSaveChangeErrors(t *testing.T) {
	w := start(t, "github.com")
	for want, change := range map[string]func(*forge.ChangeSpec){
		"No commits between": func(s *forge.ChangeSpec) { s.Head, s.Base = "prod", "promote" },
		"base is invalid":    func(s *forge.ChangeSpec) { s.Base = "absent" },
		"too long":           func(s *forge.ChangeSpec) { s.Body = strings.Repeat("é", 65537) },
		"another organi":     func(s *forge.ChangeSpec) { s.Reviewers = []string{"other/team"} },
	} {
		s := spec()
		change(&s)
		if _, err := w.forge.SaveChange(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	w = start(t, "github.com")
	w.Inject(refused(422, "POST", "/repos/acme/fleet/pulls", "Draft pull requests are not supported in this repository."))
	if _, err := w.forge.SaveChange(t.Context(), spec()); !errors.Is(err, forge.ErrUnsupported) {
		t.Error(err)
	}
}

func TestCloseChange(t *testing.T) {
	w := start(t, "github.com")
	number := w.save(t).Number
	w.Inject(lost("PATCH", "/repos/acme/fleet/pulls/*"), lost("POST", "/repos/acme/fleet/issues/*"))
	for range 2 {
		if err := w.forge.CloseChange(t.Context(), number, "It is **old**."); err != nil {
			t.Fatal(err)
		}
	}
	if p := w.repo.Pulls()[0]; p.State != "closed" || len(p.Comments) != 1 || p.Comments[0].Body != "It is **old**." || w.Count("PATCH", "") != 2 { // one was lost
		t.Errorf("%+v, %v", p, w.Log())
	}
	if got, err := w.forge.FindChange(t.Context(), "promote", "prod"); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := w.forge.CloseChange(t.Context(), 999, "x"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
}

// A comment is written unless it is the viewer's newest one.
func TestComment(t *testing.T) {
	w := start(t, "github.com")
	number := w.save(t).Number
	say := func(f forge.Forge, text string, want int) {
		t.Helper()
		if err := f.Comment(context.Background(), number, text); err != nil {
			t.Fatal(err)
		}
		if got := w.repo.Pulls()[0].Comments; len(got) != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	say(w.forge, "one", 1)
	say(w.forge, "one", 1)
	say(w.open(t, w.AddUser("ann")), "one", 2)
	say(w.open(t, w.AddUser("ann")), "two", 3)
	say(w.forge, "one\r\n", 3)
	say(w.forge, "two", 4)
	say(w.forge, "one", 5)
	w.Inject(lost("POST", "/repos/acme/fleet/issues/*"))
	say(w.forge, "three", 6)
}
