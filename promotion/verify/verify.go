// Package verify compares records and trees of GitOps branches with the output of their commits.
//
// A record names the source commits of an environment, and gates depend on it. Records reports
// whether a record is true, which holds apply, and what to restore. The package does not write
// anything.
//
// For example, the tour of docs/promotion.md takes examples/promotion to stage. Verify returns a
// [Verification] of stage that is OK. Then somebody edits a file in a branch mine of the GitOps
// repository. Verify with the head "mine" returns a Verification that is not OK, with one problem:
//
//	large/checkout-stage-app/platform-config.yaml is not what the record says
package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// Verification is the result of comparing an environment's tree with its record.
type Verification struct {
	Environment string `json:"environment"`
	// Commit is the commit of the GitOps repository; "" before the first commit.
	Commit string `json:"commit"`
	OK     bool   `json:"ok"`
	// Reason is the reason why there is nothing to verify; "" if there is something.
	Reason string `json:"reason,omitempty"`
	// Problems are the deviations, a line each.
	Problems []string `json:"problems,omitempty"`
	// Tree is the id of the tree in the record, without .kalypso.
	Tree  tree.ID        `json:"tree,omitempty"`
	Rings []VerifiedRing `json:"rings,omitempty"`

	Diagnostics []diag.Diagnostic `json:"-"`
}

// VerifiedRing is a ring that was compiled again.
type VerifiedRing struct {
	Ring   string      `json:"ring,omitempty"`
	Source tree.Source `json:"source"`
}

// Verify compiles the sources in the records of environments, and compares the ids of the trees.
// head is a branch or a commit of the GitOps repository, such as the head of a change request; ""
// for the environments' own branches. Kept folders are compared with the output of their own
// commits. A tree that cannot be verified is a problem of its environment. Verify writes nothing.
func (r *Records) Verify(ctx context.Context, head string) ([]*Verification, error) {
	var out []*Verification
	for _, env := range r.state.RequestedEnvironments() {
		v := &Verification{Environment: env.Policy.Name}
		at, err := env.AtHead(ctx, head)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", env.Policy.Name, err)
		}
		v.Commit = string(tree.RevisionOf(at.Tip))
		err = r.verify(ctx, at, v)
		if errors.Is(err, git.ErrLostRace) || ctx.Err() != nil || session.ServerFailed(err) {
			return nil, fmt.Errorf("%s: %w", env.Policy.Name, err)
		}
		if err != nil {
			v.problem("it cannot be verified: %v", err)
		}
		v.OK = len(v.Problems) == 0
		out = append(out, v)
	}
	return out, nil
}

// verify verifies an environment. An error is one of reading.
func (r *Records) verify(ctx context.Context, at *session.Environment,
	v *Verification) (err error) {
	asked := len(r.state.Request.Environments) > 0
	switch {
	case at.Repository == nil && at.Policy.GitOps == nil && !asked:
		v.Reason = at.Absent
		return nil
	case at.Repository == nil:
		v.problem("it cannot be verified: %s", at.Absent)
		return nil
	case at.Tip.IsZero() && !asked:
		for _, st := range r.state.StagesOf(at.Policy.Name) {
			reason, err := r.state.Gone(ctx, st)
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
	case at.Tip.IsZero():
		v.problem("branch %s does not exist", at.Branch)
		return nil
	case len(at.Problems) > 0:
		v.problem("%s", at.Problems[0].Message)
		return nil
	case at.Record == nil:
		v.problem("there is no record in branch %s, so that nothing says what its tree is", at.Branch)
		return nil
	}
	v.Tree = at.Record.Tree
	if v.Problems, err = at.Tree.Check(at.Folder); err != nil {
		return err
	}
	if err := newVerifier(r.state, v, at).recompile(ctx); err != nil || len(v.Problems) > 0 {
		return err
	}
	edited, err := r.Edited(ctx, at)
	if edited != "" {
		v.problem("%s", edited)
	}
	for _, st := range r.state.StagesOf(at.Policy.Name) {
		if err == nil {
			err = r.mergedAgainst(ctx, st.In(at), v)
		}
	}
	return err
}

func (v *Verification) problem(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

// Vet compiles the stages of the request with the environments' own files at the platform's head
// and the base commits of their records. It shows that a change of those files works with the
// deployed base commits. It returns the diagnostics, sorted. It leaves out stages without a
// record, and stages whose record names files instead of commits, and returns their names. It
// does not write anything.
func Vet(ctx context.Context, s *session.State) (ds []diag.Diagnostic, leftOut []string,
	err error) {
	for _, st := range s.Requested() {
		if st.Environment.Unreadable {
			return nil, nil, fmt.Errorf("%s: %s", st.ID(), st.Environment.Absent)
		}
		has := st.Has()
		if !has.Base.IsCommit() {
			leftOut = append(leftOut, st.ID())
			continue
		}
		if err := s.Platform.Repository.Remote.Fetch(ctx, commitsOf(tree.Source{Base: has.Base}),
			0); err != nil {
			return nil, nil,
				fmt.Errorf("%s: the base commit %s, which its record names: %w", st.ID(), has.Base.Short(), err)
		}
		compiled, remove, err := s.Platform.Compile(ctx, st,
			tree.Source{Base: has.Base, Environment: tree.RevisionOf(st.Environment.Own.Commit)}, false)
		if err != nil {
			return nil, nil, err
		}
		ds = append(ds, compiled.Diagnostics...)
		if compiled.Test != nil {
			var failures []diag.Diagnostic
			failures, err = compiled.Test(ctx)
			ds = append(ds, failures...)
		}
		if err := errors.Join(err, remove()); err != nil {
			return nil, nil, err
		}
	}
	return diag.Sort(ds), leftOut, nil
}
