package promotion

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// candidate is a base commit that a stop may get, with what the gates that need
// nothing but the commit say.
type candidate struct {
	source   tree.Source
	kind     Kind
	verdicts []gate.Verdict
}

func (c *candidate) state() gate.State { return gate.Overall(c.verdicts) }

// choose returns what a stop may get by its policy, or what is asked for by name; nil
// where there is nothing new. Others are newer base commits, and why they are not it.
// Some are spoken against already, with a reason: where the policy wants the latest that
// passes, it is one of the others, and else there are only the environment's own files.
func (ch *chooser) choose(ctx context.Context, against map[tree.Source]string) (*candidate, []Other, error) {
	if ch.intent.Commit != "" {
		c, err := ch.named(ctx)
		return c, nil, err
	}
	has := ch.st.has()
	newer, err := ch.state.newer(has)
	if err != nil {
		return nil, nil, err
	}
	all := newer
	newer, spoken := ch.without(newer, against)
	var c *candidate
	var others []Other
	if way := ch.st.stage.Promotion.Advance; len(against) == 0 || way == model.LatestPassed || way == model.Lockstep || way == model.Batch {
		if c, others, err = ch.advance(ctx, newer); err != nil {
			return nil, nil, err
		}
	}
	others = newestFirst(append(spoken, others...), all)
	if c != nil && c.state() == gate.Passed || has == (tree.Source{}) {
		return c, others, nil
	}
	// Where no base commit can go on, the environment's own files need not wait for one.
	own, err := ch.configured(ctx)
	if err != nil || own == nil || against[own.source] != "" || c != nil && c.state() == gate.Pending && own.state() != gate.Passed {
		return c, others, err
	}
	if c != nil {
		others = slices.Insert(others, 0, Other{Commit: string(c.source.Base), Reason: gate.Reason(c.verdicts)})
	}
	return own, others, nil
}

// newestFirst sorts others by where they are among base commits.
func newestFirst(others []Other, bases []source.Base) []Other {
	at := make(map[string]int, len(bases))
	for i, b := range bases {
		at[b.Commit.String()] = i
	}
	slices.SortStableFunc(others, func(a, b Other) int { return cmp.Compare(at[a.Commit], at[b.Commit]) })
	return others
}

// without leaves out the base commits that are spoken against.
func (ch *chooser) without(newer []source.Base, against map[tree.Source]string) (kept []source.Base, out []Other) {
	for _, b := range newer {
		if reason := against[ch.st.with(b)]; reason != "" {
			out = append(out, Other{Commit: b.Commit.String(), Reason: reason})
		} else {
			kept = append(kept, b)
		}
	}
	return kept, out
}

// withoutRefused leaves out the base commits that somebody rejected, or called off, and
// those that are older than one that was called off: nobody wants to go there either.
func (ch *chooser) withoutRefused(newer []source.Base) (kept []source.Base, refused []Other) {
	orders := ch.st.out.orders
	var newest git.Hash // of those that were called off
	for _, b := range newer {
		switch o, off := orders.rejected[b.Commit], ch.st.aborted(b.Commit); {
		case o != nil:
			refused = append(refused, Other{Commit: b.Commit.String(), Reason: "rejected by " + terminal.Line(o.By) + ": " + terminal.Line(o.Reason), Refused: true})
		case off != nil:
			if newest.IsZero() {
				newest = b.Commit
			}
			refused = append(refused, Other{Commit: b.Commit.String(), Reason: "called off by " + terminal.Line(off.By) + ": " + terminal.Line(off.Reason), Refused: true})
		case !newest.IsZero():
			refused = append(refused, Other{Commit: b.Commit.String(), Reason: "older than " + git.Short(newest) + ", which was called off", Refused: true})
		default:
			kept = append(kept, b)
		}
	}
	return kept, refused
}

// configured returns the stop's base commit with the environment's own files as they
// are now; nil where these are not new.
func (ch *chooser) configured(ctx context.Context) (*candidate, error) {
	has := ch.st.has()
	own := tree.RevisionOf(ch.st.out.own.Commit)
	if has.Environment == own || has.Base == "" {
		return nil, nil
	}
	return ch.judge.gates(ctx, ch.st, tree.Source{Base: has.Base, Environment: own}, ch.intent)
}

// named returns the base commit that was asked for.
func (ch *chooser) named(ctx context.Context) (*candidate, error) {
	b, err := ch.state.platform.resolve(ch.intent.Commit)
	if err != nil {
		return nil, err
	}
	has := ch.st.has()
	if has.Base != "" && tree.RevisionOf(b.Commit) != has.Base {
		newer, err := ch.state.newer(has)
		if err != nil {
			return nil, err
		}
		_, known, err := ch.state.platform.bases.until(has.Base.Hash())
		if err != nil {
			return nil, err
		}
		if known && !slices.ContainsFunc(newer, func(n source.Base) bool { return n.Commit == b.Commit }) {
			return nil, fmt.Errorf("%s has %s, and %s comes before that: `kalypso rollback --env %s --to %s` goes back, and keeps it there",
				ch.st.id(), has.Base.Short(), git.Short(b.Commit), ch.st.stage.Name, git.Short(b.Commit))
		}
	}
	c, err := ch.judge.judged(ctx, ch.st, b, ch.intent)
	if err != nil || c.source != has {
		return c, err
	}
	hold, _, err := ch.records.held(ctx, ch.st)
	if hold == nil {
		return nil, err
	}
	return c, err
}
