package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
)

// observeAndReport finds out how far the rollout of what a stage has is, and writes what is
// new of it to statuses: of the base commit and of the GitOps commit that brought it.
func (re *reporter) observeAndReport(ctx context.Context, st *stop) (*Rollout, error) {
	was, err := re.observer.reported(ctx, st)
	if err != nil || was == nil {
		return nil, err
	}
	if !was.known && was.ignored == "" {
		if err := re.sayEntered(ctx, st, was.deployed); err != nil {
			return nil, err
		}
		if err := re.observer.courseNow(ctx, st, was); err != nil {
			return nil, err
		}
	}
	r, err := re.observer.rollout(ctx, st, was)
	if err == nil && was.ignored == "" && r.State != forge.Pending && r.State != was.state {
		err = re.sayOutcome(ctx, st, was.deployed, r)
	}
	return r, err
}

// sayEntered says that a commit rolls out: of the base commit, if it is what is new, and
// then of the GitOps commit. A run that is killed in between says both again.
func (re *reporter) sayEntered(ctx context.Context, st *stop, landed git.Hash) error {
	has := st.has()
	v, err := st.out.history.visitOf(ctx, st.ringName(), has.Base)
	if err != nil {
		return err
	}
	if len(v.landings) > 0 && v.landings[0] == landed {
		if err := re.say(ctx, st, re.state.ledger(st.out), has.Base.Hash(), forge.Pending, "rolling out, as GitOps commit "+git.Short(landed)); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("rolling out %s", has.Describe())
	return re.say(ctx, st, st.out.repository.ledger(), landed, forge.Pending, text)
}

// sayOutcome says how a rollout went: of the base commit, unless an earlier rollout of
// it went well and only the environment's own files are new, and then of the GitOps
// commit.
func (re *reporter) sayOutcome(ctx context.Context, st *stop, landed git.Hash, r *Rollout) error {
	base := st.has().Base.Hash()
	ledger := re.state.ledger(st.out)
	said, err := ledger.of(ctx, base)
	if err != nil {
		return err
	}
	if c, told := courseOf(said, st.id(), st.rolloutGate().By); !told || c.state != forge.Success {
		if err := re.say(ctx, st, ledger, base, r.State, r.Reason); err != nil {
			return err
		}
	}
	return re.say(ctx, st, st.out.repository.ledger(), landed, r.State, r.Reason)
}

// say says something of a commit, and mirrors what is said of a GitOps commit as a
// deployment, where the forge has such a thing.
func (re *reporter) say(ctx context.Context, st *stop, l *ledger, commit git.Hash, state forge.State, text string) error {
	if err := l.say(ctx, commit, forge.Status{Name: statusName(st.id()), State: state, Description: text}); err != nil {
		return err
	}
	if l != st.out.repository.ledger() || st.out.repository.plain {
		return nil
	}
	err := l.forge.Deploy(ctx, forge.Deployment{
		Environment: st.id(), Commit: commit, State: state, Description: text, Production: re.state.isLast(st.stage.Name),
		Payload: map[string]string{"base": string(st.has().Base), "environment": string(st.has().Environment)},
	})
	if errors.Is(err, forge.ErrUnsupported) {
		return nil
	}
	return err
}

// plainLedgers are where it is kept in git notes what is said of a stop.
func (re *reporter) plainLedgers(st *stop) (out []*plain.Forge) {
	if st.out.repository == nil {
		return nil
	}
	for _, l := range []*ledger{re.state.ledger(st.out), st.out.repository.ledger()} {
		if f, ok := l.forge.(*plain.Forge); ok && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// hold lets what is said of a stop wait for flush, which pushes it at once.
func (re *reporter) hold(st *stop) {
	for _, f := range re.plainLedgers(st) {
		f.Hold()
	}
}

// flush pushes what was said of a stop.
func (re *reporter) flush(ctx context.Context, st *stop) error {
	var errs []error
	for _, f := range re.plainLedgers(st) {
		errs = append(errs, f.Flush(ctx))
	}
	return errors.Join(errs...)
}
