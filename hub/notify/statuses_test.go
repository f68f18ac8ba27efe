package notify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// fakeForge records the statuses and comments. Each commit except the first belongs to a change
// request.
type fakeForge struct {
	forge.Forge
	wrote    []string
	err      error
	gone     map[string]bool // commits that the forge no longer has, by their last digit
	broken   string          // a commit whose statuses cannot be written
	statuses map[git.Hash][]forge.Status
}

func (f *fakeForge) Viewer(context.Context) (string, error) { return "hub", f.err }

func (f *fakeForge) Statuses(_ context.Context, commits []git.Hash) (map[git.Hash][]forge.Status, error) {
	return f.statuses, f.err
}

func (f *fakeForge) SetStatus(_ context.Context, commit git.Hash, s forge.Status) error {
	digit := commit.String()[39:]
	switch {
	case f.err != nil:
		return f.err
	case f.gone[digit]:
		return fmt.Errorf("%w: 422 No commit found for SHA", forge.ErrUnknownCommit)
	case f.broken == digit:
		return errors.New("502")
	}
	f.wrote = append(f.wrote, fmt.Sprintf("%s: %s %s: %s", digit, s.Name, s.State, s.Description))
	s.By = "hub"
	f.statuses[commit] = append(f.statuses[commit], s)
	return nil
}

func (f *fakeForge) ChangeOf(_ context.Context, commit git.Hash, base string) (*forge.Change, error) {
	if commit.String()[39:] == "0" {
		return nil, f.err
	}
	return &forge.Change{Number: 7, Base: base}, f.err
}

func (f *fakeForge) SaveComment(_ context.Context, number int, mark, text string) error {
	if f.err == nil {
		f.wrote = append(f.wrote, fmt.Sprintf("#%d: %s", number, text))
	}
	return f.err
}

func (f *fakeForge) since() []string {
	out := f.wrote
	f.wrote = nil
	return out
}

func statuses(t *testing.T, database string) {
	w, f := newWorld(t, database), &fakeForge{statuses: map[git.Hash][]forge.Status{}}
	open := func(context.Context, string) (forge.Forge, error) { return f, nil }
	s := NewStatuses(w.Hub, open, "https://hub.example.com/", w.problem)
	look := func(s *Statuses) {
		t.Helper()
		if err := s.Look(t.Context()); err != nil {
			t.Error(err)
		}
	}
	w.want(3, "canary 1")
	look(s)
	comment := "#7: <!-- kalypso-hub prod -->\n19 assignments removed from 19 clusters, of which %s left empty, 7 added, 0 changed\n\n| Where | On clusters | Failed on |\n|---|---|---|\n| `prod/canary` | %s | %s |\n\n[The rollout at the hub](https://hub.example.com/rollouts/prod)\n"
	expect(t, "at first", f.since(),
		"1: kalypso-hub/prod/canary pending: 0/3 ok, 3 missing", fmt.Sprintf(comment, "1 is", "0/3 ok, 3 missing", ""), "0: kalypso-hub/prod/main pending: 0/3 ok, 3 missing")
	look(s)
	expect(t, "again", f.since())
	w.report("canary", "1", state.ReportedOK, 0, 2)
	w.report("canary", "1", state.ReportedFailed, 2, 3)
	f.err = errors.New("no answer")
	if err := s.Look(t.Context()); err == nil {
		t.Error("there is no error")
	}
	f.err = nil
	look(s)
	expect(t, "a failure", f.since(), "1: kalypso-hub/prod/canary failure: 2/3 ok, 1 failed", fmt.Sprintf(comment, "1 is", "2/3 ok, 1 failed", "`canary-02`"))
	w.want(3, "canary 2", "canary 1")
	w.wait(time.Second)
	w.report("canary", "2", state.ReportedOK, 0, 3)
	look(s)
	expect(t, "another one", f.since(),
		"2: kalypso-hub/prod/canary success: 3/3 ok", fmt.Sprintf(comment, "2 are", "3/3 ok", ""), "1: kalypso-hub/prod/canary failure: 2/3 ok, 1 failed, replaced by 0000000")

	// Another hub writes the statuses when this one has stopped, and not before.
	other := NewStatuses(w.Hub, open, "", w.problem)
	look(other)
	expect(t, "of another hub", f.since())
	w.wait(statusLease + time.Second)
	look(other)
	if got := f.since(); len(got) != 3 {
		t.Errorf("the other hub wrote %q", got)
	}
	look(s)
	expect(t, "of the first one", f.since())
}

// A commit whose status cannot be written does not stop the others. The next hub ends the last
// statuses of a hub that has stopped.
func statusesOfOld(t *testing.T, database string) {
	w, f := newWorld(t, database), &fakeForge{statuses: map[git.Hash][]forge.Status{}, gone: map[string]bool{}}
	open := func(context.Context, string) (forge.Forge, error) { return f, nil }
	var s *Statuses
	restart := func() {
		s = NewStatuses(w.Hub, open, "", w.problem)
		w.wait(statusLease + time.Second)
	}
	look := func(what, failure string, want ...string) {
		t.Helper()
		err := s.Look(t.Context())
		if text := fmt.Sprint(err); failure == "" && err != nil || !strings.Contains(text, failure) {
			t.Errorf("%s: %v", what, err)
		}
		var of []string
		for _, wrote := range f.since() {
			if strings.Contains(wrote, "canary") && wrote[0] != '#' {
				of = append(of, strings.Replace(wrote, ": kalypso-hub/prod/canary", "", 1))
			}
		}
		expect(t, what, of, want...)
	}
	restart()
	w.wait(time.Second)
	w.want(1, "canary 1")
	look("at first", "", "1 pending: 0/1 ok, 1 missing")
	f.broken = "1"
	w.wait(time.Second)
	w.want(1, "canary 2", "canary 1")
	look("another one, and the old one fails", "502", "2 pending: 0/1 ok, 1 missing")
	look("again", "502")
	f.broken, f.gone["1"] = "", true
	look("the old one is gone", "")
	w.wait(time.Second)
	w.want(1, "canary 3", "canary 2", "canary 1")
	restart()
	look("after a restart", "", "3 pending: 0/1 ok, 1 missing", "2 pending: 0/1 ok, 1 missing, replaced by 0000000")
	restart()
	look("after another one", "", "3 pending: 0/1 ok, 1 missing")
	// The forge does not have the newest one.
	f.gone["4"] = true
	w.wait(time.Second)
	w.want(1, "canary 4", "canary 3", "canary 2", "canary 1")
	look("a commit that the forge does not have yet", "No commit found", "3 pending: 0/1 ok, 1 missing, replaced by 0000000")
	look("again", "No commit found")
	w.wait(2 * knownAfter)
	look("much later", "No commit found")
	look("after that", "")
	w.report("canary", "4", state.ReportedOK, 0, 1)
	f.gone["4"] = false
	look("the forge has it", "", "4 success: 1/1 ok")
}

func TestOnClusters(t *testing.T) {
	for want, c := range map[string]state.Effect{
		"0 assignments removed, 7 added, 0 changed":                                                {Added: 7},
		"1 assignment removed from 1 cluster, 0 added, 2 changed":                                  {Removed: 1, RemovedFrom: 1, Changed: 2},
		"152 assignments removed from 19 clusters, of which 19 are left empty, 0 added, 0 changed": {Removed: 152, RemovedFrom: 19, Emptied: 19},
	} {
		if got := onClusters(&c); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestCode(t *testing.T) {
	if got := code("a`b|c\n<!-- d"); got != "`a'b/c <!-- d`" {
		t.Error(got)
	}
}
