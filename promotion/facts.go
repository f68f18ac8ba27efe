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
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// policy is what the gates of a stop ask.
func (st *stop) policy() gate.Policy {
	p := &st.stage.Promotion
	out := gate.Policy{
		Environment: st.stage.Name, Ring: st.ringName(),
		After: st.stage.After, Any: p.Any, Gates: []model.Gates{p.Gates},
		AllowErrors: p.AllowErrors, AllowKept: p.AllowKept, Skippable: p.Skippable,
	}
	if st.ring != nil {
		out.Gates = append(out.Gates, st.ring.Gates)
		if len(st.ring.After) > 0 {
			out.After, out.Rings, out.Any = st.ring.After, true, false
		}
	}
	return out
}

// ordered are the verdicts of orders, and of the history: of what no policy has to name.
func (st *stop) ordered(facts gate.CommitFacts) []gate.Verdict {
	return gate.Commit(gate.Policy{Environment: st.stage.Name, Ring: st.ringName()}, facts, gate.Skip{})
}

// rolloutGate is when a commit counts as having run in the stop.
func (st *stop) rolloutGate() model.RolloutGate {
	if st.ring != nil && st.ring.Gates.Rollout != nil {
		return *st.ring.Gates.Rollout
	}
	if g := st.stage.Promotion.Gates.Rollout; g != nil {
		return *g
	}
	return model.RolloutGate{Source: "any", Min: "100%"}
}

// upstream returns the stops that a commit must have been in before it comes to this
// one.
func (s *Session) upstream(st *stop) []*stop {
	var out []*stop
	p := st.policy()
	for _, name := range p.After {
		if !p.Rings {
			out = append(out, s.stopsOf(name)...)
			continue
		}
		for _, other := range s.stopsOf(st.stage.Name) {
			if other.ringName() == name {
				out = append(out, other)
			}
		}
	}
	return out
}

// soaking returns the stops that soak gates of a stop name beside upstream.
func (s *Session) soaking(st *stop) []*stop {
	var out []*stop
	for _, g := range st.policy().Gates {
		if g.Soak != nil && g.Soak.Environment != "" {
			out = append(out, s.stopsOf(g.Soak.Environment)...)
		}
	}
	return out
}

// commitFacts gathers what the gates of a stop ask of a base commit.
func (s *Session) commitFacts(ctx context.Context, st *stop, of tree.Source) (gate.CommitFacts, error) {
	commit := of.Base.Hash()
	hold, err := s.holdFacts(ctx, st)
	if err != nil {
		return gate.CommitFacts{}, err
	}
	facts := gate.CommitFacts{
		Now: s.now, Commit: commit,
		EnvironmentOnly: st.has().Base == of.Base && st.has() != (tree.Source{}),
		Hold:            hold,
		Freeze:          st.out.orders.frozen.freeze(),
		Rejected:        st.out.orders.rejected[commit].freeze(),
		Aborted:         st.aborted(commit).freeze(),
	}
	_, reachable, err := s.platform.bases.until(commit)
	if err != nil {
		return facts, err
	}
	facts.Reachable = reachable
	if facts.EnvironmentOnly && s.request.AllRings {
		return facts, nil
	}
	seen := map[*stop]bool{}
	for _, other := range append(s.upstream(st), s.soaking(st)...) {
		if seen[other] {
			continue
		}
		seen[other] = true
		stay, err := s.stay(ctx, other, of, facts.EnvironmentOnly)
		if err != nil {
			return facts, fmt.Errorf("%s: %w", other.id(), err)
		}
		facts.Stays = append(facts.Stays, stay)
	}
	facts.Statuses, err = s.platform.repository.statusesOf(ctx, s.ledger(st.out), commit)
	facts.StatusesKnown = err == nil
	return facts, err
}

// statusesOf returns the statuses of a base commit, wherever they are kept.
func (r *repository) statusesOf(ctx context.Context, ledger *ledger, commit git.Hash) ([]forge.Status, error) {
	if r.plain {
		return ledger.of(ctx, commit)
	}
	return r.ledger().of(ctx, commit)
}

// aborted is the order that calls off a candidate of the stop; nil for none.
func (st *stop) aborted(commit git.Hash) *order { return st.out.orders.aborted[st.ringName()][commit] }

// holdFacts is the hold of a stop that stands; nil for none.
func (s *Session) holdFacts(ctx context.Context, st *stop) (*gate.Freeze, error) {
	hold, since, err := s.held(ctx, st)
	if err != nil || hold == nil {
		return nil, err
	}
	until, _ := time.Parse(time.RFC3339, hold.Until)
	if !until.IsZero() && !s.now.Before(until) {
		return nil, nil
	}
	return &gate.Freeze{Reason: hold.Reason, By: hold.By, At: since, Until: until}, nil
}

// stay returns the time of a base commit in a stop. own says that it is about the
// environment's own files as well: what counts then is the rollout of both.
func (s *Session) stay(ctx context.Context, st *stop, of tree.Source, own bool) (gate.Stay, error) {
	stay := gate.Stay{Environment: st.stage.Name, Ring: st.ringName()}
	if st.out.repository == nil || st.out.record == nil {
		return stay, nil
	}
	if own {
		return s.ownStay(ctx, st, of, stay)
	}
	v, err := st.out.history.visitOf(ctx, st.ringName(), of.Base)
	if err != nil || len(v.landings) == 0 {
		return stay, err
	}
	stay.Held = true
	hold, _, err := s.held(ctx, st)
	if err != nil {
		return stay, err
	}
	back := hold != nil && hold.Base == of.Base
	if hold != nil && hold.Base != "" && !back { // nor what came between
		newer, err := s.newer(st.has())
		if err != nil {
			return stay, err
		}
		back = slices.ContainsFunc(newer, func(b source.Base) bool { return tree.RevisionOf(b.Commit) == of.Base })
	}
	if back {
		stay.State, stay.Reason = forge.Failure, "it was rolled back from: "+hold.Reason
		return stay, nil
	}
	if v.followed.IsZero() {
		edited, err := s.edited(ctx, st.out)
		if err != nil || edited != "" {
			stay.State, stay.Reason = forge.Failure, edited
			return stay, err
		}
	}
	c, err := s.courseDuring(ctx, st, v, of.Base.Hash())
	if err != nil {
		return stay, err
	}
	stay.Entered, stay.State, stay.Since, stay.Reason = c.entered, c.state, c.since, c.reason
	if v.followed.IsZero() {
		return stay, nil
	}
	// It left when the next one was first heard of. Where that was never told, it is
	// taken to have left at once.
	if stay.Left = stay.Since; stay.Left.IsZero() {
		stay.Left = s.now
	}
	said, err := st.out.repository.ledger().of(ctx, v.followed)
	if following, ok := courseOf(said, st.id(), st.rolloutGate().By); ok && following.entered.After(stay.Since) {
		stay.Left = following.entered
	}
	return stay, err
}

// courseDuring is what was said of a base commit in its last stay in a stop, by what was
// said of the GitOps commits of the stay: once it went well, it did. Where policies name
// who may report, and they say nothing of these, what they say of the base commit counts.
func (s *Session) courseDuring(ctx context.Context, st *stop, v visit, base git.Hash) (course, error) {
	by := st.rolloutGate().By
	ledger := st.out.repository.ledger()
	if err := ledger.load(ctx, append(slices.Clone(v.landings), v.followed)...); err != nil {
		return course{}, err
	}
	var out course
	told := false
	for _, landing := range v.landings {
		c, ok := courseOf(ledger.known[landing], st.id(), by)
		if !ok {
			continue
		}
		if told {
			c.entered = out.entered
		}
		if out, told = c, true; c.state == forge.Success {
			break
		}
	}
	if told || len(by) == 0 {
		return out, nil
	}
	said, err := s.ledger(st.out).of(ctx, base)
	out, _ = courseOf(said, st.id(), by)
	return out, err
}

// ownStay is the time of a commit with an environment's own files in a ring of it.
func (s *Session) ownStay(ctx context.Context, st *stop, of tree.Source, stay gate.Stay) (gate.Stay, error) {
	if st.has() != of {
		return stay, nil
	}
	run, err := st.out.history.landed(ctx, st.ringName())
	if err != nil || len(run) == 0 {
		return stay, err
	}
	said, err := st.out.repository.ledger().of(ctx, run[len(run)-1])
	if err != nil {
		return stay, err
	}
	stay.Held = true
	c, _ := courseOf(said, st.id(), st.rolloutGate().By)
	stay.Entered, stay.State, stay.Since, stay.Reason = c.entered, c.state, c.since, c.reason
	return stay, nil
}
