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

// checkout is a platform assembled from commits, in a temporary folder.
type checkout struct {
	dir     string
	remove  func() error
	base    git.Hash               // the commit of the base; zero if the base is a working folder
	sources map[string]tree.Source // by environment; nil if the base is a working folder
}

// commits returns the commits of the environments' sources by environment. It returns nil if they
// are not known.
func (c *checkout) commits() map[string]tree.Source {
	if c == nil {
		return nil
	}
	return c.sources
}

// checkOutBase checks out the platform at the revision of a request into a temporary folder. It
// returns nil if the request has no revision.
func checkOutBase(ctx context.Context, r Request) (*checkout, error) {
	if r.Revision == "" {
		return nil, nil
	}
	_, repo, rel, err := repositoryOf(r, nil)
	if err != nil {
		return nil, err
	}
	var out *checkout
	base, err := repo.Resolve(r.Revision)
	if err != nil {
		err = fmt.Errorf("reading revision %s: %w", r.Revision, err)
	} else {
		out, err = assemble(ctx, source.Assembly{Repository: repo, Path: rel, Base: base})
	}
	return out, errors.Join(err, repo.Close())
}

// checkOut adds the own files of environments, if these are in a branch, to the checkout of a
// base. base is nil for a working folder. checkOut uses a separate folder, but returns base if no
// environment has files in a branch. With a revision, it also sets the sources of the
// environments. These have the commit of base, even if the revision has moved since.
func checkOut(ctx context.Context, r Request, declarations []model.Declaration,
	base *checkout) (*checkout, error) {
	elsewhere := slices.ContainsFunc(declarations,
		func(s model.Declaration) bool { return s.Promotion.Source != nil })
	if r.Revision == "" && (!elsewhere || r.Source != nil) {
		return base, nil
	}
	root, repo, rel, err := repositoryOf(r, declarations)
	if err != nil {
		return nil, err
	}
	out, err := checkOutOwn(ctx, r, source.Assembly{Repository: repo, Path: rel, Folder: root},
		declarations, base)
	return out, errors.Join(err, repo.Close())
}

func checkOutOwn(ctx context.Context, r Request, a source.Assembly,
	declarations []model.Declaration, base *checkout) (*checkout, error) {
	var err error
	if a.Own, err = ownFiles(a.Repository, declarations); err != nil {
		return nil, err
	}
	var sources map[string]tree.Source
	if r.Revision != "" {
		a.Folder, a.Base = "", base.base
		if sources, err = sourcesOf(source.History{Repository: a.Repository, Head: a.Base, Path: a.Path},
			declarations, a.Own); err != nil {
			return nil, err
		}
	}
	out := base
	if len(a.Own) > 0 {
		if out, err = assemble(ctx, a); err != nil {
			return nil, err
		}
	}
	out.sources = sources
	return out, nil
}

// repositoryOf opens the repository of a request's platform. It returns the platform's root, the
// repository, and the path of the root in the repository.
func repositoryOf(r Request, declarations []model.Declaration) (root string, repo *git.Repository,
	rel string, err error) {
	if root, err = source.Root(r.Dir); err != nil {
		return "", nil, "", err
	}
	repo, rel, err = source.Repository(root)
	if err != nil && r.Revision == "" {
		err = errors.Join(inNoRepository(root, declarations), err)
	}
	return root, repo, rel, err
}

// inNoRepository returns an error if environments have their own files in a branch and the
// platform is not in a repository. Otherwise it returns nil.
func inNoRepository(root string, declarations []model.Declaration) error {
	for _, s := range declarations {
		if from := s.Promotion.Source; from != nil {
			return fmt.Errorf("environments.%s.source: the environment's own files are in branch %s of "+
				"the platform's repository, and that of %s cannot be read", s.Name, from.Branch, root)
		}
	}
	return nil
}

// ownFiles returns the locations of environments' own files in branches, by environment. Other
// environments are absent.
func ownFiles(repo *git.Repository, declarations []model.Declaration) (map[string]source.Own,
	error) {
	own := map[string]source.Own{}
	for _, s := range declarations {
		if from := s.Promotion.Source; from != nil {
			head, err := branchOf(repo, from.Branch)
			if err != nil {
				return nil, fmt.Errorf("environments.%s.source: %w", s.Name, err)
			}
			own[s.Name] = source.Own{Commit: head, Path: from.Path}
		}
	}
	return own, nil
}

// assemble assembles a platform in a temporary folder.
func assemble(ctx context.Context, a source.Assembly) (*checkout, error) {
	dir, remove, err := source.Assemble(ctx, a)
	if err != nil {
		return nil, err
	}
	return &checkout{dir: dir, remove: remove, base: a.Base}, nil
}

// branchOf returns the head of a branch. If the repository does not have the branch, branchOf
// returns the last known head of the branch at origin.
func branchOf(repo *git.Repository, name string) (git.Hash, error) {
	for _, prefix := range []string{"refs/heads/", "refs/remotes/origin/"} {
		id, err := repo.Ref(prefix + name)
		if err != nil || !id.IsZero() {
			return id, err
		}
	}
	return git.Hash{}, fmt.Errorf("the repository %s has no branch %s; `git fetch origin %s:%s` "+
		"brings it", filepath.Dir(repo.Dir()), name, name, name)
}

// sourcesOf returns the commits of the environments' sources at a head. They are the newest base
// commit, and the newest commit that changed the environment's own files.
func sourcesOf(h source.History, declarations []model.Declaration,
	own map[string]source.Own) (map[string]tree.Source, error) {
	base, err := h.Base()
	if err != nil {
		return nil, err
	}
	out := map[string]tree.Source{}
	for _, s := range declarations {
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
