// Package plan decides which commit each stage may get next, from the state that package session
// has read.
//
// A Planner chooses a candidate by the policy and evaluates the gates of the commit. Then it
// compiles the candidate, and evaluates the gates of the change. The result is a Plan with a
// StageStatus for each stage, whose Step has a commit that is made and not pushed. The package
// also plans rollbacks, holds and hydration. It writes nothing.
//
// For example, the State is of the first commit of examples/promotion, before any promotion. Plan
// returns a StageStatus for each stage. For dev, its State is ready, and its Step has the Kind
// first and this commit as the Base of its Source. For stage, the State is waiting, because the
// commit has not been in dev.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/observe"
	"github.com/kalypso-io/kalypso/promotion/session"
	"github.com/kalypso-io/kalypso/promotion/verify"
)

// Planner plans the next sources of stages. It writes nothing.
type Planner struct {
	state    *session.State
	records  *verify.Records
	observer *observe.Observer
	judge    *judge
	maker    *maker
	refusals map[refusal]bool
}

// New returns a Planner of a state.
func New(state *session.State, records *verify.Records, observer *observe.Observer) *Planner {
	m := &maker{state}
	j := &judge{state, records, observer, m, map[refusal]bool{}, map[*session.Stage]int{}}
	return &Planner{state, records, observer, j, m, map[refusal]bool{}}
}

// Intent is a person's decision, which a run applies in addition to policies.
type Intent struct {
	// Commit is the base commit to promote, as git names it; "" for the candidate that
	// the policy chooses.
	Commit string
	// Reason and By are the reason for promoting Commit, and the person who requests it. Commit
	// needs a reason if a hold or a rejection applies to it.
	Reason, By string
	Skip       gate.Skip
	// resumes is the proposal that the intent stems from; nil if somebody has it now. Orders that came
	// since count against it.
	resumes *Proposal
	// onlyClusters is true if the newest own files only add clusters to the stage, which may have
	// them at once.
	onlyClusters bool
}

func (i *Intent) reason() string { return cmp.Or(i.Reason, i.Skip.Reason) }

// lets reports whether an order against a commit does not count because somebody named the commit
// and knew the order. A proposal lists the known orders in a trailer.
func (i *Intent) lets(trailer, order string) bool {
	return i.resumes == nil || message.Trailer(i.resumes.Message, trailer) == message.Fold(order)
}

func (i *Intent) by() string { return cmp.Or(i.By, i.Skip.By) }

// Plan is a set of possible steps, with the inputs of their decisions.
type Plan struct {
	// Inputs are all movable inputs of decisions: refs of repositories, by URL and name. A
	// plan that was saved is applied only while they are the same.
	Inputs map[string]map[string]string `json:"inputs"`
	Commit string                       `json:"commit,omitempty"` // of the request
	Reason string                       `json:"reason,omitempty"` // of the request, as By
	By     string                       `json:"by,omitempty"`
	Skip   gate.Skip                    `json:"skip,omitzero"`
	Stages []*StageStatus               `json:"stages"`
	// Stages under their old name, which v1alpha1 keeps
	Stops []*StageStatus `json:"stops"`
}

// Plan returns the steps that are possible now for the stages of the request.
func (pl *Planner) Plan(ctx context.Context, intent Intent) (*Plan, error) {
	p := &Plan{Inputs: pl.inputs(), Commit: intent.Commit, Skip: intent.Skip}
	if intent.Commit != "" {
		p.Reason, p.By = intent.Reason, intent.By
	}
	for _, st := range pl.state.Requested() {
		status, err := pl.plan(ctx, st, intent)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", st.ID(), err)
		}
		p.Stages = append(p.Stages, status)
	}
	p.Stops = p.Stages
	return p, nil
}

// Look is the present state of a stage, before the decision about its next commit.
type Look struct {
	Status *StageStatus // its State is set if no decision is possible
	// Recorded is true if the record has the stage's source, so that its rollout can be observed.
	// drift is true if its files have to be restored.
	Recorded, drift bool
}

// plan returns the step that is possible for one stage.
func (pl *Planner) plan(ctx context.Context, st *session.Stage, intent Intent) (*StageStatus,
	error) {
	l, err := pl.Look(ctx, st)
	if err != nil {
		return nil, err
	}
	if l.Recorded {
		if l.Status.Rollout, err = pl.observer.Observe(ctx, st); err != nil {
			return nil, err
		}
	}
	return l.Status, pl.Decide(ctx, st, l, intent)
}

// Look reads the present commit of a stage, and whether its branch is as it was left.
// The rollout is not observed yet.
func (pl *Planner) Look(ctx context.Context, st *session.Stage) (l Look, err error) {
	if env := st.Environment; env.Repository != nil && env.Tip.IsZero() && pl.state.Request.Adopt {
		if _, err := pl.state.Moved(ctx, st); err != nil {
			return l, err
		}
	}
	out := StatusOf(st)
	l.Status = out
	if st.Environment.Repository == nil {
		out.State, out.Reason = Absent, st.Environment.Absent
		if st.Environment.Unreadable {
			out.State = Blocked
		}
		return l, nil
	}
	if foreign(st, out) {
		return l, nil
	}
	run, err := st.Environment.History.Deployed(ctx, st.RingName())
	if err != nil {
		return l, err
	}
	if out.Hold, _, err = pl.records.Held(ctx, st); err != nil {
		return l, err
	}
	if len(run) > 0 {
		out.Deployed = run[len(run)-1].String()
		out.Landed = out.Deployed
	}
	l.drift, l.Recorded, err = pl.drifted(ctx, st, out)
	return l, err
}

// Decide completes the status of a look with the stage's next commit, or with the reason why the
// stage gets none.
func (pl *Planner) Decide(ctx context.Context, st *session.Stage, l Look, intent Intent) error {
	out := l.Status
	if out.State != "" {
		return nil
	}
	for _, find := range []func(context.Context, *session.Stage, *StageStatus) error{pl.findMoved,
		pl.findGone, pl.recordGone} {
		if err := find(ctx, st, out); err != nil || out.State != "" {
			return err
		}
	}
	if intent.Commit == "" && intent.Skip.IsZero() && !l.drift {
		if err := pl.keepDecided(ctx, st, out); err != nil || out.State != "" {
			return err
		}
		if out.Resumes != nil {
			intent = *out.Resumes
		}
	}
	return pl.next(ctx, st, out, intent, l.drift)
}

// MaxTried is the number of candidates that are compiled for a stage before it is blocked.
const MaxTried = 5

// next finds the next commit of a stage. If the change of a candidate is blocked, another one may
// advance: a broken commit does not block older ones, nor the environment's own files.
func (pl *Planner) next(ctx context.Context, st *session.Stage, out *StageStatus, intent Intent,
	drift bool) error {
	excluded := map[tree.Source]string{}
	var found *StageStatus
	if intent.Commit == "" && intent.Skip.IsZero() && !drift {
		adds, err := pl.addsClusters(ctx, st)
		if err != nil {
			return err
		}
		if adds {
			intent.onlyClusters = true
		}
	}
	for range MaxTried {
		try := *out
		if err := pl.try(ctx, st, &try, intent, drift, excluded); err != nil {
			return err
		}
		if found == nil {
			found = &try
		}
		if tooEarly(st, try.Step) {
			found, excluded[try.Step.Source] = nil, "its own files do not have the ring yet"
			continue
		}
		if try.Step == nil || try.Step.Prepared == nil || intent.Commit != "" {
			break
		}
		waits := st.TakesPairs() && waitsForOwn(try.Step) // older own files may not
		if !ruledOut(try.Step) && (!waits || found.State == Blocked) {
			found = &try
		}
		if !ruledOut(try.Step) && !waits {
			break
		}
		excluded[try.Step.Source] = gate.Reason(try.Step.Verdicts)
	}
	if found == nil { // all of the sources that were tried are too early
		out.State, out.Reason = Waiting, "none of the own files that passed have the ring"
		return nil
	}
	*out = *found
	return nil
}

// waitsForOwn reports whether a step waits only for approvals of its own files.
func waitsForOwn(step *Step) bool {
	waits := false
	for _, v := range step.Verdicts {
		if v.State != gate.Passed && (v.Gate != model.GateApprovals || v.Name != gate.OwnFiles) {
			return false
		}
		waits = waits || v.State == gate.Pending
	}
	return waits
}

// tooEarly reports whether the first step of a ring brings own files from before the ring had
// anything.
func tooEarly(st *session.Stage, step *Step) bool {
	if step == nil || step.Kind != First || !st.TakesPairs() || step.Prepared == nil ||
		step.Prepared.record == nil ||
		step.Source.Environment == tree.RevisionOf(st.Environment.Own.Commit) {
		return false
	}
	return !slices.ContainsFunc(step.Prepared.record.ClusterTypes,
		func(e tree.ClusterTypeEntry) bool { return e.Ring == st.RingName() })
}

// addsClusters reports whether the newest own files only add clusters to a ring, and the policy
// lets such changes skip the soak.
func (pl *Planner) addsClusters(ctx context.Context, st *session.Stage) (bool, error) {
	has, own := st.Has(), tree.RevisionOf(st.Environment.Own.Commit)
	if !st.TakesPairs() || !st.Policy.Promotion.OwnChanges.Clusters || has.Base == "" ||
		has.Environment == own {
		return false, nil
	}
	step := &Step{Kind: Configure, Source: tree.Source{Base: has.Base, Environment: own}}
	if err := pl.maker.prepare(ctx, st, step, extra{}); err != nil {
		return false, err
	}
	p := step.Prepared
	return p.obstacle == "" && p.report != nil && step.Change.Errors == 0 &&
		onlyAddsClusters(st.Policy.Name, p.report), nil
}

// ruledOut reports whether a step is blocked by gates that depend only on the change. Only
// another commit or policy can then pass.
func ruledOut(step *Step) bool {
	return slices.ContainsFunc(step.Verdicts, func(v gate.Verdict) bool {
		return v.State == gate.Blocked && v.Kind().Cause == gate.Candidate
	})
}

// try plans the candidate of a stage that is not ruled out yet.
func (pl *Planner) try(ctx context.Context, st *session.Stage, out *StageStatus, intent Intent,
	drift bool, excluded map[tree.Source]string) error {
	ch := chooser{pl: pl, st: st, intent: intent}
	c, others, err := ch.choose(ctx, excluded)
	if err != nil {
		return err
	}
	// a commit that waits does not keep files from being restored
	if drift && (c == nil || c.state() != gate.Passed) {
		if c != nil {
			others = slices.Insert(others, 0,
				Other{Commit: string(c.source.Base), Reason: gate.Reason(c.verdicts)})
		}
		c = &candidate{source: st.Has(), kind: Restore}
	}
	out.Others = others
	if c == nil {
		return pl.explainNothing(ctx, st, out)
	}
	out.Step = &Step{Kind: c.kind, Source: c.source, Verdicts: c.verdicts, EndsHold: c.ends,
		contains: c.contains}
	if c.state() == gate.Passed {
		if err := pl.planStep(ctx, st, out.Step, intent); err != nil {
			return err
		}
	}
	out.conclude()
	return nil
}

// planStep compiles a candidate that passed the gates of the commit, and evaluates the gates of
// the change.
func (pl *Planner) planStep(ctx context.Context, st *session.Stage, step *Step,
	intent Intent) error {
	skip := intent.Skip
	skip.OwnAtOnce = skip.OwnAtOnce && step.Kind == Configure && st.Ring != nil &&
		len(st.Ring.After) > 0
	named := intent
	named.Skip = skip
	c := extra{verdicts: step.Verdicts, trailers: step.decided(named)}
	if intent.Commit != "" && intent.by()+intent.reason() != "" {
		c.named = &tree.NamedPromotion{By: intent.by(), Reason: intent.reason()}
	}
	if step.Kind == Restore { // no promotion that would end a hold
		c.hold = st.OwnHold()
	}
	if err := pl.maker.prepare(ctx, st, step, c); err != nil {
		return err
	}
	if move, err := pl.state.Moved(ctx, st); err != nil {
		return err
	} else if move != nil && move.Gone == "" {
		d := diag.New(diag.TreeMoved, move.String()).Hinting(move.Hint())
		d.Environment = st.Policy.Name
		step.Prepared.diagnostics = append(step.Prepared.diagnostics, d)
	}
	if step.Prepared.obstacle != "" {
		v := gate.Verdict{Gate: model.GateErrors, State: gate.Blocked, Reason: step.Prepared.obstacle}
		if step.Prepared.missing {
			v.State = gate.Pending
		}
		step.Verdicts = append(step.Verdicts, v)
		return nil
	}
	if step.Prepared.Commit.IsZero() && step.Change.Errors == 0 {
		return nil
	}
	if err := pl.judge.change(ctx, st, step, intent.Skip); err != nil {
		return err
	}
	pl.maker.describe(st, step)
	return nil
}

// AskAgain evaluates the gates of a step's change again, and replaces their verdicts.
func (pl *Planner) AskAgain(ctx context.Context, st *session.Stage, step *Step,
	skip gate.Skip) error {
	return pl.judge.change(ctx, st, step, skip)
}

// conclude sets the state of a stage, by the gates of its step.
func (out *StageStatus) conclude() {
	step := out.Step
	switch gate.Overall(step.Verdicts) {
	case gate.Passed:
		if out.State, out.Reason = Ready, out.title(); out.Resumes != nil {
			out.Reason += "; " + out.Resumes.Decision(out.Environment)
		}
		switch {
		case step.Prepared != nil && step.Prepared.record == nil && step.Change != nil &&
			step.Change.Errors > 0:
			// The policy allows errors, and nothing compiles without errors.
			out.State, out.Reason = Blocked, step.Source.Base.Short()+" cannot be compiled at all"
		case step.Prepared != nil && step.Prepared.Commit.IsZero() && step.Kind == Restore:
			out.State = Blocked
			out.Reason = "what somebody changed is kept from an earlier commit and cannot be compiled: " +
				"revert the commit that changed it"
		case step.Prepared != nil && step.Prepared.Commit.IsZero():
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
		if v.State != gate.Passed && v.Kind().Effect == gate.Holds {
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

// title returns the reason of a stage that is ready.
func (out *StageStatus) title() string {
	switch out.Step.Kind {
	case Configure:
		return "it can get its own files as of " + out.Step.Source.Environment.Short()
	case Restore:
		return "its files can be restored"
	}
	return "it can get " + out.Step.Source.Base.Short() + out.Step.Ending()
}
