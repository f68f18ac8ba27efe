package plan

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/gate"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Proposal is the commit at the head of a stage's promotion branch.
type Proposal struct {
	*git.Commit
	source tree.Source
	hold   *tree.Hold
	// Decided is true if a person decided it, by the text of the commit: a rollback, or a
	// promotion past gates. The policies by themselves would propose something else.
	Decided bool
	// Named is true if somebody promoted a commit by name.
	Named bool
	// Arrived is true if the stage has got it since it was proposed, however it was merged.
	Arrived bool
	// moved is true if the environment's tree has changed since the proposal was made. Other
	// environments in the same branch do not count.
	moved bool
}

// RollsBack reports whether it brings the stage back, and holds it there.
func (p *Proposal) RollsBack() bool { return p.hold != nil }

// Proposed reads the proposal of a stage, or nil.
func (pl *Planner) Proposed(ctx context.Context, st *session.Stage) (*Proposal, error) {
	env := st.Environment
	head := st.ProposalHead()
	if head.IsZero() {
		return nil, nil
	}
	if err := env.Repository.Remote.Fetch(ctx, []git.Hash{head}, 1); err != nil {
		return nil, err
	}
	c, err := env.Repository.Staging.Commit(head)
	if err != nil {
		return nil, err
	}
	at, err := env.Repository.View(st.PromotionBranch(), head)
	if err != nil {
		return nil, err
	}
	record, _, err := at.Record(env.Folder)
	if err != nil {
		return nil, err
	}
	p := &Proposal{Commit: c, source: st.Environment.SourceIn(record, st.RingName()),
		hold: st.Environment.HoldIn(record, st.RingName()), Decided: message.Trailer(c.Message,
			message.ReasonTrailer) != "" || message.Trailer(c.Message, message.NamedTrailer) != ""}
	p.Named = message.Trailer(c.Message, message.NamedTrailer) != ""
	p.moved = true
	err = env.History.Each(ctx, func(was session.Past) bool {
		if slices.Contains(c.Parents, was.ID) {
			p.moved = !sameRecord(was.Record, env.Record)
			return false
		}
		p.Arrived = st.Environment.SourceIn(was.Record, st.RingName()) == p.source &&
			session.SameHold(st.Environment.HoldIn(was.Record, st.RingName()), p.hold)
		return !p.Arrived
	})
	return p, err
}

func sameRecord(a, b *tree.Record) bool {
	return a == b || a != nil && b != nil && bytes.Equal(a.Encode(), b.Encode())
}

// keepDecided keeps a proposal that a person decided and nobody has merged yet. Until then, the
// record does not have it. A proposal past gates is not kept while there is an order against it.
// A proposal of a named commit continues as it was decided, and its gates are evaluated again.
func (pl *Planner) keepDecided(ctx context.Context, st *session.Stage, out *StageStatus) error {
	p, err := pl.Proposed(ctx, st)
	if err != nil || p == nil || !p.Decided || p.Arrived {
		return err
	}
	if !p.Named && message.Trailer(p.Message, message.SkipTrailer) != "" {
		orders, err := pl.judge.orders(ctx, st, p.source)
		if err != nil || gate.Overall(orders) != gate.Passed {
			return err
		}
	}
	where := "branch " + st.PromotionBranch()
	if !st.Environment.Repository.Plain {
		open, err := st.Environment.Repository.Forge.FindChange(ctx, st.PromotionBranch(),
			st.Environment.Branch)
		if err != nil || open == nil { // somebody has closed it
			return err
		}
		where = fmt.Sprintf("change request %d, %s,", open.Number, open.URL)
	}
	if p.Named {
		return pl.resume(ctx, st, p, out)
	}
	what := fmt.Sprintf("%s proposes %q", where, message.FirstLine(p.Message))
	if by := message.Trailer(p.Message, message.ByTrailer); by != "" {
		what += ", decided by " + terminal.Line(by)
	}
	what += ": " + terminal.Line(message.Trailer(p.Message, message.ReasonTrailer))
	newer, err := pl.state.Newer(st.Has())
	if err != nil {
		return err
	}
	for _, b := range newer {
		out.Others = append(out.Others, Other{Commit: b.Commit.String(),
			Reason: "what somebody decided comes first: " + message.FirstLine(p.Message)})
	}
	off := "`kalypso promote abort --env " + st.Policy.Name + "` calls it off"
	out.Since = p.Committer.When.UTC()
	if p.moved {
		out.State, out.Reason = Blocked,
			fmt.Sprintf("%s; branch %s has moved since: decide it again, or %s", what, st.Environment.Branch,
				off)
		return nil
	}
	out.State, out.Reason = Proposed, fmt.Sprintf("%s; it waits to be merged, and %s", what, off)
	return nil
}

// resume continues the proposal of a named commit, unless the stage has that commit or a newer
// one.
func (pl *Planner) resume(ctx context.Context, st *session.Stage, p *Proposal,
	out *StageStatus) error {
	newer, err := pl.state.Newer(st.Has())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(newer,
		func(b source.Base) bool { return tree.RevisionOf(b.Commit) == p.source.Base })
	if i < 0 && p.source.Base != st.Has().Base {
		return nil
	}
	out.Resumes = &Intent{
		Commit: string(p.source.Base), Reason: message.Trailer(p.Message, message.ReasonTrailer),
		By: message.Trailer(p.Message, message.ByTrailer), resumes: p,
	}
	if skipped := message.Trailer(p.Message, message.SkipTrailer); skipped != "" {
		out.Resumes.Skip = gate.Skip{Gates: strings.Split(skipped, ", "), Reason: out.Resumes.Reason,
			By: out.Resumes.By}
	}
	return nil
}

// Decision has the author of the intent, the reason, and the event that ends it.
func (i *Intent) Decision(environment string) string {
	by := ""
	if i.by() != "" {
		by = " by " + terminal.Line(i.by())
	}
	why := ""
	if i.reason() != "" {
		why = ": " + terminal.Line(i.reason())
	}
	return fmt.Sprintf("it was named%s%s, and `kalypso promote abort --env %s` calls it off", by, why,
		environment)
}
