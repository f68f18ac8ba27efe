package notify

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// fakeForge notes what is written. Each commit but the first came by a change request.
type fakeForge struct {
	forge.Forge
	wrote []string
	err   error
}

func (f *fakeForge) SetStatus(_ context.Context, commit git.Hash, s forge.Status) error {
	if f.err == nil {
		f.wrote = append(f.wrote, fmt.Sprintf("%s: %s %s: %s", commit.String()[39:], s.Name, s.State, s.Description))
	}
	return f.err
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
	w, f := newWorld(t, database), &fakeForge{}
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
	comment := "#7: <!-- kalypso-hub prod -->\n| Where | On clusters | Failed on |\n|---|---|---|\n| `prod/canary` | %s | %s |\n\n[The rollout at the hub](https://hub.example.com/rollouts/prod)\n"
	expect(t, "at first", f.since(),
		"1: kalypso-hub/prod/canary pending: 0/3 ok, 3 missing", fmt.Sprintf(comment, "0/3 ok, 3 missing", ""), "0: kalypso-hub/prod/main pending: 0/3 ok, 3 missing")
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
	expect(t, "a failure", f.since(), "1: kalypso-hub/prod/canary failure: 2/3 ok, 1 failed", fmt.Sprintf(comment, "2/3 ok, 1 failed", "`canary-02`"))
	w.want(3, "canary 2", "canary 1")
	w.wait(time.Second)
	w.report("canary", "2", state.ReportedOK, 0, 3)
	look(s)
	expect(t, "another one", f.since(), "1: kalypso-hub/prod/canary failure: 2/3 ok, 1 failed, replaced by 0000000",
		"2: kalypso-hub/prod/canary success: 3/3 ok", fmt.Sprintf(comment, "3/3 ok", ""))

	// Another hub does it when this one has stopped, and not before.
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

func TestCode(t *testing.T) {
	if got := code("a`b|c\n<!-- d"); got != "`a'b/c <!-- d`" {
		t.Error(got)
	}
}
