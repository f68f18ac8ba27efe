package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Checkout writes the platform that dir is in, as it is at a revision of its git
// repository, into a new temporary folder, and returns that folder. The work
// tree, the index and the refs stay as they are. remove deletes the folder; it
// is nil where there is an error. Only the platform's own part of the revision
// is read.
//
// rev is the name of a branch, a tag or another ref, or a commit's id or four or
// more digits of it, or what git describe prints, followed by any number of ~N,
// ^N, ^{commit} and ^{}. Of git rev-parse's forms, those that ask the reflog
// (@{...}), commit messages (:/text, ^{/text}) or paths are not known.
//
// Files are what the repository holds: no filter of .gitattributes is applied,
// so line ends are not converted, and of what git LFS manages there are the
// pointers. Symbolic links are written as they are, wherever they lead.
//
// Repositories need not be trusted: nothing is written outside the folder, and
// no more than a million files or 1 GiB.
func Checkout(ctx context.Context, dir, rev string) (platform string, remove func() error, err error) {
	root, err := Root(dir)
	if err != nil {
		return "", nil, err
	}
	repo, err := openRepository(root)
	if err != nil {
		return "", nil, fmt.Errorf("reading revision %s: %w", rev, err)
	}
	platform, err = repo.checkout(ctx, root, rev)
	if err = errors.Join(err, repo.Close()); err != nil {
		if platform != "" {
			err = errors.Join(err, os.RemoveAll(platform))
		}
		return "", nil, fmt.Errorf("reading revision %s: %w", rev, err)
	}
	return platform, func() error { return os.RemoveAll(platform) }, nil
}

// HasRevision says whether a name is that of a revision of the repository that a
// folder is in, as Checkout takes it.
func HasRevision(dir, rev string) bool {
	root, err := Root(dir)
	if err != nil {
		return false
	}
	r, err := openRepository(root)
	if err != nil {
		return false
	}
	defer r.Close()
	_, err = r.resolve(rev)
	return err == nil
}

// checkout returns the folder it made also with an error.
func (r *repository) checkout(ctx context.Context, root, rev string) (string, error) {
	commit, err := r.resolve(rev)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(r.workTree, root)
	if err != nil {
		return "", err
	}
	tree, err := r.tree(commit, filepath.ToSlash(rel))
	if err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp("", "kalypso-revision-")
	if err != nil {
		return "", err
	}
	// The name of the temporary folder may have links in it.
	if real, err := filepath.EvalSymlinks(temp); err == nil {
		temp = real
	}
	to, err := os.OpenRoot(temp)
	if err != nil {
		return temp, err
	}
	w := &checkout{ctx: ctx, repo: r, to: to}
	return temp, errors.Join(w.folder(tree, "."), to.Close())
}

// tree returns the tree of the platform at a commit.
func (r *repository) tree(commit *object.Commit, rel string) (*object.Tree, error) {
	hash, where := commit.TreeHash, rel
	missing := func() error {
		if rel == "." {
			return fmt.Errorf("the repository's root has no cue.mod/module.cue in commit %s; name a revision that has the platform", short(commit.Hash))
		}
		return fmt.Errorf("there is no platform in %s in commit %s; name a revision that has it there", rel, short(commit.Hash))
	}
	names := strings.Split(rel, "/")
	if rel == "." {
		names, where = nil, "the repository's root"
	}
	for _, name := range names {
		e, err := r.entry(hash, name)
		switch {
		case err != nil:
			return nil, r.explain(err, "the folders above "+where)
		case e == nil || e.Mode != filemode.Dir:
			return nil, missing()
		}
		hash = e.Hash
	}
	module, err := r.entry(hash, "cue.mod")
	if err == nil && module != nil && module.Mode == filemode.Dir {
		module, err = r.entry(module.Hash, "module.cue")
	}
	if err != nil {
		return nil, r.explain(err, where)
	}
	if module == nil || module.Mode == filemode.Dir {
		return nil, missing()
	}
	tree, err := object.GetTree(r, hash)
	return tree, r.explain(err, where)
}

// entry returns what a tree has under a name; nil for nothing.
func (r *repository) entry(tree plumbing.Hash, name string) (*object.TreeEntry, error) {
	t, err := object.GetTree(r, tree)
	if err != nil {
		return nil, err
	}
	for i := range t.Entries {
		if t.Entries[i].Name == name {
			return &t.Entries[i], nil
		}
	}
	return nil, nil
}

func short(h plumbing.Hash) string { return h.String()[:12] }
