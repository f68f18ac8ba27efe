package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/ledger"
)

// Moved returns how the tree of a stage's environment moved. It returns nil if the tree has not
// moved. There are two kinds of moves:
//
//   - gitops now names a place without a record, and an earlier commit of the platform names a
//     place that still has the tree.
//   - Another folder of the environment's branch got the tree after the folder that gitops names.
//
// Clusters that were bootstrapped before the move pull the old place and get no new commits. If
// the request adopts the new place and that is another branch of the same repository, the
// environment has the history of the old one from then on. Orders in force in another repository
// count.
func (s *State) Moved(ctx context.Context, st *Stage) (*Move, error) {
	env := st.Environment
	if env.Policy.GitOps == nil {
		return nil, nil
	}
	if known, asked := s.moved[env]; asked {
		return known, nil
	}
	if env.Record != nil {
		is, err := env.movedBack(ctx)
		s.moved[env] = is
		return is, err
	}
	var commits []git.Hash // candidates that may have written the old tree
	for _, other := range s.Stages {
		commits = append(commits, other.Has().Base.Hash())
	}
	bases, err := s.Platform.Bases.Newest(2)
	if err != nil {
		return nil, err
	}
	for _, b := range bases {
		commits = append(commits, b.Commit)
	}
	tried := map[git.Hash]bool{{}: true, s.Platform.Head: true}
	for _, commit := range commits {
		if tried[commit] {
			continue
		}
		tried[commit] = true
		is, err := s.movedSince(ctx, env, commit)
		if err != nil || is != nil {
			s.moved[env] = is
			return is, err
		}
	}
	s.moved[env] = nil
	return nil, nil
}

// movedBack is Moved for an environment whose place has a record, which may be left from an earlier
// time.
func (env *Environment) movedBack(ctx context.Context) (*Move, error) {
	history := func(yield func(git.Link, error) bool) {
		if err := env.History.Each(ctx, func(p Past) bool { return yield(p.Link, nil) }); err != nil {
			yield(git.Link{}, err)
		}
	}
	folder, newer, err := env.Tree.Newer(env.Policy.Name, env.Folder, history,
		func(records []git.Hash) error {
			return env.Repository.Remote.Prefetch(ctx, records)
		})
	if err != nil || newer == nil {
		return nil, err
	}
	return &Move{Environment: env.Policy.Name, Was: origin.Tree{Path: folder}.Folder(),
		Is: origin.TreeOf(env.Policy.GitOps).Folder()}, nil
}

// Move is a change of the place of an environment's tree.
type Move struct {
	Environment string
	Was, Is     string // the folder if only that differs, else the whole place
	// Former is the environment in its old place; nil if that is a folder of the same branch.
	Former *Environment
	// Gone is the environment that was in that place, if it is not known to be the same one: the
	// policy does not have it any more.
	Gone string
}

// String describes the move and its consequence.
func (m *Move) String() string {
	if m.Gone != "" {
		return fmt.Sprintf("environment %s is new, and environment %s is gone, of which %s still has "+
			"the tree", m.Environment, m.Gone, m.Was)
	}
	return fmt.Sprintf("the tree of environment %s is kept in %s, and was in %s: clusters that pull "+
		"it from there get nothing that is promoted from now on", m.Environment, m.Is, m.Was)
}

// Hint is the remedy.
func (m *Move) Hint() string {
	return fmt.Sprintf("bootstrap the clusters again with what `kalypso bootstrap` prints; then "+
		"remove what is left in %s, which stays until then", m.Was)
}

// Blocks returns the reason why nothing is promoted until somebody decides about the move.
func (m *Move) Blocks() string {
	if m.Gone != "" {
		return fmt.Sprintf("%s: if it was renamed, write environments: %s: formerly: %q, so that its "+
			"history, holds and freezes come along; if it is another one, begin it with --adopt", m,
			m.Environment, m.Gone)
	}
	return m.String() + "; begin it there with --adopt, and " + m.Hint()
}

// Carries reports whether orders come along from another repository.
func (m *Move) Carries() bool {
	return m != nil && m.Former != nil && m.Gone == "" && m.Former.Orders != nil
}

// movedSince is Moved for one commit of the platform.
func (s *State) movedSince(ctx context.Context, env *Environment, commit git.Hash) (*Move, error) {
	if _, known, err := s.Platform.Bases.Until(commit); err != nil || !known {
		return nil, err
	}
	declared, err := s.declaredAt(ctx, commit)
	if err != nil {
		return nil, err
	}
	var gone []model.Declaration
	for _, d := range declared {
		switch {
		case env.IsNamed(d.Name):
			return s.movedFrom(ctx, env, d.GitOps, "")
		case s.Platform.Policy(d.Name) == nil && s.opener.names[d.Name] == "":
			gone = append(gone, d)
		}
	}
	for _, d := range gone {
		if is, err := s.movedFrom(ctx, env, d.GitOps, d.Name); err != nil || is != nil {
			return is, err
		}
	}
	return nil, nil
}

// movedFrom returns the move of an environment from a place, if that place still has its tree, or
// the tree of an environment that is gone. It returns nil otherwise.
func (s *State) movedFrom(ctx context.Context, env *Environment, was *model.GitOps,
	gone string) (*Move, error) {
	if was == nil || was.Repo == "" {
		return nil, nil
	}
	before, after := origin.TreeOf(was), origin.TreeOf(env.Policy.GitOps)
	sameRepository := after.Has(was.Repo)
	sameBranch := sameRepository && before.Branch == after.Branch
	if sameBranch && before.Path == after.Path {
		return nil, nil
	}
	repository, err := env.Repository, error(nil)
	if !sameRepository {
		if repository, err = s.opener.repository(ctx, was.Repo); err != nil {
			return nil, nil // the old place cannot be read: it may be gone
		}
	}
	tip := repository.Refs[BranchRef(before.Branch)]
	if tip.IsZero() {
		return nil, nil
	}
	old := &Environment{Policy: env.Policy, Repository: repository, Branch: before.Branch,
		Folder: before.Path, Aside: true}
	if err := old.MoveTo(ctx, tip); err != nil || old.Record == nil ||
		old.Record.Environment != gone && (gone != "" || !env.IsNamed(old.Record.Environment)) {
		return nil, err
	}
	place := func(t origin.Tree) string {
		return fmt.Sprintf("%s of branch %s of %s", t.Folder(), t.Branch, t.Repository)
	}
	is := &Move{Environment: env.Policy.Name, Was: place(before), Is: place(after), Former: old,
		Gone: gone}
	if sameBranch {
		is.Was, is.Is = before.Folder(), after.Folder()
	}
	switch {
	case gone != "":
	case !sameRepository:
		err = s.carry(ctx, env, old)
	case s.Request.Adopt && before.Path == after.Path && env.Tip.IsZero(): // the history comes along
		if err = env.MoveTo(ctx, tip); err == nil {
			env.Begins = true
		}
	}
	return is, err
}

// carry makes orders in the environment's old repository count, unless the new repository has
// them or had them before.
func (s *State) carry(ctx context.Context, env, old *Environment) (err error) {
	if old.Orders, err = old.Repository.OrdersOf(ctx, env.Policy.Name); err != nil {
		return err
	}
	log, err := env.Repository.OrderLog(ctx)
	if err != nil {
		return err
	}
	isNew := func(o *ledger.Order) bool { return !slices.ContainsFunc(log, o.Same) }
	if o := old.Orders.Frozen; o != nil && env.Orders.Frozen == nil && isNew(o) {
		env.Orders.Frozen = o
	}
	for commit, o := range old.Orders.Rejected {
		if isNew(o) {
			env.Orders.Rejected[commit] = cmp.Or(env.Orders.Rejected[commit], o)
		}
	}
	return nil
}

// declaredAt returns the environments that a commit of the platform declares.
func (s *State) declaredAt(ctx context.Context, commit git.Hash) ([]model.Declaration, error) {
	if known, asked := s.declared[commit]; asked {
		return known, nil
	}
	dir, remove, err := s.Platform.assemble(ctx, commit, nil)
	if err != nil {
		return nil, err
	}
	declared, _, err := s.Platform.Subject.Declarations(ctx, dir)
	if err = errors.Join(err, remove()); err == nil {
		s.declared[commit] = declared
	}
	return declared, err
}
