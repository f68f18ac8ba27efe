package compiler

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/git"
)

// checkout is a platform that was put together from commits, in a temporary folder.
type checkout struct {
	dir     string
	remove  func() error
	sources map[string]tree.Source // by environment; nil where the base is a folder that people work in
}

// commits returns what environments are compiled from, where that is known.
func (c *checkout) commits() map[string]tree.Source {
	if c == nil {
		return nil
	}
	return c.sources
}

// checkOut puts a platform together: the revision that the request names, or else the
// folder, and of environments that have their own files in a branch, those. It returns
// nil where the folder is all there is.
func checkOut(ctx context.Context, r Request, stages []model.Stage) (*checkout, error) {
	elsewhere := slices.ContainsFunc(stages, func(s model.Stage) bool { return s.Promotion.Source != nil })
	if r.Revision == "" && (!elsewhere || r.Source != nil) {
		return nil, nil
	}
	root, err := source.Root(r.Dir)
	if err != nil {
		return nil, err
	}
	repo, rel, err := source.Repository(root)
	if err != nil && r.Revision == "" {
		return nil, errors.Join(inNoRepository(root, stages), err)
	}
	if err != nil {
		return nil, err
	}
	out, err := assemble(ctx, r, stages, repo, rel, root)
	return out, errors.Join(err, repo.Close())
}

// inNoRepository says what is missing where environments have their own files in a
// branch, and the platform is in no repository.
func inNoRepository(root string, stages []model.Stage) error {
	for _, s := range stages {
		if from := s.Promotion.Source; from != nil {
			return fmt.Errorf("environments.%s.source: the environment's own files are in branch %s of the platform's repository, and that of %s cannot be read", s.Name, from.Branch, root)
		}
	}
	return nil
}

func assemble(ctx context.Context, r Request, stages []model.Stage, repo *git.Repository, rel, root string) (*checkout, error) {
	own := map[string]source.Own{}
	for _, s := range stages {
		if from := s.Promotion.Source; from != nil {
			head, err := branchOf(repo, from.Branch)
			if err != nil {
				return nil, fmt.Errorf("environments.%s.source: %w", s.Name, err)
			}
			own[s.Name] = source.Own{Commit: head, Path: from.Path}
		}
	}
	a := source.Assembly{Repository: repo, Path: rel, Own: own}
	if r.Revision == "" {
		a.Folder = root
		dir, remove, err := source.Assemble(ctx, a)
		return &checkout{dir: dir, remove: remove}, err
	}
	var err error
	if a.Base, err = repo.Resolve(r.Revision); err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", r.Revision, err)
	}
	sources, err := sourcesOf(source.History{Repository: repo, Head: a.Base, Path: rel}, stages, own)
	if err != nil {
		return nil, err
	}
	dir, remove, err := source.Assemble(ctx, a)
	return &checkout{dir: dir, remove: remove, sources: sources}, err
}

// branchOf returns a branch of a repository or, where it has none of that name, what it
// last saw of it at origin.
func branchOf(repo *git.Repository, name string) (git.Hash, error) {
	for _, prefix := range []string{"refs/heads/", "refs/remotes/origin/"} {
		id, err := repo.Ref(prefix + name)
		if err != nil || !id.IsZero() {
			return id, err
		}
	}
	return git.Hash{}, fmt.Errorf("the repository %s has no branch %s; `git fetch origin %s:%s` brings it", filepath.Dir(repo.Dir()), name, name, name)
}

// sourcesOf returns the commits that environments are compiled from at a head: the newest
// base commit, and the newest that changed the environment's own files.
func sourcesOf(h source.History, stages []model.Stage, own map[string]source.Own) (map[string]tree.Source, error) {
	base, err := h.Base()
	if err != nil {
		return nil, err
	}
	out := map[string]tree.Source{}
	for _, s := range stages {
		var of tree.Source
		if !base.Commit.IsZero() {
			of.Base = tree.Revision(base.Commit.String())
		}
		at, path := h, h.OwnPath(s.Name)
		if from, elsewhere := own[s.Name]; elsewhere {
			at.Head, path = from.Commit, from.Path
		}
		newest, err := at.Newest(path)
		if err != nil {
			return nil, err
		}
		if !newest.IsZero() {
			of.Environment = tree.Revision(newest.String())
		}
		out[s.Name] = of
	}
	return out, nil
}
