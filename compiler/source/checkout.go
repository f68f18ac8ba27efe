package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Bounds of what is written of a revision. A few objects that refer to each
// other describe a tree without end.
const (
	mostEntries = 1_000_000
	mostBytes   = 1 << 30
	mostDepth   = 256
)

// checkout writes a tree into a folder.
type checkout struct {
	ctx     context.Context
	repo    *repository
	to      *os.Root
	entries int
	bytes   int64
}

// folder writes what a tree holds into dir, which is there and empty.
func (c *checkout) folder(tree *object.Tree, dir string) error {
	if strings.Count(dir, "/") > mostDepth {
		return fmt.Errorf("%s: folders are nested too deeply", dir)
	}
	for _, e := range tree.Entries {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := entryNameError(e.Name); err != nil {
			return fmt.Errorf("%q in folder %s of the platform %w", e.Name, dir, err)
		}
		if c.entries++; c.entries > mostEntries {
			return fmt.Errorf("the platform has more than %d files", mostEntries)
		}
		if err := c.entry(e, path.Join(dir, e.Name)); err != nil {
			return err
		}
	}
	return nil
}

// entry writes one entry of a tree. Nothing may be at its path, so that an entry
// that is there twice, or that a file system takes for another, is an error and
// does not go through a link that was written before.
func (c *checkout) entry(e object.TreeEntry, at string) error {
	switch e.Mode {
	case filemode.Dir:
		tree, err := object.GetTree(c.repo, e.Hash)
		if err != nil {
			return c.repo.explain(err, at)
		}
		if err := c.to.Mkdir(at, 0o777); err != nil {
			return err
		}
		return c.folder(tree, at)
	case filemode.Regular, filemode.Deprecated:
		return c.file(e.Hash, at, 0o666)
	case filemode.Executable:
		return c.file(e.Hash, at, 0o777)
	case filemode.Symlink:
		return c.link(e.Hash, at)
	case filemode.Submodule:
		return fmt.Errorf("%s is a git submodule, and its files are in another repository; "+
			"check the revision out with its submodules (git worktree add, git submodule update) and name that folder", at)
	}
	return fmt.Errorf("%s has mode %s, which git does not know", at, e.Mode)
}

func (c *checkout) file(hash plumbing.Hash, at string, mode os.FileMode) (err error) {
	content, err := c.open(hash, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	f, err := c.to.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

func (c *checkout) link(hash plumbing.Hash, at string) error {
	content, err := c.open(hash, at)
	if err != nil {
		return err
	}
	const longest = 1 << 16 // more than any system takes
	target, err := io.ReadAll(io.LimitReader(content, longest))
	if err = errors.Join(err, content.Close()); err != nil {
		return err
	}
	return c.to.Symlink(string(target), at)
}

// open opens the content of a file that is to be written.
func (c *checkout) open(hash plumbing.Hash, at string) (io.ReadCloser, error) {
	size, err := c.repo.EncodedObjectSize(hash)
	if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, c.repo.explain(err, at)
	}
	if c.bytes += size; c.bytes > mostBytes {
		return nil, fmt.Errorf("the platform has more than %d bytes", int64(mostBytes))
	}
	blob, err := object.GetBlob(c.repo, hash)
	if err != nil {
		return nil, c.repo.explain(err, at)
	}
	return blob.Reader()
}

// entryNameError is about a name that git does not allow in a tree, because it
// leads out of the folder or because a file system takes it for .git (git's
// verify_path, is_hfs_dotgit and is_ntfs_dotgit).
func entryNameError(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") ||
		runtime.GOOS == "windows" && strings.ContainsAny(name, `\:`) {
		return errors.New("is not a name of a file")
	}
	visible := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, name)
	visible, _, _ = strings.Cut(visible, ":")
	visible, _, _ = strings.Cut(visible, `\`)
	if visible = strings.ToLower(strings.TrimRight(visible, ". ")); visible == ".git" || visible == "git~1" {
		return errors.New("is git's own")
	}
	return nil
}
