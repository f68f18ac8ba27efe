package promotion

import (
	"context"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/git"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/compiler/web"
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

// mostJudged is how many base commits are judged for one stop. Beyond that nobody
// waits for one of them.
const mostJudged = 100

// choose returns what a stop may get by its policy, or what is asked for by name; nil
// where there is nothing new. Others are newer base commits, and why they are not it.
// Some are spoken against already, with a reason: where the policy wants the latest that
// passes, it is one of the others, and else there are only the environment's own files.
func (s *Session) choose(ctx context.Context, st *stop, intent Intent, against map[tree.Source]string) (*candidate, []Other, error) {
	if intent.Commit != "" {
		c, err := s.named(ctx, st, intent)
		return c, nil, err
	}
	has := st.has()
	newer, err := s.newer(has)
	if err != nil {
		return nil, nil, err
	}
	newer, spoken := st.without(newer, against)
	var c *candidate
	var others []Other
	if len(against) == 0 || st.stage.Promotion.Advance == model.LatestPassed {
		if c, others, err = s.advance(ctx, st, newer, intent); err != nil {
			return nil, nil, err
		}
	}
	others = append(spoken, others...)
	if c != nil && c.state() == gate.Passed || has == (tree.Source{}) {
		return c, others, nil
	}
	// Where no base commit can go on, the environment's own files need not wait for one.
	own, err := s.configured(ctx, st, intent)
	if err != nil || own == nil || against[own.source] != "" {
		return c, others, err
	}
	if c != nil {
		others = slices.Insert(others, 0, Other{Commit: string(c.source.Base), Reason: reasonOf(c.verdicts)})
	}
	return own, others, nil
}

// mostNew is how many base commits there are to choose from for a stop that has none.
const mostNew = 2000

// newer returns the base commits after what a stop has, newest first. Where the history
// does not have what it has, there are none: nobody knows what is newer.
func (s *Session) newer(has tree.Source) ([]source.Base, error) {
	if has.Base == "" {
		return s.platform.bases.newest(mostNew)
	}
	all, found, err := s.platform.bases.until(hashOf(has.Base))
	if err != nil || !found {
		return nil, err
	}
	return all[:len(all)-1], nil
}

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
		return s.queue(ctx, st, newer, there, others, intent)
	case p == model.Latest:
		c, err := s.judged(ctx, st, there[0], intent)
		for _, b := range there[1:] {
			others = append(others, Other{Commit: b.Commit.String(), Reason: "a newer commit is there: advance is latest"})
		}
		return c, others, err
	}
	return s.latestPassed(ctx, st, there, others, intent)
}

// without leaves out the base commits that are spoken against.
func (st *stop) without(newer []source.Base, against map[tree.Source]string) (kept []source.Base, out []Other) {
	for _, b := range newer {
		if reason := against[st.with(b)]; reason != "" {
			out = append(out, Other{Commit: b.Commit.String(), Reason: reason})
		} else {
			kept = append(kept, b)
		}
	}
	return kept, out
}

// with is a base commit with the environment's own files as they are now.
func (st *stop) with(b source.Base) tree.Source {
	return tree.Source{Base: revision(b.Commit), Environment: revision(st.out.own.Commit)}
}

// withoutRefused leaves out the base commits that somebody rejected or called off.
func (st *stop) withoutRefused(newer []source.Base) (kept []source.Base, refused []Other) {
	orders := st.out.orders
	for _, b := range newer {
		switch o, off := orders.rejected[b.Commit], st.aborted(b.Commit); {
		case o != nil:
			refused = append(refused, Other{Commit: b.Commit.String(), Reason: "rejected by " + web.Printable(o.By) + ": " + web.Printable(o.Reason), Refused: true})
		case off != nil:
			refused = append(refused, Other{Commit: b.Commit.String(), Reason: "called off by " + web.Printable(off.By) + ": " + web.Printable(off.Reason), Refused: true})
		default:
			kept = append(kept, b)
		}
	}
	return kept, refused
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
			if !held[up][revision(b.Commit)] {
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
		wanted[revision(b.Commit)] = true
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
			v, err := up.out.history.visitOf(ctx, up.ringName(), revision(b.Commit))
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
		if revision(b.Commit) != common {
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

// queue chooses the base commit that follows what a stop has.
func (s *Session) queue(ctx context.Context, st *stop, newer, there []source.Base, others []Other, intent Intent) (*candidate, []Other, error) {
	for _, b := range slices.Backward(newer) {
		if !slices.ContainsFunc(there, func(t source.Base) bool { return t.Commit == b.Commit }) {
			return nil, others, nil // others says what it waits for
		}
		for _, later := range there {
			if later.Commit != b.Commit {
				others = append(others, Other{Commit: later.Commit.String(), Reason: "commits go one after the other, and " + git.Short(b.Commit) + " is next: advance is queue"})
			}
		}
		c, err := s.judged(ctx, st, b, intent)
		return c, others, err
	}
	return nil, others, nil
}

// judged asks the gates of a base commit.
func (s *Session) judged(ctx context.Context, st *stop, b source.Base, intent Intent) (*candidate, error) {
	return s.gates(ctx, st, st.with(b), intent)
}

// gates asks the gates that need nothing but the commits.
func (s *Session) gates(ctx context.Context, st *stop, of tree.Source, intent Intent) (*candidate, error) {
	facts, err := s.commitFacts(ctx, st, of)
	if err != nil {
		return nil, err
	}
	c := &candidate{source: of, kind: Promote}
	switch has := st.has(); {
	case has == (tree.Source{}):
		c.kind = First
	case has.Base == of.Base:
		c.kind = Configure
	}
	if intent.Commit != "" { // somebody wants just this
		facts.Aborted = nil
		if s.endsHold(st, of) {
			facts.Hold = nil
		}
	}
	policy := st.policy()
	if facts.EnvironmentOnly && s.request.AllRings && policy.Rings {
		policy.After, policy.Rings = nil, false
	}
	c.verdicts = gate.Commit(policy, facts, intent.Skip)
	return c, nil
}

// endsHold says whether promoting a commit by name ends the hold of a stop: it is the
// one that was rolled back from, or a later one.
func (s *Session) endsHold(st *stop, of tree.Source) bool {
	hold := st.out.hold(st.ringName())
	if hold == nil || hold.Base == "" {
		return false
	}
	since, found, err := s.platform.bases.until(hashOf(hold.Base))
	return err == nil && found && slices.ContainsFunc(since, func(b source.Base) bool { return revision(b.Commit) == of.Base })
}

// configured returns the stop's base commit with the environment's own files as they
// are now; nil where these are not new.
func (s *Session) configured(ctx context.Context, st *stop, intent Intent) (*candidate, error) {
	has := st.has()
	own := revision(st.out.own.Commit)
	if has.Environment == own || has.Base == "" {
		return nil, nil
	}
	return s.gates(ctx, st, tree.Source{Base: has.Base, Environment: own}, intent)
}

// named returns the base commit that was asked for.
func (s *Session) named(ctx context.Context, st *stop, intent Intent) (*candidate, error) {
	b, err := s.platform.resolve(intent.Commit)
	if err != nil {
		return nil, err
	}
	has := st.has()
	if has.Base != "" && revision(b.Commit) != has.Base {
		newer, err := s.newer(has)
		if err != nil {
			return nil, err
		}
		_, known, err := s.platform.bases.until(hashOf(has.Base))
		if err != nil {
			return nil, err
		}
		if known && !slices.ContainsFunc(newer, func(n source.Base) bool { return n.Commit == b.Commit }) {
			return nil, fmt.Errorf("%s has %s, and %s comes before that: `kalypso rollback --env %s --to %s` goes back, and keeps it there",
				st.id(), short(has.Base), git.Short(b.Commit), st.stage.Name, git.Short(b.Commit))
		}
	}
	c, err := s.judged(ctx, st, b, intent)
	if err == nil && c.source == has && st.out.hold(st.ringName()) == nil {
		return nil, nil
	}
	return c, err
}

// reasonOf is why a commit cannot go on, in one line.
func reasonOf(verdicts []gate.Verdict) string {
	for _, state := range []gate.State{gate.Blocked, gate.Pending} {
		for _, v := range verdicts {
			if v.State == state {
				return v.Gate + ": " + v.Reason
			}
		}
	}
	return "every gate is passed"
}
