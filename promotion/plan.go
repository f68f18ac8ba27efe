package promotion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// Plan is what could be done, and what it rests on.
type Plan struct {
	// Inputs are all that decisions rest on and that can move: refs of repositories, by
	// URL and name. A plan that was saved is applied only while they are the same.
	Inputs map[string]map[string]string `json:"inputs"`
	Commit string                       `json:"commit,omitempty"` // that was asked for
	Skip   gate.Skip                    `json:"skip,omitzero"`
	Stops  []*Stop                      `json:"stops"`
}

// Plan says what could be done now for what was asked, and changes nothing.
func (s *Session) Plan(ctx context.Context, intent Intent) (*Plan, error) {
	p := &Plan{Inputs: s.inputs(), Commit: intent.Commit, Skip: intent.Skip}
	for _, st := range s.asked() {
		stop, err := s.plan(ctx, st, intent, false)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", st.id(), err)
		}
		p.Stops = append(p.Stops, stop)
	}
	return p, nil
}

// plan says what could be done for one stop. With write, what is seen of its rollout is
// said.
func (s *Session) plan(ctx context.Context, st *stop, intent Intent, write bool) (*Stop, error) {
	out := &Stop{Environment: st.stage.Name, Ring: st.ringName(), Has: st.has(), Branch: st.out.branch}
	if st.out.repository == nil {
		out.State, out.Reason = Absent, st.out.absent
		if st.out.unreadable {
			out.State = Blocked
		}
		return out, nil
	}
	out.Tip = string(tree.RevisionOf(st.out.tip))
	if st.foreign(out) {
		return out, nil
	}
	run, err := st.out.history.landed(ctx, st.ringName())
	if err != nil {
		return nil, err
	}
	if out.Hold, _, err = s.held(ctx, st); err != nil {
		return nil, err
	}
	if len(run) > 0 {
		out.Landed = run[len(run)-1].String()
	}
	drift, recorded, err := s.drifted(ctx, st, out)
	if err != nil {
		return out, err
	}
	if recorded { // else nobody knows what it has
		if out.Rollout, err = s.observe(ctx, st, write); err != nil {
			return nil, err
		}
	}
	if out.State != "" {
		return out, nil
	}
	if err := errors.Join(s.findGone(ctx, st, out), s.recordGone(ctx, st, out)); err != nil || out.State != "" {
		return out, err
	}
	if intent.Commit == "" && len(intent.Skip.Gates) == 0 && !drift {
		if err := s.keepDecided(ctx, st, out); err != nil || out.State != "" {
			return out, err
		}
	}
	if err := s.next(ctx, st, out, intent, drift); err != nil {
		return nil, err
	}
	return out, nil
}

// mostTried is how many candidates are compiled for a stop before it is blocked.
const mostTried = 5

// next finds what a stop may get next. Where what a candidate would change speaks against
// it, another one may go on: a broken commit does not hold up those before it, nor the
// environment's own files.
func (s *Session) next(ctx context.Context, st *stop, out *Stop, intent Intent, drift bool) error {
	against := map[tree.Source]string{}
	var found *Stop
	for range mostTried {
		try := *out
		if err := s.try(ctx, st, &try, intent, drift, against); err != nil {
			return err
		}
		if found == nil {
			found = &try
		}
		if try.Step == nil || try.Step.prepared == nil || intent.Commit != "" {
			break
		}
		if !spokenAgainst(try.Step) {
			found = &try
			break
		}
		against[try.Step.Source] = reasonOf(try.Step.Verdicts)
	}
	*out = *found
	return nil
}

// spokenAgainst says whether the gates that nothing but the change decides speak against
// a step: nothing that anybody does lets it pass, but another commit or policy.
func spokenAgainst(step *Step) bool {
	return slices.ContainsFunc(step.Verdicts, func(v gate.Verdict) bool {
		return v.State == gate.Blocked && slices.Contains([]string{"errors", "kept", "removals", "budget", "policy"}, v.Gate)
	})
}

// try says what becomes of the candidate for a stop that nothing speaks against yet.
func (s *Session) try(ctx context.Context, st *stop, out *Stop, intent Intent, drift bool, against map[tree.Source]string) error {
	c, others, err := s.choose(ctx, st, intent, against)
	if err != nil {
		return err
	}
	if drift && (c == nil || c.state() != gate.Passed) { // what waits need not hinder it
		if c != nil {
			others = slices.Insert(others, 0, Other{Commit: string(c.source.Base), Reason: reasonOf(c.verdicts)})
		}
		c = &candidate{source: st.has(), kind: RestoreKind}
	}
	out.Others = others
	if c == nil {
		return s.settled(ctx, st, out)
	}
	out.Step = &Step{Kind: c.kind, Source: c.source, Verdicts: c.verdicts}
	if c.state() == gate.Passed {
		if err := s.planStep(ctx, st, out.Step, intent); err != nil {
			return err
		}
	}
	out.conclude()
	return nil
}

// planStep compiles a candidate that passed the gates of the commit, and asks those of
// the change.
func (s *Session) planStep(ctx context.Context, st *stop, step *Step, intent Intent) error {
	c := change{verdicts: step.Verdicts, trailers: skipped(intent.Skip)}
	if step.Kind == RestoreKind { // nothing is promoted that would end a hold
		c.hold = st.ownHold()
	}
	if err := s.prepare(ctx, st, step, c); err != nil {
		return err
	}
	if step.prepared.obstacle != "" {
		v := gate.Verdict{Gate: "errors", State: gate.Blocked, Reason: step.prepared.obstacle}
		if step.prepared.missing {
			v.State = gate.Pending
		}
		step.Verdicts = append(step.Verdicts, v)
		return nil
	}
	if step.prepared.commit.IsZero() && step.Change.Errors == 0 {
		return nil
	}
	facts, err := s.changeFacts(ctx, st, step)
	if err != nil {
		return err
	}
	step.Verdicts = append(step.Verdicts, gate.Planned(ctx, st.policyOf(step), *facts, intent.Skip)...)
	s.describe(st, step)
	return nil
}

// skipped are the trailers of a step for which gates were to be passed over.
func skipped(skip gate.Skip) []string {
	if len(skip.Gates) == 0 {
		return nil
	}
	out := []string{"Kalypso-Skip-Gates: " + strings.Join(skip.Gates, ", "), "Kalypso-Reason: " + folded(skip.Reason)}
	if skip.By != "" {
		out = append(out, "Promoted-By: "+firstLine(skip.By))
	}
	return out
}

// policyOf is what the gates ask of a planned change: where no file changes, there is
// nothing to approve, and no change request to approve it on.
func (st *stop) policyOf(step *Step) gate.Policy {
	p := st.policy()
	if step.NoOp {
		for i := range p.Gates {
			p.Gates[i].Approvals = nil
		}
	}
	return p
}

// changeFacts gathers what gates ask of a planned change.
func (s *Session) changeFacts(ctx context.Context, st *stop, step *Step) (*gate.ChangeFacts, error) {
	facts := &gate.ChangeFacts{Now: s.now, Change: step.Change, Head: step.prepared.commit, Post: post, Satisfies: s.subject.Satisfies}
	if !st.wantsApprovals() {
		return facts, nil
	}
	r := st.out.repository
	switch {
	case r.plain:
		reviews, err := plainApprovals(ctx, r, st.stage.Name, step.prepared.commit)
		facts.Reviews, facts.Author = &forge.Reviews{Reviews: reviews}, cmp.Or(s.request.By, s.committer(s.now).Email)
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

// writes says how the stop's tree gets into its branch. The first tree of a branch is
// pushed: nothing can be merged into a branch that is not there. Where it needs
// approvals, the branch is begun without a tree.
func (st *stop) writes() model.Write {
	w := st.stage.Promotion.Write
	if w == model.WriteDefault {
		w = model.WritePullRequest
		if st.out.repository.plain {
			w = model.WritePush
		}
	}
	if st.out.tip.IsZero() && !st.wantsApprovals() {
		return model.WritePush
	}
	return w
}

func (st *stop) wantsApprovals() bool {
	return slices.ContainsFunc(st.policy().Gates, func(g model.Gates) bool { return g.Approvals != nil })
}

// promotionBranch is the branch that proposes a stop's next tree.
func (st *stop) promotionBranch() string { return "kalypso/promote/" + st.id() }

// conclude says where a stop is, by the gates of its step.
func (out *Stop) conclude() {
	step := out.Step
	switch gate.Overall(step.Verdicts) {
	case gate.Passed:
		out.State, out.Reason = Ready, out.title()
		switch {
		case step.prepared != nil && step.prepared.record == nil && step.Change != nil && step.Change.Errors > 0:
			// The policy lets errors pass, and there is nothing beside them.
			out.State, out.Reason = Blocked, step.Source.Base.Short()+" cannot be compiled at all"
		case step.prepared != nil && step.prepared.commit.IsZero() && step.Kind == RestoreKind:
			out.State = Blocked
			out.Reason = "what somebody changed is kept from an earlier commit and cannot be compiled: revert the commit that changed it"
		case step.prepared != nil && step.prepared.commit.IsZero():
			out.State, out.Reason, out.Step = Current, "it has "+step.Source.Base.Short(), nil
		}
		return
	case gate.Blocked:
		out.State = Blocked
	default:
		out.State = Waiting
	}
	out.Reason = reasonOf(step.Verdicts)
	for _, v := range step.Verdicts {
		if v.State != gate.Passed && (v.Gate == "hold" || v.Gate == "freeze") {
			out.State, out.Reason, out.Since, out.Until = Held, v.Gate+": "+v.Reason, v.Since, v.Until
			return
		}
	}
	for _, v := range step.Verdicts {
		if v.State != gate.Passed {
			out.Since, out.Until = v.Since, v.Until
			return
		}
	}
}

func (out *Stop) title() string {
	switch out.Step.Kind {
	case Configure:
		return "it can get its own files as of " + out.Step.Source.Environment.Short()
	case RestoreKind:
		return "its files can be restored"
	}
	return "it can get " + out.Step.Source.Base.Short()
}

// list names some of many.
func list(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
