package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// Checkout writes the platform that dir is in, at a revision of its git repository, into a
// new temporary folder, and returns that folder. It does not change the work tree, the
// index or the refs. remove deletes the folder; it is nil if there is an error. Checkout
// reads only the platform's own part of the revision.
//
// rev is a revision in a form that git rev-parse accepts. It starts with the name of a
// branch, a tag or another ref, with four or more digits of a commit's id, or with the
// output of git describe. Any number of ~N, ^N, ^{commit} and ^{} may follow. Other forms,
// such as those of the reflog, are unknown.
//
// Files have the content that the repository holds. Checkout applies no filter of
// .gitattributes, so it does not convert line ends, and files in git LFS are pointers. It
// writes symbolic links unchanged, wherever they lead.
//
// Repositories need not be trusted: Checkout writes nothing outside the folder, and at most
// a million files or 1 GiB.
func Checkout(ctx context.Context, dir, rev string) (platform string, remove func() error,
	err error) {
	root, err := Root(dir)
	if err != nil {
		return "", nil, err
	}
	repo, err := openRepository(root)
	if err != nil {
		return "", nil, fmt.Errorf("reading revision %s: %w", rev, err)
	}
	platform, remove, err = checkOut(ctx, repo, root, rev)
	if err = errors.Join(err, repo.Close()); err != nil {
		if remove != nil {
			err = errors.Join(err, remove())
		}
		return "", nil, fmt.Errorf("reading revision %s: %w", rev, err)
	}
	return platform, remove, nil
}

// HasRevision reports whether a name is a revision of the repository of a folder, in a form
// that Checkout accepts.
func HasRevision(dir, rev string) bool {
	root, err := Root(dir)
	if err != nil {
		return false
	}
	repo, err := openRepository(root)
	if err != nil {
		return false
	}
	defer repo.Close()
	_, err = repo.Resolve(rev)
	return err == nil
}

// Repository opens the repository of a platform's folder. It also returns the path of the
// folder in the repository, with slashes; "." for its root.
func Repository(root string) (*git.Repository, string, error) {
	repo, err := openRepository(root)
	if err != nil {
		return nil, "", err
	}
	rel, err := filepath.Rel(repo.WorkTree(), root)
	if err != nil {
		return nil, "", errors.Join(err, repo.Close())
	}
	return repo, filepath.ToSlash(rel), nil
}

// openRepository opens the repository that a platform is in.
func openRepository(root string) (*git.Repository, error) {
	repo, err := git.Discover(root)
	var format *git.FormatError
	switch {
	case errors.Is(err, git.ErrNoRepository):
		return nil, fmt.Errorf("%s is not in a git repository, so it has no revisions; run git init "+
			"and commit it, or name a folder instead of a revision", root)
	case errors.As(err, &format):
		return nil, fmt.Errorf("%w; check the revision out (git worktree add --detach DIR REVISION) "+
			"and name that folder", err)
	}
	return repo, err
}

// checkOut returns the folder it made also with an error.
func checkOut(ctx context.Context, repo *git.Repository, root, rev string) (platform string,
	remove func() error, err error) {
	commit, err := repo.Resolve(rev)
	if err != nil {
		return "", nil, err
	}
	rel, err := filepath.Rel(repo.WorkTree(), root)
	if err != nil {
		return "", nil, err
	}
	tree, err := folderAt(repo, commit, filepath.ToSlash(rel), PlatformMarker)
	if err != nil {
		return "", nil, err
	}
	if platform, remove, err = scratch.Dir("revision"); err != nil {
		return "", nil, err
	}
	to, err := os.OpenRoot(platform)
	if err != nil {
		return platform, remove, err
	}
	w := &checkout{ctx: ctx, repo: repo, to: to}
	return platform, remove, errors.Join(w.folder(tree, "."), to.Close())
}

// folderAt returns the content, at a commit, of a platform's folder, or of another one
// with the marker.
func folderAt(repo *git.Repository, commit git.Hash, rel string, marker Marker) ([]git.Entry,
	error) {
	where := rel
	if rel == "." {
		where = "the repository's root"
	}
	id, err := repo.CommitTree(commit)
	if err != nil {
		return nil, err
	}
	e, found, err := repo.Find(id, rel)
	if err != nil {
		return nil, explain(err, "the folders above "+where)
	}
	isOne := false
	if found && e.Mode == git.FolderMode {
		if isOne, err = marker.Marks(repo, commit, rel); err != nil {
			return nil, explain(err, where)
		}
	}
	switch {
	case isOne:
		entries, err := repo.Tree(e.ID)
		if err != nil {
			return nil, explain(err, where)
		}
		return entries, nil
	case rel == ".":
		return nil, fmt.Errorf("the repository's root has no %s in commit %s; name a revision "+
			"that has the %s", strings.Join(marker.Files, " or "), git.Short(commit), marker.What)
	}
	return nil, fmt.Errorf("there is no %s in %s in commit %s; name a revision that has it there",
		marker.What, rel, git.Short(commit))
}

// entryOf returns the entry of a tree with a name, or the zero Entry.
func entryOf(entries []git.Entry, name string) git.Entry {
	if i := slices.IndexFunc(entries, func(e git.Entry) bool { return e.Name == name }); i >= 0 {
		return entries[i]
	}
	return git.Entry{}
}

// explain returns an error that names the missing object, and how to get it.
func explain(err error, what string) error {
	var missing *git.MissingError
	switch {
	case !errors.As(err, &missing):
		return fmt.Errorf("%s: %w", what, err)
	case missing.Reason == git.Partial:
		return errors.New(missing.Message(what) + " and name that folder")
	}
	return errors.New(missing.Message(what))
}
