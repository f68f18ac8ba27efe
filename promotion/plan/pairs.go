package plan

import (
	"cmp"
	"context"
	"time"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// sources returns the sources that the stage may get with a base commit, newest own files
// first.
func (ch *chooser) sources(b source.Base) []tree.Source {
	if !ch.st.TakesPairs() {
		return []tree.Source{ch.st.SourceWith(b)}
	}
	return ch.pairs[tree.RevisionOf(b.Commit)]
}

// best returns the first of some sources that passes the gates of the commit. If no source
// passes, it returns the one that passes soonest by itself, or else the first. It returns nil if
// there are no sources.
func (ch *chooser) best(ctx context.Context, sources []tree.Source) (best *candidate, err error) {
	sources = sources[:min(len(sources), session.MaxNew)]
	if err := ch.preloadPairs(ctx, sources); err != nil {
		return nil, err
	}
	for _, of := range sources {
		c, err := ch.pl.judge.gates(ctx, ch.st, of, ch.intent)
		if err != nil {
			return nil, err
		}
		if c.state() == gate.Passed {
			return c, nil
		}
		if best == nil || c.state() == gate.Pending && (best.state() == gate.Blocked || c.sooner(best)) {
			best = c
		}
	}
	return best, nil
}

// preloadPairs loads the statuses of several pairs in the rings before, at once.
func (ch *chooser) preloadPairs(ctx context.Context, sources []tree.Source) error {
	if len(sources) < 2 {
		return nil
	}
	return loadVisits(ctx, ch.pl.state.Upstream(ch.st), sources,
		func(up *session.Stage, of tree.Source) (session.Visit, error) {
			return ch.pl.state.VisitOfPair(ctx, up, of)
		})
}

// takesOwn reports whether the stage takes the newest own files before the rings before it had
// them.
func (ch *chooser) takesOwn() bool {
	return (ch.intent.Skip.OwnAtOnce || ch.intent.onlyClusters) && ch.st.Ring != nil &&
		len(ch.st.Ring.After) > 0 && ch.st.Has().Base != ""
}

// sooner reports whether it is known that a pending candidate passes before another one.
func (c *candidate) sooner(other *candidate) bool {
	passes := func(c *candidate) (at time.Time) {
		for _, v := range c.verdicts {
			switch {
			case v.State == gate.Passed:
			case v.Until.IsZero():
				return time.Time{}
			case v.Until.After(at):
				at = v.Until
			}
		}
		return at
	}
	at, then := passes(c), passes(other)
	return !at.IsZero() && (then.IsZero() || at.Before(then))
}

// judged returns the best candidate with a base commit.
func (ch *chooser) judged(ctx context.Context, b source.Base) (*candidate, error) {
	return ch.best(ctx, ch.sources(b))
}

// paired returns the base commits that all rings before have or had with own files that the stage
// may get, and why the others are not among them.
func (ch *chooser) paired(ctx context.Context, newer []source.Base) (there []source.Base,
	others []Other, err error) {
	for _, b := range newer {
		if len(ch.sources(b)) > 0 {
			there = append(there, b)
		}
	}
	missing := map[git.Hash]string{}
	for _, up := range ch.pl.state.Upstream(ch.st) {
		had, err := up.Had(ctx, newer)
		if err != nil {
			return nil, nil, err
		}
		for _, b := range newer {
			if !had[tree.RevisionOf(b.Commit)] {
				missing[b.Commit] = "it has not been in " + up.ID()
			}
		}
	}
	for _, b := range newer {
		if len(ch.sources(b)) == 0 {
			others = append(others, Other{Commit: b.Commit.String(),
				Reason: cmp.Or(missing[b.Commit], "the rings before had it only with older own files")})
		}
	}
	return there, others, nil
}

// namedSource returns a base commit with its own files. A ring that takes pairs gets the own
// files that the policy would choose with the base commit, or keeps its present ones.
func (ch *chooser) namedSource(ctx context.Context, b source.Base) (tree.Source, error) {
	of, has := ch.st.SourceWith(b), ch.st.Has()
	if !ch.st.TakesPairs() {
		return of, nil
	}
	if has != (tree.Source{}) {
		of.Environment = has.Environment
	}
	if of.Base == has.Base {
		return of, nil
	}
	pairs, err := ch.pl.state.Pairs(ctx, ch.st, []source.Base{b})
	if err != nil {
		return of, err
	}
	c, err := ch.best(ctx, pairs[of.Base])
	if err == nil && c != nil {
		of = c.source
	}
	return of, err
}
