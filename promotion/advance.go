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
func (s *Session) advance(ctx context.Context, st *stop, newer []source.Base, intent Intent) (*candidate, []Other, error) {
	newer, refused := st.withoutRefused(newer)
	there, others, err := s.arrived(ctx, st, newer)
	others = append(others, refused...)
	if err != nil || len(there) == 0 {
		return nil, others, err
	}
	p := st.stage.Promotion.Advance
	switch {
	case p == model.MatchUpstream:
		return s.match(ctx, st, there, others, intent)
	case p == model.Queue && st.has() != (tree.Source{}):
		return s.queue(ctx, st, there, others, intent)
	case p == model.Latest:
		c, err := s.judged(ctx, st, there[0], intent)
		for _, b := range there[1:] {
			others = append(others, Other{Commit: b.Commit.String(), Reason: "a newer commit is there: advance is latest"})
		}
		return c, others, err
	}
	c, others, err := s.latestPassed(ctx, st, there, others, intent)
	if err != nil || c == nil || c.kind != Promote {
		return c, others, err
	}
	switch p {
	case model.Lockstep:
		err = s.lockstep(ctx, st, c)
	case model.Batch:
		err = s.batch(ctx, st, c)
	}
	return c, others, err
}

// lockstep makes a candidate wait while another commit soaks in the stop, or further on.
func (s *Session) lockstep(ctx context.Context, st *stop, c *candidate) error {
	after := map[string]bool{st.stage.Name: true}
	for _, next := range s.stops { // those before come first
		if next != st && !slices.ContainsFunc(next.stage.After, func(name string) bool { return after[name] }) && next.stage != st.stage {
			continue
		}
		after[next.stage.Name] = true
		for _, up := range append(s.upstream(next), s.soaking(next)...) {
			has := up.has()
			if !after[up.stage.Name] || has.Base == "" || has.Base == next.has().Base || has.Base == c.source.Base {
				continue
			}
			soaks, err := s.soaksFor(ctx, next, has)
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

// soaksFor is what the soak gates of a stop say of a base commit that is on its way there;
// passed where nothing is asked of it, or it would not be let through anyway.
func (s *Session) soaksFor(ctx context.Context, st *stop, of tree.Source) (gate.Verdict, error) {
	if st.out.repository == nil || st.out.orders.rejected[of.Base.Hash()] != nil || st.aborted(of.Base.Hash()) != nil {
		return gate.Verdict{State: gate.Passed}, nil
	}
	newer, err := s.newer(st.has())
	if err != nil || !slices.ContainsFunc(newer, func(b source.Base) bool { return tree.RevisionOf(b.Commit) == of.Base }) {
		return gate.Verdict{State: gate.Passed}, err
	}
	c, err := s.gates(ctx, st, tree.Source{Base: of.Base, Environment: tree.RevisionOf(st.out.own.Commit)}, Intent{})
	if err != nil {
		return gate.Verdict{}, err
	}
	waits := gate.Verdict{State: gate.Passed}
	for _, v := range c.verdicts {
		switch {
		case v.Gate != "soak" && v.Gate != "after":
		case v.State == gate.Blocked:
			return v, nil
		case v.State == gate.Pending && v.Gate == "soak":
			waits = v
		}
	}
	return waits, nil
}

// batch makes a candidate wait until the time since the last one came is over.
func (s *Session) batch(ctx context.Context, st *stop, c *candidate) error {
	stay, err := s.stay(ctx, st, st.has(), false)
	if err != nil || stay.Entered.IsZero() {
		return err
	}
	if next := stay.Entered.Add(st.stage.Promotion.Every); s.now.Before(next) {
		c.verdicts = append(c.verdicts, gate.Verdict{
			Gate: "advance", Name: string(model.Batch), State: gate.Pending, Since: stay.Entered, Until: next,
			Reason: fmt.Sprintf("the last commit came at %s, and the next one comes from %s on", stay.Entered.UTC().Format(time.RFC3339), next.UTC().Format(time.RFC3339)),
		})
	}
	return nil
}

// arrived returns the base commits that are, or were, in what comes before a stop; of
// the others it says why not. Where nothing comes before, that is all of them.
func (s *Session) arrived(ctx context.Context, st *stop, newer []source.Base) ([]source.Base, []Other, error) {
	before := s.upstream(st)
	if len(before) == 0 {
		return newer, nil, nil
	}
	held := map[*stop]map[tree.Revision]bool{}
	for _, up := range before {
		held[up] = map[tree.Revision]bool{}
		if up.out.repository == nil || up.out.record == nil {
			continue
		}
		had, err := s.hadSince(ctx, up, newer)
		if err != nil {
			return nil, nil, err
		}
		held[up] = had
	}
	policy := st.policy()
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

// hadSince returns which of some base commits a stop has or had.
func (s *Session) hadSince(ctx context.Context, st *stop, of []source.Base) (map[tree.Revision]bool, error) {
	wanted := map[tree.Revision]bool{}
	for _, b := range of {
		wanted[tree.RevisionOf(b.Commit)] = true
	}
	had := map[tree.Revision]bool{}
	older := 0
	var last tree.Revision
	err := st.out.history.each(ctx, func(p past) bool {
		is := st.out.sourceIn(p.record, st.ringName()).Base
		switch {
		case wanted[is]:
			had[is], older = true, 0
		case is != last: // others may be in the branch as well
			older++
		}
		last = is
		// What came before all that is wanted is not looked at, but for a rollback.
		return len(had) < len(wanted) && older < firstDepth
	})
	return had, err
}

// latestPassed chooses the newest that passes; where none does, the newest that may
// still pass by itself, so that people see what is waited for.
func (s *Session) latestPassed(ctx context.Context, st *stop, there []source.Base, others []Other, intent Intent) (*candidate, []Other, error) {
	var waiting *candidate
	for i, b := range there {
		if i == mostJudged {
			break
		}
		if i%20 == 0 {
			if err := s.preload(ctx, st, there[i:min(i+20, len(there))]); err != nil {
				return nil, nil, err
			}
		}
		c, err := s.judged(ctx, st, b, intent)
		if err != nil {
			return nil, nil, err
		}
		if c.state() == gate.Passed {
			if waiting != nil {
				others = append(others, Other{Commit: string(waiting.source.Base), Reason: reasonOf(waiting.verdicts)})
			}
			return c, others, nil
		}
		if waiting == nil || waiting.state() == gate.Blocked && c.state() == gate.Pending {
			waiting, c = c, waiting
		}
		if c != nil {
			others = append(others, Other{Commit: string(c.source.Base), Reason: reasonOf(c.verdicts)})
		}
	}
	return waiting, others, nil
}

// preload asks for all at once that was said of several commits, where they were before.
func (s *Session) preload(ctx context.Context, st *stop, of []source.Base) error {
	for _, up := range append(s.upstream(st), s.soaking(st)...) {
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
func (s *Session) match(ctx context.Context, st *stop, there []source.Base, others []Other, intent Intent) (*candidate, []Other, error) {
	var common tree.Revision
	for _, up := range s.upstream(st) {
		switch is := up.has().Base; {
		case st.stage.Promotion.Any && is == "":
		case common == "":
			common = is
		case is != common && !st.stage.Promotion.Any:
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
		if c, err = s.judged(ctx, st, b, intent); err != nil {
			return nil, nil, err
		}
	}
	return c, others, nil
}

// queue chooses the first of the base commits that came to what is before a stop. Those
// that did not come there go nowhere.
func (s *Session) queue(ctx context.Context, st *stop, there []source.Base, others []Other, intent Intent) (*candidate, []Other, error) {
	next := there[len(there)-1]
	for _, later := range there[:len(there)-1] {
		others = append(others, Other{Commit: later.Commit.String(), Reason: "commits go one after the other, and " + git.Short(next.Commit) + " is next: advance is queue"})
	}
	c, err := s.judged(ctx, st, next, intent)
	return c, others, err
}
