package promotion

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// ordered are the verdicts of orders, and of the history: of what no policy has to name.
func ordersAgainst(st *stop, facts gate.CommitFacts) []gate.Verdict {
	return gate.Commit(gate.Policy{Environment: st.stage.Name, Ring: st.ringName()}, facts, gate.Skip{})
}

// commitFacts gathers what the gates of a stop ask of a base commit.
func (j *judge) commitFacts(ctx context.Context, st *stop, of tree.Source) (gate.CommitFacts, error) {
	commit := of.Base.Hash()
	hold, err := j.holdFacts(ctx, st)
	if err != nil {
		return gate.CommitFacts{}, err
	}
	facts := gate.CommitFacts{
		Now: j.state.now, Commit: commit,
		EnvironmentOnly: st.has().Base == of.Base && st.has() != (tree.Source{}),
		Hold:            hold,
		Freeze:          freezeOf(st.out.orders.frozen),
		Rejected:        freezeOf(st.out.orders.rejected[commit]),
		Aborted:         freezeOf(st.aborted(commit)),
	}
	_, reachable, err := j.state.platform.bases.until(commit)
	if err != nil {
		return facts, err
	}
	facts.Reachable = reachable
	if facts.EnvironmentOnly && j.state.request.AllRings {
		return facts, nil
	}
	seen := map[*stop]bool{}
	for _, other := range append(j.state.upstream(st), j.state.soaking(st)...) {
		if seen[other] {
			continue
		}
		seen[other] = true
		stay, err := j.observer.stay(ctx, other, of, facts.EnvironmentOnly)
		if err != nil {
			return facts, fmt.Errorf("%s: %w", other.id(), err)
		}
		facts.Stays = append(facts.Stays, stay)
	}
	facts.Statuses, err = j.state.platform.repository.statusesOf(ctx, j.state.ledger(st.out), commit)
	facts.StatusesKnown = err == nil
	return facts, err
}

// holdFacts is the hold of a stop that stands; nil for none.
func (j *judge) holdFacts(ctx context.Context, st *stop) (*gate.Freeze, error) {
	hold, since, err := j.records.held(ctx, st)
	if err != nil || hold == nil {
		return nil, err
	}
	until, _ := time.Parse(time.RFC3339, hold.Until)
	if !until.IsZero() && !j.state.now.Before(until) {
		return nil, nil
	}
	return &gate.Freeze{Reason: hold.Reason, By: hold.By, At: since, Until: until}, nil
}

// freezeOf returns an order as gates take it; nil for none.
func freezeOf(o *order) *gate.Freeze {
	if o == nil {
		return nil
	}
	return &gate.Freeze{Reason: o.Reason, By: o.By, At: o.at, Until: o.Until}
}

// orders are what orders, and the history, say against commits in a stage.
func (j *judge) orders(ctx context.Context, st *stop, of tree.Source) ([]gate.Verdict, error) {
	facts, err := j.commitFacts(ctx, st, of)
	if err != nil {
		return nil, err
	}
	return ordersAgainst(st, facts), nil
}

// change asks the gates of a prepared change, in place of what they said before.
func (j *judge) change(ctx context.Context, st *stop, step *Step, skip gate.Skip) error {
	facts, err := j.changeFacts(ctx, st, step)
	if err != nil {
		return err
	}
	ofCommit := slices.DeleteFunc(slices.Clone(step.Verdicts), func(v gate.Verdict) bool { return gate.IsPlanned(v.Gate) })
	step.Verdicts = append(ofCommit, gate.Planned(ctx, policyOf(st, step), *facts, skip)...)
	return nil
}

// changeFacts gathers what gates ask of a planned change.
func (j *judge) changeFacts(ctx context.Context, st *stop, step *Step) (*gate.ChangeFacts, error) {
	facts := &gate.ChangeFacts{Now: j.state.now, Change: step.Change, Head: step.prepared.commit, Post: post, Satisfies: j.state.platform.subject.Satisfies}
	if !st.wantsApprovals() {
		return facts, nil
	}
	r := st.out.repository
	switch {
	case r.plain:
		reviews, err := plainApprovals(ctx, r, st.stage.Name, step.prepared.commit)
		facts.Reviews, facts.Author = &forge.Reviews{Reviews: reviews}, cmp.Or(j.state.request.By, j.state.request.author(j.state.now).Email)
		return facts, err
	case st.writes() == model.WritePush:
		facts.NoReviews = "commits are pushed to branch " + st.out.branch + " directly: promotion.write is push"
		return facts, nil
	}
	open, err := r.forge.FindChange(ctx, st.promotionBranch(), st.out.branch)
	if err != nil || open == nil {
		return facts, err
	}
	facts.Author = open.Author
	step.URL = open.URL
	facts.Reviews, err = r.forge.Reviews(ctx, open.Number)
	return facts, err
}

// policyOf is what the gates ask of a planned change: where no file changes, there is
// nothing to approve, and no change request to approve it on.
func policyOf(st *stop, step *Step) gate.Policy {
	p := st.policy()
	if step.NoOp {
		for i := range p.Gates {
			p.Gates[i].Approvals = nil
		}
	}
	return p
}

// judged asks the gates of a base commit.
func (j *judge) judged(ctx context.Context, st *stop, b source.Base, intent Intent) (*candidate, error) {
	return j.gates(ctx, st, st.with(b), intent)
}

// gates asks the gates that need nothing but the commits.
func (j *judge) gates(ctx context.Context, st *stop, of tree.Source, intent Intent) (*candidate, error) {
	facts, err := j.commitFacts(ctx, st, of)
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
		ends, err := j.endsHold(ctx, st, of)
		if err != nil {
			return nil, err
		}
		if ends {
			facts.Hold = nil
		}
	}
	policy := st.policy()
	if facts.EnvironmentOnly && j.state.request.AllRings && policy.Rings {
		policy.After, policy.Rings = nil, false
	}
	c.verdicts = gate.Commit(policy, facts, intent.Skip)
	if policy.Rings && !facts.EnvironmentOnly && st.has().Environment != of.Environment && !j.state.request.AllRings {
		verdicts, err := j.ownFirst(ctx, st, policy, of, intent)
		if err != nil {
			return nil, err
		}
		c.verdicts = append(c.verdicts, verdicts...)
	}
	return c, nil
}

// ownFirst is what speaks against a base commit with new files of the environment in a
// ring after others: those go through the rings as well, whatever they come with.
func (j *judge) ownFirst(ctx context.Context, st *stop, policy gate.Policy, of tree.Source, intent Intent) ([]gate.Verdict, error) {
	facts := gate.CommitFacts{Now: j.state.now, Commit: of.Base.Hash(), Reachable: true, EnvironmentOnly: true}
	for _, up := range j.state.upstream(st) {
		stay, err := j.observer.stay(ctx, up, of, true)
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
func (j *judge) endsHold(ctx context.Context, st *stop, of tree.Source) (bool, error) {
	hold, _, err := j.records.held(ctx, st)
	if err != nil || hold == nil || hold.Base == "" {
		return false, err
	}
	since, found, err := j.state.platform.bases.until(hold.Base.Hash())
	return found && slices.ContainsFunc(since, func(b source.Base) bool { return tree.RevisionOf(b.Commit) == of.Base }), err
}

// soaksFor is what the soak gates of a stop say of a base commit that is on its way there;
// passed where nothing is asked of it, or it would not be let through anyway.
func (j *judge) soaksFor(ctx context.Context, st *stop, of tree.Source) (gate.Verdict, error) {
	if st.out.repository == nil || st.out.orders.rejected[of.Base.Hash()] != nil || st.aborted(of.Base.Hash()) != nil {
		return gate.Verdict{State: gate.Passed}, nil
	}
	newer, err := j.state.newer(st.has())
	if err != nil || !slices.ContainsFunc(newer, func(b source.Base) bool { return tree.RevisionOf(b.Commit) == of.Base }) {
		return gate.Verdict{State: gate.Passed}, err
	}
	c, err := j.gates(ctx, st, tree.Source{Base: of.Base, Environment: tree.RevisionOf(st.out.own.Commit)}, Intent{})
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
