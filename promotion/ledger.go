package promotion

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
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

// ledger returns where it is kept what became of base commits in an environment: on the
// platform's forge or, where that is nothing but git, in the notes of the GitOps
// repository.
func (s *Session) ledger(o *output) *ledger {
	if !s.platform.repository.plain {
		return s.platform.repository.ledger()
	}
	if o.repository.plain {
		return o.repository.ledger()
	}
	return o.repository.elsewhere
}

func (r *repository) ledger() *ledger {
	if r.statuses == nil {
		r.statuses = newLedger(r.forge)
	}
	return r.statuses
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

// plainLedgers are where it is kept in git notes what is said of a stop.
func (s *Session) plainLedgers(st *stop) (out []*plain.Forge) {
	if st.out.repository == nil {
		return nil
	}
	for _, l := range []*ledger{s.ledger(st.out), st.out.repository.ledger()} {
		if f, ok := l.forge.(*plain.Forge); ok && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// hold lets what is said of a stop wait for flush, which pushes it at once.
func (s *Session) hold(st *stop) {
	for _, f := range s.plainLedgers(st) {
		f.Hold()
	}
}

// flush pushes what was said of a stop.
func (s *Session) flush(ctx context.Context, st *stop) error {
	var errs []error
	for _, f := range s.plainLedgers(st) {
		errs = append(errs, f.Flush(ctx))
	}
	return errors.Join(errs...)
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

// clip cuts a text to a number of characters; 0 is no limit.
func clip(text string, most int) string {
	runes := []rune(text)
	if most == 0 || len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
