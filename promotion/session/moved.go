package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Moved returns how the tree of a stage's environment moved, if its gitops now names a place without a
// record and an earlier commit of the platform names a place that still has the tree, or if another folder
// of its branch got the tree after the one that gitops names. Otherwise it returns nil. Clusters that were
// bootstrapped before the move pull the old place and get no new commits.
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

// movedBack is Moved for an environment whose place has a record, which may be left from an earlier time.
func (env *Environment) movedBack(ctx context.Context) (*Move, error) {
	history := func(yield func(git.Link, error) bool) {
		if err := env.History.Each(ctx, func(p Past) bool { return yield(p.Link, nil) }); err != nil {
			yield(git.Link{}, err)
		}
	}
	folder, newer, err := env.Tree.Newer(env.Policy.Name, env.Folder, history, func(records []git.Hash) error {
		return env.Repository.Remote.Prefetch(ctx, records)
	})
	if err != nil || newer == nil {
		return nil, err
	}
	return &Move{env.Policy.Name, origin.Tree{Path: folder}.Folder(), origin.TreeOf(env.Policy.GitOps).Folder()}, nil
}

// Move is a change of the place of an environment's tree.
type Move struct {
	Environment string
	Was, Is     string // the folder if only that differs, else the whole place
}

// String describes the move and its consequence.
func (m *Move) String() string {
	return fmt.Sprintf("the tree of environment %s is kept in %s, and was in %s: clusters that pull it from there get nothing that is promoted from now on", m.Environment, m.Is, m.Was)
}

// Hint says what to do.
func (m *Move) Hint() string {
	return fmt.Sprintf("bootstrap the clusters again with what `kalypso bootstrap` prints; then remove what is left in %s, which stays until then", m.Was)
}

// movedSince is Moved for one commit of the platform.
func (s *State) movedSince(ctx context.Context, env *Environment, commit git.Hash) (*Move, error) {
	if _, known, err := s.Platform.Bases.Until(commit); err != nil || !known {
		return nil, err
	}
	was, err := s.gitOpsAt(ctx, env.Policy.Name, commit)
	now := env.Policy.GitOps
	if err != nil || was == nil || was.Repo == "" {
		return nil, err
	}
	before, after := origin.TreeOf(was), origin.TreeOf(now)
	sameRepository := after.Has(was.Repo)
	sameBranch := sameRepository && before.Branch == after.Branch
	if sameBranch && before.Path == after.Path {
		return nil, nil
	}
	repository := env.Repository
	if !sameRepository {
		if repository, err = s.opener.repository(ctx, was.Repo); err != nil {
			return nil, nil // what is there cannot be seen: it may be gone
		}
	}
	tip := repository.Refs[BranchRef(before.Branch)]
	if tip.IsZero() {
		return nil, nil
	}
	old := &Environment{Policy: env.Policy, Repository: repository, Branch: before.Branch, Folder: before.Path, Aside: true}
	if err := old.MoveTo(ctx, tip); err != nil || old.Record == nil || old.Record.Environment != env.Policy.Name {
		return nil, err
	}
	if sameBranch {
		return &Move{env.Policy.Name, before.Folder(), after.Folder()}, nil
	}
	place := func(t origin.Tree) string {
		return fmt.Sprintf("%s of branch %s of %s", t.Folder(), t.Branch, t.Repository)
	}
	return &Move{env.Policy.Name, place(before), place(after)}, nil
}

// gitOpsAt returns the gitops of an environment in a commit of the platform; nil if the commit does not
// declare any.
func (s *State) gitOpsAt(ctx context.Context, environment string, commit git.Hash) (*model.GitOps, error) {
	dir, remove, err := s.Platform.assemble(ctx, commit, nil)
	if err != nil {
		return nil, err
	}
	declared, _, err := s.Platform.Subject.Declarations(ctx, dir)
	if err = errors.Join(err, remove()); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(declared, func(d model.Declaration) bool { return d.Name == environment })
	if i < 0 {
		return nil, nil
	}
	return declared[i].GitOps, nil
}
