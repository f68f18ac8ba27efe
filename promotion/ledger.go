package promotion

import (
	"context"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// statusName is the name of the commit statuses in which kalypso says what became of a
// commit in a ring: kalypso/<environment>[/<ring>].
func statusName(id string) string { return "kalypso/" + id }

// ledger are the statuses of commits on one forge, which is where what was seen of
// rollouts is kept: nobody but the forge says when something was said.
type ledger struct {
	forge forge.Forge
	known map[git.Hash][]forge.Status
}

func newLedger(f forge.Forge) *ledger {
	return &ledger{forge: f, known: map[git.Hash][]forge.Status{}}
}

// of returns what was said of a commit, oldest first.
func (l *ledger) of(ctx context.Context, commit git.Hash) ([]forge.Status, error) {
	if err := l.load(ctx, commit); err != nil {
		return nil, err
	}
	return l.known[commit], nil
}

// loaded returns what was said of a commit that load was asked for, oldest first.
func (l *ledger) loaded(commit git.Hash) []forge.Status { return l.known[commit] }

// load asks for what was said of some commits, at once.
func (l *ledger) load(ctx context.Context, commits ...git.Hash) error {
	var ask []git.Hash
	for _, c := range commits {
		if _, known := l.known[c]; !known && !c.IsZero() && !slices.Contains(ask, c) {
			ask = append(ask, c)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	said, err := l.forge.Statuses(ctx, ask)
	if err != nil {
		return err
	}
	for _, c := range ask {
		l.known[c] = said[c]
	}
	return nil
}

// say says something of a commit.
func (l *ledger) say(ctx context.Context, commit git.Hash, status forge.Status) error {
	status.Description = clip(status.Description, l.forge.Limits().StatusDescription)
	if err := l.forge.SetStatus(ctx, commit, status); err != nil {
		return err
	}
	delete(l.known, commit)
	return nil
}

// course is what was said of a commit in a ring, in the order of time.
type course struct {
	entered time.Time // when its newest rollout began to be told
	state   forge.State
	since   time.Time // of state
	reason  string
}

// courseOf reads the statuses of a commit about a ring. Success is latched: only another
// stay of the commit ends it, which begins with a pending in words of its own, as they
// name the GitOps commit. One in the words of an earlier one is of a runner that was late.
// Words of others than those who may report are passed over.
func courseOf(said []forge.Status, id string, by []string) (course, bool) {
	var c course
	found := false
	entries := map[string]bool{}
	for _, s := range said {
		if s.Name != statusName(id) || len(by) > 0 && !slices.Contains(by, s.By) {
			continue
		}
		enters := s.State == forge.Pending
		if enters && entries[s.Description] {
			continue
		}
		if !found || enters {
			c.entered = s.At
		}
		if !found || enters || s.State != c.state {
			c.state, c.since = s.State, s.At
		}
		if enters {
			entries[s.Description] = true
		}
		c.reason, found = s.Description, true
	}
	return c, found
}
