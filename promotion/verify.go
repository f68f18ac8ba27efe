package promotion

import (
	"context"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Verification says whether an environment's tree is what its record says.
type Verification struct {
	Environment string `json:"environment"`
	// Commit is that of the GitOps repository; "" where there is none yet.
	Commit string `json:"commit"`
	OK     bool   `json:"ok"`
	// Reason is why there is nothing to verify; "" where there is something.
	Reason string `json:"reason,omitempty"`
	// Problems are what is not as it should be, a line each.
	Problems []string `json:"problems,omitempty"`
	// Tree is the id of the tree that the record says, without .kalypso.
	Tree  tree.ID        `json:"tree,omitempty"`
	Rings []VerifiedRing `json:"rings,omitempty"`

	Diagnostics []diag.Diagnostic `json:"-"`
}

// VerifiedRing is what was compiled again.
type VerifiedRing struct {
	Ring   string      `json:"ring,omitempty"`
	Source tree.Source `json:"source"`
}

// Verify compiles what the records of environments say, and compares the ids of the
// trees. head is a branch or a commit of the GitOps repository to look at, such as that
// of a change request; "" for the environments' own branches. Kept folders are compared
// with what their own commits give. What cannot be verified is a problem of its
// environment. Nothing is written.
func (r *records) Verify(ctx context.Context, head string) ([]*Verification, error) {
	var out []*Verification
	for _, o := range r.state.askedOutputs() {
		v := &Verification{Environment: o.stage.Name}
		at, err := o.atHead(ctx, head)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.stage.Name, err)
		}
		v.Commit = string(tree.RevisionOf(at.tip))
		err = r.verify(ctx, at, v)
		if errors.Is(err, git.ErrLostRace) || ctx.Err() != nil || stopsForAll(err) {
			return nil, fmt.Errorf("%s: %w", o.stage.Name, err)
		}
		if err != nil {
			v.problem("it cannot be verified: %v", err)
		}
		v.OK = len(v.Problems) == 0
		out = append(out, v)
	}
	return out, nil
}

func (r *records) verify(ctx context.Context, at *output, v *Verification) (err error) {
	asked := len(r.state.request.Environments) > 0
	switch {
	case at.repository == nil && at.stage.GitOps == nil && !asked:
		v.Reason = at.absent
		return nil
	case at.repository == nil:
		v.problem("it cannot be verified: %s", at.absent)
		return nil
	case at.tip.IsZero() && !asked:
		for _, st := range r.state.stopsOf(at.stage.Name) {
			reason, err := r.state.gone(ctx, st)
			if err != nil {
				return err
			}
			if reason != "" {
				v.problem("%s", reason)
				return nil
			}
		}
		v.Reason = "there is no tree yet"
		return nil
	case at.tip.IsZero():
		v.problem("branch %s does not exist", at.branch)
		return nil
	case len(at.problems) > 0:
		v.problem("%s", at.problems[0].Message)
		return nil
	case at.record == nil:
		v.problem("there is no record in branch %s, so that nothing says what its tree is", at.branch)
		return nil
	}
	v.Tree = at.record.Tree
	if v.Problems, err = at.at.Check(at.folder); err != nil {
		return err
	}
	if err := newVerifier(r.state, v, at).recompile(ctx); err != nil || len(v.Problems) > 0 {
		return err
	}
	edited, err := r.edited(ctx, at)
	if edited != "" {
		v.problem("%s", edited)
	}
	return err
}

func (v *Verification) problem(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}
