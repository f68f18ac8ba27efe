package promotion

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/gate"
)

// proposal is what is at the head of a stop's promotion branch.
type proposal struct {
	*git.Commit
	source tree.Source
	hold   *tree.Hold
	// decided says that a person did it, for a reason that the commit has: a rollback, or
	// a promotion past gates. Policies alone would propose something else.
	decided bool
	// arrived says that the stop got it since it was proposed, however it was merged.
	arrived bool
	// moved says that the environment's tree is another than it was proposed for. What
	// others have in the same branch is nothing to it.
	moved bool
}

// proposed reads what is proposed for a stop; nil for nothing.
func (pl *planner) proposed(ctx context.Context, st *stop) (*proposal, error) {
	o := st.out
	head := o.repository.refs[branchRef(st.promotionBranch())]
	if head.IsZero() {
		return nil, nil
	}
	if err := o.repository.remote.Fetch(ctx, []git.Hash{head}, 1); err != nil {
		return nil, err
	}
	c, err := o.repository.staging.Commit(head)
	if err != nil {
		return nil, err
	}
	at, err := o.repository.view(st.promotionBranch(), head)
	if err != nil {
		return nil, err
	}
	record, _, err := at.Record(o.folder)
	if err != nil {
		return nil, err
	}
	p := &proposal{Commit: c, source: st.out.sourceIn(record, st.ringName()), hold: st.out.holdIn(record, st.ringName()), decided: trailerOf(c.Message, "Kalypso-Reason") != ""}
	p.moved = true
	err = o.history.each(ctx, func(was past) bool {
		if slices.Contains(c.Parents, was.ID) {
			p.moved = !sameRecord(was.record, o.record)
			return false
		}
		p.arrived = st.out.sourceIn(was.record, st.ringName()) == p.source && sameHold(st.out.holdIn(was.record, st.ringName()), p.hold)
		return !p.arrived
	})
	return p, err
}

func sameRecord(a, b *tree.Record) bool {
	return a == b || a != nil && b != nil && bytes.Equal(a.Encode(), b.Encode())
}

// intruder is the commit that somebody else has pushed to the stop's promotion branch; nil
// for none. What a forge makes to bring a change request up to date is none.
func (pr *proposer) intruder(ctx context.Context, st *stop) (*git.Link, error) {
	r := st.out.repository
	head := r.refs[branchRef(st.promotionBranch())]
	if head.IsZero() {
		return nil, nil
	}
	if err := r.remote.Fetch(ctx, []git.Hash{head}, 2); err != nil {
		return nil, err
	}
	own := func(id git.Hash) (*git.Commit, bool, error) {
		c, err := r.staging.Commit(id)
		if err != nil {
			return nil, false, err
		}
		return c, trailerOf(c.Message, "Kalypso-Environment") != "" && c.Author.Name == c.Committer.Name && c.Author.Email == c.Committer.Email, nil
	}
	c, is, err := own(head)
	if err != nil || is {
		return nil, err
	}
	if len(c.Parents) == 2 {
		if _, is, err = own(c.Parents[0]); err != nil || is {
			return nil, err
		}
	}
	return &git.Link{ID: head, Commit: c}, nil
}

// giveWay blocks a stop whose promotion branch somebody else has pushed to, and says
// whether it did.
func (pr *proposer) giveWay(ctx context.Context, st *stop, stop *Stop) (bool, error) {
	c, err := pr.intruder(ctx, st)
	if err != nil || c == nil {
		return false, err
	}
	stop.State = Blocked
	stop.Reason = fmt.Sprintf("branch %s has commit %s of %s, %q, which would be lost: remove that branch, or merge it", st.promotionBranch(), git.Short(c.ID), terminal.Line(c.Author.Name), firstLine(c.Message))
	return true, nil
}

// keepDecided leaves alone what a person decided and nobody has merged yet: until then,
// the record does not know of it. A proposal past gates is not left alone while there is
// an order against it.
func (pl *planner) keepDecided(ctx context.Context, st *stop, out *Stop) error {
	p, err := pl.proposed(ctx, st)
	if err != nil || p == nil || !p.decided || p.arrived {
		return err
	}
	if trailerOf(p.Message, "Kalypso-Skip-Gates") != "" {
		orders, err := pl.judge.orders(ctx, st, p.source)
		if err != nil || gate.Overall(orders) != gate.Passed {
			return err
		}
	}
	where := "branch " + st.promotionBranch()
	if !st.out.repository.plain {
		open, err := st.out.repository.forge.FindChange(ctx, st.promotionBranch(), st.out.branch)
		if err != nil || open == nil { // somebody has closed it
			return err
		}
		where = fmt.Sprintf("change request %d, %s,", open.Number, open.URL)
	}
	what := fmt.Sprintf("%s proposes %q", where, firstLine(p.Message))
	if by := trailerOf(p.Message, "Promoted-By"); by != "" {
		what += ", decided by " + terminal.Line(by)
	}
	what += ": " + terminal.Line(trailerOf(p.Message, "Kalypso-Reason"))
	newer, err := pl.state.newer(st.has())
	if err != nil {
		return err
	}
	for _, b := range newer {
		out.Others = append(out.Others, Other{Commit: b.Commit.String(), Reason: "what somebody decided comes first: " + firstLine(p.Message)})
	}
	off := "`kalypso promote abort --env " + st.stage.Name + "` calls it off"
	out.Since = p.Committer.When.UTC()
	if p.moved {
		out.State, out.Reason = Blocked, fmt.Sprintf("%s; branch %s has moved since: decide it again, or %s", what, st.out.branch, off)
		return nil
	}
	out.State, out.Reason = Proposed, fmt.Sprintf("%s; it waits to be merged, and %s", what, off)
	return nil
}
