package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// lockstep makes a candidate wait while another commit soaks in the stage, or in one after it. If
// that commit is on its way through the stage, it is the candidate.
func (ch *chooser) lockstep(ctx context.Context, c *candidate, there []source.Base,
	others []Other) (*candidate, []Other, error) {
	first, verdict, err := ch.pl.soaking(ctx, ch.st, c)
	if err != nil || first == "" {
		return c, others, err
	}
	if i := slices.IndexFunc(there,
		func(b source.Base) bool { return tree.RevisionOf(b.Commit) == first }); i >= 0 {
		through, err := ch.judged(ctx, there[i])
		if err != nil {
			return nil, nil, err
		}
		if through.state() == gate.Passed {
			if other, _, err := ch.pl.soaking(ctx, ch.st, through); err != nil || other == "" {
				return through,
					append(others, Other{Commit: string(c.source.Base), Reason: "advance: " + verdict.Reason}), err
			}
		}
	}
	c.verdicts = append(c.verdicts, verdict)
	return c, others, nil
}

// soaking returns the commit that soaks in a stage, or in a stage after it, for another stage
// that it can still enter. It also returns the verdict on a candidate because of this commit. The
// revision is "" if no commit soaks.
func (pl *Planner) soaking(ctx context.Context, st *session.Stage, c *candidate) (tree.Revision,
	gate.Verdict, error) {
	after := map[string]bool{st.Policy.Name: true}
	for _, next := range pl.state.Stages { // earlier stages come first
		if next != st && !slices.ContainsFunc(next.Policy.After,
			func(name string) bool { return after[name] }) && next.Policy != st.Policy {
			continue
		}
		after[next.Policy.Name] = true
		for _, up := range pl.state.UpstreamAndSoaking(next) {
			has := up.Has()
			if !after[up.Policy.Name] || has.Base == "" || has.Base == next.Has().Base ||
				has.Base == c.source.Base {
				continue
			}
			if up.Policy != next.Policy || !next.TakesPairs() {
				has.Environment = tree.RevisionOf(next.Environment.Own.Commit)
			} else if pair, err := pl.bestPair(ctx, next, has.Base); err != nil {
				return "", gate.Verdict{}, err
			} else if pair != nil {
				has = pair.source
			}
			soaks, err := pl.judge.soaksFor(ctx, next, has)
			if err != nil {
				return "", gate.Verdict{}, err
			}
			if soaks.State != gate.Pending {
				continue
			}
			never, err := pl.refuses(ctx, next, has)
			if err == nil && !never {
				never, err = pl.neverComes(ctx, next, has)
			}
			if err != nil {
				return "", gate.Verdict{}, err
			}
			if !never {
				return has.Base, gate.Verdict{
					Gate: gate.Advance, Name: string(model.Lockstep), State: gate.Pending, Until: soaks.Until,
					Reason: fmt.Sprintf("%s is on its way to %s: %s", has.Base.Short(), next.ID(), soaks.Reason),
				}, nil
			}
		}
	}
	return "", gate.Verdict{}, nil
}

// batch makes a candidate wait until the time since the last deployment is over.
func (pl *Planner) batch(ctx context.Context, st *session.Stage, c *candidate) error {
	stay, err := pl.observer.Stay(ctx, st, st.Has(), false)
	if err != nil || stay.Entered.IsZero() {
		return err
	}
	if next := stay.Entered.Add(st.Policy.Promotion.Every); pl.state.Now.Before(next) {
		c.verdicts = append(c.verdicts, gate.Verdict{
			Gate: gate.Advance, Name: string(model.Batch), State: gate.Pending, Since: stay.Entered,
			Until: next,
			Reason: fmt.Sprintf("the last commit came at %s, and the next one comes from %s on",
				stay.Entered.UTC().Format(time.RFC3339), next.UTC().Format(time.RFC3339)),
		})
	}
	return nil
}

// soaksFor returns the verdict of a stage's soak gates about a base commit that may enter it
// next. The verdict is passed if the stage has no such gate, or would not let the commit in
// anyway.
func (j *judge) soaksFor(ctx context.Context, st *session.Stage, of tree.Source) (gate.Verdict,
	error) {
	if st.Environment.Repository == nil || st.Environment.Orders.Rejected[of.Base.Hash()] != nil ||
		st.Aborted(of.Base.Hash()) != nil {
		return gate.Verdict{State: gate.Passed}, nil
	}
	newer, err := j.state.Newer(st.Has())
	if err != nil || !slices.ContainsFunc(newer,
		func(b source.Base) bool { return tree.RevisionOf(b.Commit) == of.Base }) {
		return gate.Verdict{State: gate.Passed}, err
	}
	c, err := j.gates(ctx, st, of, Intent{})
	if err != nil {
		return gate.Verdict{}, err
	}
	waits := gate.Verdict{State: gate.Passed}
	for _, v := range c.verdicts {
		switch {
		case v.Gate != model.GateSoak && v.Gate != model.GateAfter:
		case v.State == gate.Blocked, v.Fails:
			return gate.Verdict{State: gate.Blocked}, nil
		case v.State == gate.Pending && v.Gate == model.GateSoak:
			waits = v
		}
	}
	return waits, nil
}

// neverComes reports whether the stages before keep a base commit out of a stage, unless a person
// acts. The commit failed in them, left them too early, or cannot reach them either. If the
// policy requires any stage, this must be true of all stages before.
func (pl *Planner) neverComes(ctx context.Context, st *session.Stage, of tree.Source) (bool,
	error) {
	policy := st.GatePolicy()
	facts, err := pl.judge.commitFacts(ctx, st, of)
	if err != nil {
		return false, err
	}
	never := 0
	for _, name := range policy.After {
		alone := policy
		alone.After, alone.Any = []string{name}, false
		is := slices.ContainsFunc(gate.Commit(alone, facts, gate.Skip{}), func(v gate.Verdict) bool {
			return v.State == gate.Blocked && (v.Gate == model.GateAfter || v.Gate == model.GateSoak)
		})
		for _, up := range pl.state.Upstream(st) {
			if is || policy.Rings && up.RingName() != name || !policy.Rings && up.Policy.Name != name {
				continue
			}
			had, err := up.Had(ctx, []source.Base{{Commit: of.Base.Hash()}})
			if err == nil && !had[of.Base] {
				at := tree.Source{Base: of.Base, Environment: tree.RevisionOf(up.Environment.Own.Commit)}
				if up.TakesPairs() { // its own files there are not known
					at.Environment = up.Has().Environment
				}
				if is, err = pl.refuses(ctx, up, at); err == nil && !is {
					is, err = pl.neverComes(ctx, up, of)
				}
			}
			if err != nil {
				return false, err
			}
		}
		if is {
			never++
		}
	}
	return never > 0 && (!policy.Any || never == len(policy.After)), nil
}

// refuses reports whether a stage rejects a base commit that it does not have, now and later.
// Either it has a newer commit, or gates of the commit or of the change block it. A hold or a
// freeze blocks all commits and ends, so it does not count.
func (pl *Planner) refuses(ctx context.Context, st *session.Stage, of tree.Source) (bool, error) {
	key := refusal{st.ID(), of}
	if known, asked := pl.refusals[key]; asked {
		return known, nil
	}
	refuses, err := pl.wouldRefuse(ctx, st, of)
	if err == nil {
		pl.refusals[key] = refuses
	}
	return refuses, err
}

// refusal is the input of refuses.
type refusal struct {
	stage string
	of    tree.Source
}

// bestPair returns the candidate with a base commit of a ring that takes pairs, or nil.
func (pl *Planner) bestPair(ctx context.Context, st *session.Stage, base tree.Revision) (*candidate,
	error) {
	pairs, err := pl.state.Pairs(ctx, st, []source.Base{{Commit: base.Hash()}})
	if err != nil {
		return nil, err
	}
	ch := &chooser{pl: pl, st: st}
	return ch.best(ctx, pairs[base])
}

func (pl *Planner) wouldRefuse(ctx context.Context, st *session.Stage, of tree.Source) (bool,
	error) {
	if st.Environment.Repository == nil {
		return true, nil
	}
	if newer, err := pl.state.HasNewer(st, of.Base); err != nil || newer {
		return true, err
	}
	if st.Policy.Promotion.Advance == model.MatchUpstream {
		for _, up := range pl.state.Upstream(st) {
			if up.Has().Base == "" {
				continue
			}
			if newer, err := pl.state.HasNewer(up, of.Base); err != nil || newer {
				return true, err
			}
			if st.Policy.Promotion.Any { // the first that has something matches
				break
			}
		}
	}
	if leavesOutReverted(st) {
		if why, err := pl.judge.takenBack(st, of.Base.Hash()); err != nil || why != "" {
			return true, err
		}
	}
	step := &Step{Kind: Promote, Source: of}
	c, err := pl.judge.gates(ctx, st, step.Source, Intent{})
	if err != nil {
		return false, err
	}
	blocks := func(v gate.Verdict) bool {
		return v.State == gate.Blocked &&
			v.Kind().Effect != gate.Holds
	}
	if slices.ContainsFunc(c.verdicts, blocks) {
		return true, nil
	}
	if err := pl.planStep(ctx, st, step, Intent{}); err != nil {
		return false, err
	}
	return ruledOut(step), nil
}
