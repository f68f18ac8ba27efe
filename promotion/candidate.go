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
	all := newer
	newer, spoken := st.without(newer, against)
	var c *candidate
	var others []Other
	if way := st.stage.Promotion.Advance; len(against) == 0 || way == model.LatestPassed || way == model.Lockstep || way == model.Batch {
		if c, others, err = s.advance(ctx, st, newer, intent); err != nil {
			return nil, nil, err
		}
	}
	others = newestFirst(append(spoken, others...), all)
	if c != nil && c.state() == gate.Passed || has == (tree.Source{}) {
		return c, others, nil
	}
	// Where no base commit can go on, the environment's own files need not wait for one.
	own, err := s.configured(ctx, st, intent)
	if err != nil || own == nil || against[own.source] != "" || c != nil && c.state() == gate.Pending && own.state() != gate.Passed {
		return c, others, err
	}
	if c != nil {
		others = slices.Insert(others, 0, Other{Commit: string(c.source.Base), Reason: reasonOf(c.verdicts)})
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

// mostNew is how many base commits there are to choose from for a stop that has none.
const mostNew = 2000

// newer returns the base commits after what a stop has, newest first. Where the history
// does not have what it has, there are none: nobody knows what is newer.
func (s *Session) newer(has tree.Source) ([]source.Base, error) {
	if has.Base == "" {
		return s.platform.bases.newest(mostNew)
	}
	all, found, err := s.platform.bases.until(has.Base.Hash())
	if err != nil || !found {
		return nil, err
	}
	return all[:len(all)-1], nil
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
	return tree.Source{Base: tree.RevisionOf(b.Commit), Environment: tree.RevisionOf(st.out.own.Commit)}
}

// withoutRefused leaves out the base commits that somebody rejected, or called off, and
// those that are older than one that was called off: nobody wants to go there either.
func (st *stop) withoutRefused(newer []source.Base) (kept []source.Base, refused []Other) {
	orders := st.out.orders
	var newest git.Hash // of those that were called off
	for _, b := range newer {
		switch o, off := orders.rejected[b.Commit], st.aborted(b.Commit); {
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
		ends, err := s.endsHold(ctx, st, of)
		if err != nil {
			return nil, err
		}
		if ends {
			facts.Hold = nil
		}
	}
	policy := st.policy()
	if facts.EnvironmentOnly && s.request.AllRings && policy.Rings {
		policy.After, policy.Rings = nil, false
	}
	c.verdicts = gate.Commit(policy, facts, intent.Skip)
	if policy.Rings && !facts.EnvironmentOnly && st.has().Environment != of.Environment && !s.request.AllRings {
		verdicts, err := s.ownFirst(ctx, st, policy, of, intent)
		if err != nil {
			return nil, err
		}
		c.verdicts = append(c.verdicts, verdicts...)
	}
	return c, nil
}

// ownFirst is what speaks against a base commit with new files of the environment in a
// ring after others: those go through the rings as well, whatever they come with.
func (s *Session) ownFirst(ctx context.Context, st *stop, policy gate.Policy, of tree.Source, intent Intent) ([]gate.Verdict, error) {
	facts := gate.CommitFacts{Now: s.now, Commit: of.Base.Hash(), Reachable: true, EnvironmentOnly: true}
	for _, up := range s.upstream(st) {
		stay, err := s.stay(ctx, up, of, true)
		if err != nil {
			return nil, err
		}
		facts.Stays = append(facts.Stays, stay)
	}
	verdicts := gate.Commit(gate.Policy{Environment: policy.Environment, Ring: policy.Ring, After: policy.After, Rings: true, Skippable: policy.Skippable}, facts, intent.Skip)
	verdicts = slices.DeleteFunc(verdicts, func(v gate.Verdict) bool { return v.State == gate.Passed })
	for i := range verdicts {
		verdicts[i].Name = "own files"
		verdicts[i].Reason = fmt.Sprintf("with the environment's own files of %s: %s", of.Environment.Short(), verdicts[i].Reason)
	}
	return verdicts, nil
}

// endsHold says whether promoting a commit by name ends the hold of a stop: it is the
// one that was rolled back from, or a later one.
func (s *Session) endsHold(ctx context.Context, st *stop, of tree.Source) (bool, error) {
	hold, _, err := s.held(ctx, st)
	if err != nil || hold == nil || hold.Base == "" {
		return false, err
	}
	since, found, err := s.platform.bases.until(hold.Base.Hash())
	return found && slices.ContainsFunc(since, func(b source.Base) bool { return tree.RevisionOf(b.Commit) == of.Base }), err
}

// configured returns the stop's base commit with the environment's own files as they
// are now; nil where these are not new.
func (s *Session) configured(ctx context.Context, st *stop, intent Intent) (*candidate, error) {
	has := st.has()
	own := tree.RevisionOf(st.out.own.Commit)
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
	if has.Base != "" && tree.RevisionOf(b.Commit) != has.Base {
		newer, err := s.newer(has)
		if err != nil {
			return nil, err
		}
		_, known, err := s.platform.bases.until(has.Base.Hash())
		if err != nil {
			return nil, err
		}
		if known && !slices.ContainsFunc(newer, func(n source.Base) bool { return n.Commit == b.Commit }) {
			return nil, fmt.Errorf("%s has %s, and %s comes before that: `kalypso rollback --env %s --to %s` goes back, and keeps it there",
				st.id(), has.Base.Short(), git.Short(b.Commit), st.stage.Name, git.Short(b.Commit))
		}
	}
	c, err := s.judged(ctx, st, b, intent)
	if err != nil || c.source != has {
		return c, err
	}
	hold, _, err := s.held(ctx, st)
	if hold == nil {
		return nil, err
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
