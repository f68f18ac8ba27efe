package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/tree"
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
func (pl *planner) Plan(ctx context.Context, intent Intent) (*Plan, error) {
	p := &Plan{Inputs: pl.inputs(), Commit: intent.Commit, Skip: intent.Skip}
	for _, st := range pl.state.asked() {
		stop, err := pl.plan(ctx, st, intent)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", st.id(), err)
		}
		p.Stops = append(p.Stops, stop)
	}
	return p, nil
}

// look is what there is to know of a stage before it is decided what it may get next.
type look struct {
	status *Stop // its State is set where nothing can be decided
	// recorded says that the record says what the stage has. drift says that its files are
	// to be restored.
	recorded, drift bool
}

// plan says what could be done for one stage, and changes nothing.
func (pl *planner) plan(ctx context.Context, st *stop, intent Intent) (*Stop, error) {
	l, err := pl.look(ctx, st)
	if err != nil {
		return nil, err
	}
	if l.recorded {
		if l.status.Rollout, err = pl.observer.observe(ctx, st); err != nil {
			return nil, err
		}
	}
	return l.status, pl.decide(ctx, st, l, intent)
}

// look reads what a stage has, and whether its branch is as it was left.
func (pl *planner) look(ctx context.Context, st *stop) (l look, err error) {
	out := statusOf(st)
	l.status = out
	if st.out.repository == nil {
		out.State, out.Reason = Absent, st.out.absent
		if st.out.unreadable {
			out.State = Blocked
		}
		return l, nil
	}
	if foreign(st, out) {
		return l, nil
	}
	run, err := st.out.history.landed(ctx, st.ringName())
	if err != nil {
		return l, err
	}
	if out.Hold, _, err = pl.records.held(ctx, st); err != nil {
		return l, err
	}
	if len(run) > 0 {
		out.Landed = run[len(run)-1].String()
	}
	l.drift, l.recorded, err = pl.drifted(ctx, st, out)
	return l, err
}

// decide says what a stage may get next, unless something is in the way.
func (pl *planner) decide(ctx context.Context, st *stop, l look, intent Intent) error {
	out := l.status
	if out.State != "" {
		return nil
	}
	if err := errors.Join(pl.findGone(ctx, st, out), pl.recordGone(ctx, st, out)); err != nil || out.State != "" {
		return err
	}
	if intent.Commit == "" && len(intent.Skip.Gates) == 0 && !l.drift {
		if err := pl.keepDecided(ctx, st, out); err != nil || out.State != "" {
			return err
		}
	}
	return pl.next(ctx, st, out, intent, l.drift)
}

// mostTried is how many candidates are compiled for a stop before it is blocked.
const mostTried = 5

// next finds what a stop may get next. Where what a candidate would change speaks against
// it, another one may go on: a broken commit does not hold up those before it, nor the
// environment's own files.
func (pl *planner) next(ctx context.Context, st *stop, out *Stop, intent Intent, drift bool) error {
	against := map[tree.Source]string{}
	var found *Stop
	for range mostTried {
		try := *out
		if err := pl.try(ctx, st, &try, intent, drift, against); err != nil {
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
		against[try.Step.Source] = gate.Reason(try.Step.Verdicts)
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
func (pl *planner) try(ctx context.Context, st *stop, out *Stop, intent Intent, drift bool, against map[tree.Source]string) error {
	ch := chooser{state: pl.state, records: pl.records, observer: pl.observer, judge: pl.judge, st: st, intent: intent}
	c, others, err := ch.choose(ctx, against)
	if err != nil {
		return err
	}
	if drift && (c == nil || c.state() != gate.Passed) { // what waits need not hinder it
		if c != nil {
			others = slices.Insert(others, 0, Other{Commit: string(c.source.Base), Reason: gate.Reason(c.verdicts)})
		}
		c = &candidate{source: st.has(), kind: RestoreKind}
	}
	out.Others = others
	if c == nil {
		return pl.settled(ctx, st, out)
	}
	out.Step = &Step{Kind: c.kind, Source: c.source, Verdicts: c.verdicts}
	if c.state() == gate.Passed {
		if err := pl.planStep(ctx, st, out.Step, intent); err != nil {
			return err
		}
	}
	out.conclude()
	return nil
}

// planStep compiles a candidate that passed the gates of the commit, and asks those of
// the change.
func (pl *planner) planStep(ctx context.Context, st *stop, step *Step, intent Intent) error {
	c := change{verdicts: step.Verdicts, trailers: skipped(intent.Skip)}
	if step.Kind == RestoreKind { // nothing is promoted that would end a hold
		c.hold = st.ownHold()
	}
	if err := pl.maker.prepare(ctx, st, step, c); err != nil {
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
	if err := pl.judge.change(ctx, st, step, intent.Skip); err != nil {
		return err
	}
	pl.maker.describe(st, step)
	return nil
}

// askAgain asks the gates of a step's change again, in place of what they said before.
func (pl *planner) askAgain(ctx context.Context, st *stop, step *Step, skip gate.Skip) error {
	return pl.judge.change(ctx, st, step, skip)
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
	out.Reason = gate.Reason(step.Verdicts)
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
