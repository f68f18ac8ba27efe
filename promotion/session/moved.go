package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Moved returns where the tree of a stage's environment was kept by an earlier commit of the platform,
// where its gitops names another place now that has no record; nil where the tree of before is not
// there either. Clusters that were bootstrapped before pull that one, and get nothing new.
func (s *State) Moved(ctx context.Context, st *Stage) (*Move, error) {
	env := st.Environment
	if env.Record != nil || env.Policy.GitOps == nil {
		return nil, nil
	}
	if known, asked := s.moved[env]; asked {
		return known, nil
	}
	var commits []git.Hash // that the tree may have been compiled from, or that were there meanwhile
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

// Move is another place than before for the tree of an environment.
type Move struct {
	Environment string
	Was, Is     string // the folder, or all of the place where more than the folder is another one
}

// String says what has moved, and what that means.
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
	folder := strings.TrimPrefix(path.Clean("/"+was.Path), "/")
	sameRepository := origin.Tree{Repository: now.Repo, Mirrors: now.Mirrors}.Has(was.Repo)
	sameBranch := sameRepository && was.Branch == now.Branch
	if sameBranch && folder == env.Folder {
		return nil, nil
	}
	repository := env.Repository
	if !sameRepository {
		if repository, err = s.opener.repository(ctx, was.Repo); err != nil {
			return nil, nil // what is there cannot be seen: it may be gone
		}
	}
	tip := repository.Refs[BranchRef(was.Branch)]
	if tip.IsZero() {
		return nil, nil
	}
	old := &Environment{Policy: env.Policy, Repository: repository, Branch: was.Branch, Folder: folder, Aside: true}
	if err := old.MoveTo(ctx, tip); err != nil || old.Record == nil || old.Record.Environment != env.Policy.Name {
		return nil, err
	}
	place := func(g *model.GitOps, folder string) string {
		if folder == "" {
			folder = "the root"
		} else {
			folder = "folder " + folder
		}
		if sameBranch {
			return folder
		}
		return fmt.Sprintf("%s of branch %s of %s", folder, g.Branch, g.Repo)
	}
	return &Move{env.Policy.Name, place(was, folder), place(now, env.Folder)}, nil
}

// gitOpsAt returns where an environment's tree is kept by a commit of the platform; nil where that does
// not say it, or cannot be read.
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
