package promotion

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// advance chooses among newer base commits.
func (ch *chooser) advance(ctx context.Context, newer []source.Base) (*candidate, []Other, error) {
	newer, refused := ch.withoutRefused(newer)
	there, others, err := ch.arrived(ctx, newer)
	others = append(others, refused...)
	if err != nil || len(there) == 0 {
		return nil, others, err
	}
	p := ch.st.stage.Promotion.Advance
	switch {
	case p == model.MatchUpstream:
		return ch.match(ctx, there, others)
	case p == model.Queue && ch.st.has() != (tree.Source{}):
		return ch.queue(ctx, there, others)
	case p == model.Latest:
		c, err := ch.judge.judged(ctx, ch.st, there[0], ch.intent)
		for _, b := range there[1:] {
			others = append(others, Other{Commit: b.Commit.String(), Reason: "a newer commit is there: advance is latest"})
		}
		return c, others, err
	}
	c, others, err := ch.latestPassed(ctx, there, others)
	if err != nil || c == nil || c.kind != Promote {
		return c, others, err
	}
	switch p {
	case model.Lockstep:
		err = ch.lockstep(ctx, c)
	case model.Batch:
		err = ch.batch(ctx, c)
	}
	return c, others, err
}

// lockstep makes a candidate wait while another commit soaks in the stop, or further on.
func (ch *chooser) lockstep(ctx context.Context, c *candidate) error {
	after := map[string]bool{ch.st.stage.Name: true}
	for _, next := range ch.state.stops { // those before come first
		if next != ch.st && !slices.ContainsFunc(next.stage.After, func(name string) bool { return after[name] }) && next.stage != ch.st.stage {
			continue
		}
		after[next.stage.Name] = true
		for _, up := range append(ch.state.upstream(next), ch.state.soaking(next)...) {
			has := up.has()
			if !after[up.stage.Name] || has.Base == "" || has.Base == next.has().Base || has.Base == c.source.Base {
				continue
			}
			soaks, err := ch.judge.soaksFor(ctx, next, has)
			if err != nil {
				return err
			}
			if soaks.State == gate.Pending {
				c.verdicts = append(c.verdicts, gate.Verdict{
					Gate: "advance", Name: string(model.Lockstep), State: gate.Pending, Until: soaks.Until,
					Reason: fmt.Sprintf("%s is on its way to %s: %s", has.Base.Short(), next.id(), soaks.Reason),
				})
				return nil
			}
		}
	}
	return nil
}

// batch makes a candidate wait until the time since the last one came is over.
func (ch *chooser) batch(ctx context.Context, c *candidate) error {
	stay, err := ch.observer.stay(ctx, ch.st, ch.st.has(), false)
	if err != nil || stay.Entered.IsZero() {
		return err
	}
	if next := stay.Entered.Add(ch.st.stage.Promotion.Every); ch.state.now.Before(next) {
		c.verdicts = append(c.verdicts, gate.Verdict{
			Gate: "advance", Name: string(model.Batch), State: gate.Pending, Since: stay.Entered, Until: next,
			Reason: fmt.Sprintf("the last commit came at %s, and the next one comes from %s on", stay.Entered.UTC().Format(time.RFC3339), next.UTC().Format(time.RFC3339)),
		})
	}
	return nil
}

// arrived returns the base commits that are, or were, in what comes before a stop; of
// the others it says why not. Where nothing comes before, that is all of them.
func (ch *chooser) arrived(ctx context.Context, newer []source.Base) ([]source.Base, []Other, error) {
	before := ch.state.upstream(ch.st)
	if len(before) == 0 {
		return newer, nil, nil
	}
	held := map[*stop]map[tree.Revision]bool{}
	for _, up := range before {
		held[up] = map[tree.Revision]bool{}
		if up.out.repository == nil || up.out.record == nil {
			continue
		}
		had, err := up.out.history.hadSince(ctx, up.ringName(), newer)
		if err != nil {
			return nil, nil, err
		}
		held[up] = had
	}
	policy := ch.st.policy()
	var there []source.Base
	var others []Other
	for _, b := range newer {
		var missing string
		reached := map[string]bool{}
		for _, up := range before {
			name := up.stage.Name
			if policy.Rings {
				name = up.ringName()
			}
			if _, known := reached[name]; !known {
				reached[name] = true
			}
			if !held[up][tree.RevisionOf(b.Commit)] {
				reached[name] = false
				missing = up.id()
			}
		}
		any := false
		for _, ok := range reached {
			any = any || ok
		}
		if missing == "" || policy.Any && any {
			there = append(there, b)
		} else {
			others = append(others, Other{Commit: b.Commit.String(), Reason: "it has not been in " + missing})
		}
	}
	return there, others, nil
}

// latestPassed chooses the newest that passes; where none does, the newest that may
// still pass by itself, so that people see what is waited for.
func (ch *chooser) latestPassed(ctx context.Context, there []source.Base, others []Other) (*candidate, []Other, error) {
	var waiting *candidate
	for i, b := range there {
		if i == mostJudged {
			break
		}
		if i%20 == 0 {
			if err := ch.preload(ctx, there[i:min(i+20, len(there))]); err != nil {
				return nil, nil, err
			}
		}
		c, err := ch.judge.judged(ctx, ch.st, b, ch.intent)
		if err != nil {
			return nil, nil, err
		}
		if c.state() == gate.Passed {
			if waiting != nil {
				others = append(others, Other{Commit: string(waiting.source.Base), Reason: gate.Reason(waiting.verdicts)})
			}
			return c, others, nil
		}
		if waiting == nil || waiting.state() == gate.Blocked && c.state() == gate.Pending {
			waiting, c = c, waiting
		}
		if c != nil {
			others = append(others, Other{Commit: string(c.source.Base), Reason: gate.Reason(c.verdicts)})
		}
	}
	return waiting, others, nil
}

// preload asks for all at once that was said of several commits, where they were before.
func (ch *chooser) preload(ctx context.Context, of []source.Base) error {
	for _, up := range append(ch.state.upstream(ch.st), ch.state.soaking(ch.st)...) {
		if up.out.repository == nil || up.out.record == nil {
			continue
		}
		var commits []git.Hash
		for _, b := range of {
			v, err := up.out.history.visitOf(ctx, up.ringName(), tree.RevisionOf(b.Commit))
			if err != nil {
				return err
			}
			commits = append(append(commits, v.landings...), v.followed)
		}
		if err := up.out.repository.ledger().load(ctx, commits...); err != nil {
			return err
		}
	}
	return nil
}

// match chooses what all that comes before a stop has now.
func (ch *chooser) match(ctx context.Context, there []source.Base, others []Other) (*candidate, []Other, error) {
	var common tree.Revision
	for _, up := range ch.state.upstream(ch.st) {
		switch is := up.has().Base; {
		case ch.st.stage.Promotion.Any && is == "":
		case common == "":
			common = is
		case is != common && !ch.st.stage.Promotion.Any:
			return nil, append(others, Other{Commit: string(is), Reason: "what comes before does not agree: advance is match-upstream"}), nil
		}
	}
	var c *candidate
	for _, b := range there {
		if tree.RevisionOf(b.Commit) != common {
			others = append(others, Other{Commit: b.Commit.String(), Reason: "it is not what runs before: advance is match-upstream"})
			continue
		}
		var err error
		if c, err = ch.judge.judged(ctx, ch.st, b, ch.intent); err != nil {
			return nil, nil, err
		}
	}
	return c, others, nil
}

// queue chooses the first of the base commits that came to what is before a stop. Those
// that did not come there go nowhere.
func (ch *chooser) queue(ctx context.Context, there []source.Base, others []Other) (*candidate, []Other, error) {
	next := there[len(there)-1]
	for _, later := range there[:len(there)-1] {
		others = append(others, Other{Commit: later.Commit.String(), Reason: "commits go one after the other, and " + git.Short(next.Commit) + " is next: advance is queue"})
	}
	c, err := ch.judge.judged(ctx, ch.st, next, ch.intent)
	return c, others, err
}
