package promotion

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/git"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Verification says whether an environment's tree is what its record says.
type Verification struct {
	Environment string `json:"environment"`
	// Commit is that of the GitOps repository; "" where there is none yet.
	Commit string `json:"commit"`
	OK     bool   `json:"ok"`
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
// with what their own commits give. Nothing is written.
func (s *Session) Verify(ctx context.Context, head string) ([]*Verification, error) {
	var out []*Verification
	for _, o := range s.askedOutputs() {
		if o.repository == nil {
			continue
		}
		v, err := s.verify(ctx, o, head)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.stage.Name, err)
		}
		out = append(out, v)
	}
	return out, nil
}

func (s *Session) verify(ctx context.Context, o *output, head string) (*Verification, error) {
	at, err := o.atHead(ctx, head)
	if err != nil {
		return nil, err
	}
	v := &Verification{Environment: o.stage.Name, Commit: string(revision(at.tip))}
	switch {
	case at.tip.IsZero() && head == "" && len(s.request.Environments) == 0:
		v.OK = true // it was not promoted yet
		return v, nil
	case at.tip.IsZero():
		v.problem("branch %s does not exist", o.branch)
		return v, nil
	case len(at.problems) > 0:
		v.problem("%s", at.problems[0].Message)
		return v, nil
	case at.record == nil:
		v.problem("there is no record in branch %s, so that nothing says what its tree is", o.branch)
		return v, nil
	}
	v.Tree = at.record.Tree
	if v.Problems, err = at.at.Check(at.folder); err != nil {
		return nil, err
	}
	if err := (&verifier{s, v, at, map[string]bool{}}).recompile(ctx); err != nil {
		return nil, err
	}
	v.OK = len(v.Problems) == 0
	return v, nil
}

func (v *Verification) problem(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

// atHead returns the output as it is at another head; "" for its branch.
func (o *output) atHead(ctx context.Context, head string) (*output, error) {
	if head == "" {
		return o, nil
	}
	id := git.Hash{}
	for _, ref := range []string{branchRef(head), "refs/tags/" + head, head} {
		if known, ok := o.repository.refs[ref]; ok {
			id = known
		}
	}
	if id.IsZero() {
		id = hashOf(tree.Revision(head))
	}
	if id.IsZero() {
		return nil, fmt.Errorf("%s has no branch, tag or commit %s", o.repository.url, head)
	}
	other := &output{stage: o.stage, repository: o.repository, branch: o.branch, folder: o.folder, own: o.own, tip: id, orders: o.orders}
	other.history = &history{out: other}
	return other, other.look(ctx)
}
