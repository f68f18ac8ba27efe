package github_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/testing/forgetest"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

const mergePath = "/repos/acme/fleet/pulls/*"

// The branches and rules of a pull request decide the result of a merge.
func TestMerge(t *testing.T) {
	later := forge.MergeOptions{Title: "Promote", Message: "Kalypso-Ring: eu", WhenAllowed: true}
	now := later
	now.WhenAllowed = false
	by := func(method string) forge.MergeOptions { return forge.MergeOptions{Method: method} }
	protect := func(r *forgetest.GitHubRepository) { r.Rules["prod"] = forgetest.GitHubRules{Approvals: 1} }
	queue := func(r *forgetest.GitHubRepository) { r.MergeQueue = true }
	for _, c := range []struct {
		name    string
		options forge.MergeOptions
		prepare func(w *world, number int)
		faults  []forgetest.Fault
		want    forge.MergeState
		method  string
		race    bool
		err     string
	}{
		{name: "squash", options: now, want: forge.MergeDone, method: "squash"},
		{name: "merge", options: by("merge"), want: forge.MergeDone, method: "merge"},
		{name: "rebase", options: by("rebase"), want: forge.MergeDone, method: "rebase"},
		{name: "no squash", options: now, prepare: func(w *world, _ int) { w.repo.Squash = false }, want: forge.MergeDone, method: "merge"},
		{name: "no squash, hidden", options: now, prepare: func(w *world, _ int) { w.repo.Squash, w.repo.HideSettings = false, true }, want: forge.MergeDone, method: "merge"},
		{name: "rebase only, hidden", options: now, prepare: func(w *world, _ int) {
			w.repo.Squash, w.repo.MergeCommit, w.repo.HideSettings = false, false, true
		}, want: forge.MergeDone, method: "rebase"},
		{name: "a method that is not allowed", options: by("squash"), prepare: func(w *world, _ int) { w.repo.Squash = false }, want: forge.MergeRefused},
		{name: "allowed at once", options: later, want: forge.MergeDone, method: "squash"},
		{name: "protected", options: now, prepare: func(w *world, _ int) { w.repo.Change(protect) }, want: forge.MergeRefused},
		{name: "protected, later", options: later, prepare: func(w *world, _ int) { w.repo.Change(protect) }, want: forge.MergeWaiting},
		{name: "protected, no auto-merge", options: later, prepare: func(w *world, _ int) {
			w.repo.Change(protect)
			w.repo.AutoMerge = false
		}, want: forge.MergeRefused},
		{name: "waiting already", options: later, prepare: func(w *world, n int) {
			w.repo.Change(protect)
			w.repo.ChangePull(n, func(p *forgetest.GitHubPull) { p.AutoMerge = true })
		}, want: forge.MergeWaiting},
		{name: "draft", options: now, prepare: func(w *world, n int) {
			w.repo.ChangePull(n, func(p *forgetest.GitHubPull) { p.Draft = true })
		}, want: forge.MergeRefused},
		{name: "protected, later, rebase only, hidden", options: later, prepare: func(w *world, _ int) {
			w.repo.Change(protect)
			w.repo.Squash, w.repo.MergeCommit, w.repo.HideSettings = false, false, true
			w.Inject(refused(405, "PUT", mergePath, "At least 1 approving review is required"))
		}, want: forge.MergeWaiting},
		{name: "queue", options: later, prepare: func(w *world, _ int) { w.repo.Change(queue) }, want: forge.MergeWaiting},
		{name: "queue, not later", options: now, prepare: func(w *world, _ int) { w.repo.Change(queue) }, want: forge.MergeRefused},
		{name: "queue, not ready", options: later, prepare: func(w *world, _ int) {
			w.repo.Change(queue)
			w.repo.Change(protect)
		}, want: forge.MergeWaiting},
		{name: "in the queue", options: later, prepare: func(w *world, n int) {
			w.repo.Change(queue)
			w.repo.ChangePull(n, func(p *forgetest.GitHubPull) { p.Queued = true })
		}, want: forge.MergeWaiting},

		{name: "the head moved", options: now, prepare: func(w *world, _ int) { w.repo.Commit("promote", "", "tree", "newer") }, race: true},
		{name: "the base moved", options: now, prepare: func(w *world, _ int) { w.repo.Commit("prod", "", "other", "x") }, race: true},
		{name: "the head moved at the last moment", options: now, faults: []forgetest.Fault{refused(409, "PUT", mergePath, "Head branch was modified. Review and try the merge again.")}, race: true},
		{name: "the base moved at the last moment", options: now, faults: []forgetest.Fault{refused(405, "PUT", mergePath, "Base branch was modified. Review and try the merge again.")}, race: true},
		{name: "closed", options: now, prepare: func(w *world, n int) {
			w.repo.ChangePull(n, func(p *forgetest.GitHubPull) { p.State = "closed" })
		}, race: true},
		{name: "the head's branch is gone", options: now, prepare: func(w *world, _ int) { w.repo.DeleteBranch("promote") }, race: true},

		{name: "answer lost", options: now, faults: []forgetest.Fault{lost("PUT", mergePath)}, want: forge.MergeDone, method: "squash"},
		{name: "bad gateway", options: now, faults: []forgetest.Fault{{Method: "PUT", Path: mergePath, Status: 502, Done: true}}, want: forge.MergeDone, method: "squash"},
		{name: "request lost", options: now, faults: []forgetest.Fault{{Method: "PUT", Path: mergePath, Times: 2}}, want: forge.MergeDone, method: "squash"},
		{name: "error", options: now, faults: []forgetest.Fault{{Method: "PUT", Path: mergePath, Times: 9, Status: 500}}, err: "does not answer"},
		{name: "auto-merge lost", options: later, prepare: func(w *world, _ int) { w.repo.Change(protect) },
			faults: []forgetest.Fault{lost("POST", "/graphql/AutoMerge")}, want: forge.MergeWaiting},
		{name: "enqueuing lost", options: later, prepare: func(w *world, _ int) { w.repo.Change(queue) },
			faults: []forgetest.Fault{lost("POST", "/graphql/Enqueue")}, want: forge.MergeWaiting},
		{name: "allowed in between", options: later, faults: []forgetest.Fault{refused(405, "PUT", mergePath, "Required status check is expected.")}, want: forge.MergeDone, method: "squash"},
		{name: "no rights", options: now, faults: []forgetest.Fault{refused(403, "PUT", mergePath, "Resource not accessible")}, err: "does not allow PUT"},
		{name: "nonsense", options: by("octopus"), faults: []forgetest.Fault{refused(422, "PUT", mergePath, "Invalid merge method")}, err: "Invalid merge method"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, "github.com")
			number := w.save(t).Number
			if c.prepare != nil {
				c.prepare(w, number)
			}
			w.Inject(c.faults...)
			for try := range 2 {
				got, err := w.forge.Merge(t.Context(), number, w.head, c.options)
				switch {
				case c.race && !errors.Is(err, git.ErrLostRace), c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
					t.Fatalf("%q, %v", got, err)
				case !c.race && c.err == "" && (err != nil || got != c.want):
					t.Fatalf("try %d: %q, %v", try, got, err)
				}
				if len(c.faults) > 0 && (c.race || c.err != "") {
					return
				}
			}
			p := w.repo.Pulls()[0]
			if p.Merged != (c.want == forge.MergeDone) || p.Merged && p.MergeMethod != c.method {
				t.Errorf("%+v", p)
			}
			if p.Merged && w.repo.Branch("prod") != p.MergeCommit {
				t.Errorf("prod is %s", w.repo.Branch("prod"))
			}
		})
	}
}

// A waiting pull request is merged once the rules allow it, with the given title and message.
func TestMergeLater(t *testing.T) {
	w := start(t, "github.corp.example")
	w.repo.Change(func(r *forgetest.GitHubRepository) { r.Rules["prod"] = forgetest.GitHubRules{Approvals: 1} })
	number := w.save(t).Number
	o := forge.MergeOptions{Title: "Promote", Message: "Kalypso-Ring: eu", WhenAllowed: true}
	for range 2 {
		if got, err := w.forge.Merge(t.Context(), number, w.head, o); got != forge.MergeWaiting || err != nil || w.Count("POST", "/graphql/*") != 1 {
			t.Fatal(got, err, w.Log())
		}
	}
	w.repo.Review(number, "ann", "APPROVED")
	if got, err := w.forge.Merge(t.Context(), number, w.head, o); got != forge.MergeDone || err != nil {
		t.Fatal(got, err)
	}
	for _, r := range w.Log() {
		if strings.HasSuffix(r.Path, "/merge") && !strings.Contains(r.Body, `"sha":"`+w.head.String()+`"`) {
			t.Error(r.Body)
		}
		if r.Path == "/graphql/AutoMerge" && !(strings.Contains(r.Body, `"title":"Promote"`) && strings.Contains(r.Body, `"message":"Kalypso-Ring: eu"`) && strings.Contains(r.Body, `"method":"SQUASH"`)) {
			t.Error(r.Body)
		}
	}
	got, err := w.forge.FindChange(t.Context(), "promote", "prod")
	if got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// Another head that is merged is not the one that was to be.
func TestMergedAtAnotherHead(t *testing.T) {
	w := start(t, "github.com")
	newer := w.repo.Commit("promote", "", "tree", "newer")
	number := w.save(t).Number
	if got, err := w.forge.Merge(t.Context(), number, newer, forge.MergeOptions{}); got != forge.MergeDone || err != nil {
		t.Fatal(got, err)
	}
	if got, err := w.forge.Merge(t.Context(), number, w.head, forge.MergeOptions{}); !errors.Is(err, git.ErrLostRace) {
		t.Errorf("%q, %v", got, err)
	}
}

// The head moves between the pull request's reading and auto-merge.
func TestMergeLaterRace(t *testing.T) {
	w := start(t, "github.com")
	number := w.save(t).Number
	w.Inject(refused(405, "PUT", mergePath, "At least 1 approving review is required"))
	w.Inject(forgetest.Fault{Method: "POST", Path: "/graphql/AutoMerge", Status: 200, Body: `{"errors":[{"type":"UNPROCESSABLE","message":"something new"}]}`})
	w.Inject(forgetest.Fault{Method: "POST", Path: "/graphql/AutoMerge", Status: 200, Body: `{"errors":[{"type":"FORBIDDEN","message":"Resource not accessible by integration"}]}`})
	o := forge.MergeOptions{WhenAllowed: true}
	if got, err := w.forge.Merge(t.Context(), number, w.head, o); got != forge.MergeRefused || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	w.Inject(refused(405, "PUT", mergePath, "At least 1 approving review is required"))
	auth := (*forge.AuthError)(nil)
	if got, err := w.forge.Merge(t.Context(), number, w.head, o); !errors.As(err, &auth) {
		t.Errorf("%q, %v", got, err)
	}
}

// CancelMerge cancels a scheduled merge or a place in the merge queue. It does not change a pull
// request without one.
func TestCancelMerge(t *testing.T) {
	for name, prepare := range map[string]func(*world, int){
		"nothing":    func(*world, int) {},
		"auto-merge": func(w *world, n int) { w.repo.ChangePull(n, func(p *forgetest.GitHubPull) { p.AutoMerge = true }) },
		"queued":     func(w *world, n int) { w.repo.ChangePull(n, func(p *forgetest.GitHubPull) { p.Queued = true }) },
		"lost": func(w *world, n int) {
			w.repo.ChangePull(n, func(p *forgetest.GitHubPull) { p.AutoMerge = true })
			w.Inject(lost("POST", "/graphql/Cancel"))
		},
		"no queues": func(w *world, n int) {
			w.repo.ChangePull(n, func(p *forgetest.GitHubPull) { p.AutoMerge = true })
			w.Inject(forgetest.Fault{Method: "POST", Path: "/graphql/Waits", Status: 200, Body: `{"errors":[{"message":"Field 'isInMergeQueue' doesn't exist"}]}`})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, "github.com")
			w.repo.Change(func(r *forgetest.GitHubRepository) { r.Rules["prod"] = forgetest.GitHubRules{Approvals: 1} })
			n := w.save(t).Number
			prepare(w, n)
			if err := w.forge.CancelMerge(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			if p := w.repo.Pulls()[n-1]; p.AutoMerge || p.Queued || p.State != "open" {
				t.Errorf("it is %+v", p)
			}
		})
	}
}
