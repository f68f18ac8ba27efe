package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Bounds of the files of a revision. A few objects that refer to each other describe a
// tree without end.
const (
	maxEntries = 1_000_000
	maxBytes   = 1 << 30
	maxDepth   = 256
)

// checkout writes a tree into a folder.
type checkout struct {
	ctx     context.Context
	repo    *git.Repository
	to      *os.Root
	entries int
	bytes   int64
}

// folder writes the entries of a tree into dir, which exists and is empty.
func (c *checkout) folder(entries []git.Entry, dir string) error {
	if strings.Count(dir, "/") > maxDepth {
		return fmt.Errorf("%s: folders are nested too deeply", dir)
	}
	for _, e := range entries {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := entryNameError(e.Name); err != nil {
			return fmt.Errorf("%q in folder %s of the platform %w", e.Name, dir, err)
		}
		if c.entries++; c.entries > maxEntries {
			return fmt.Errorf("the platform has more than %d files", maxEntries)
		}
		if err := c.entry(e, path.Join(dir, e.Name)); err != nil {
			return err
		}
	}
	return nil
}

// entry writes one entry of a tree. Its path must not exist yet. So a duplicate entry is an
// error, and so is an entry that a file system takes for another. Neither can pass through
// a link that was written before.
func (c *checkout) entry(e git.Entry, at string) error {
	switch e.Mode {
	case git.FolderMode:
		entries, err := c.repo.Tree(e.ID)
		if err != nil {
			return explain(err, at)
		}
		if err := c.to.Mkdir(at, 0o777); err != nil {
			return err
		}
		return c.folder(entries, at)
	case git.FileMode, git.OldFileMode:
		return c.file(e.ID, at, 0o666)
	case git.ExecutableMode:
		return c.file(e.ID, at, 0o777)
	case git.LinkMode:
		target, err := c.read(e.ID, at)
		if err != nil {
			return err
		}
		return c.to.Symlink(string(target), at)
	case git.SubmoduleMode:
		if !mustBeWhole(at) {
			return c.to.Mkdir(at, 0o777) // empty, as git has it before `git submodule update`
		}
		return fmt.Errorf("%s is a git submodule, and its files are in another repository; "+
			"check the revision out with its submodules (git worktree add, git submodule update) and name "+
			"that folder", at)
	}
	return fmt.Errorf("%s has mode %q, which git does not know", at, e.Mode)
}

// mustBeWhole reports whether the files at a path count even if nothing names them. Without
// them, kalypso would compile another platform, and nobody would notice.
func mustBeWhole(at string) bool {
	first, _, _ := strings.Cut(at, "/")
	return first == Environments || first == "cue.mod"
}

func (c *checkout) file(id git.Hash, at string, mode os.FileMode) error {
	content, err := c.read(id, at)
	if err != nil {
		return err
	}
	f, err := c.to.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// read returns the content of a file before it is written.
func (c *checkout) read(id git.Hash, at string) ([]byte, error) {
	content, err := c.repo.BlobWithin(id, maxBytes-c.bytes)
	if errors.Is(err, git.ErrTooLarge) {
		return nil, fmt.Errorf("the platform has more than %d bytes", int64(maxBytes))
	}
	if err != nil {
		return nil, explain(err, at)
	}
	c.bytes += int64(len(content))
	return content, nil
}

// entryNameError returns an error for a name that git does not allow in a tree. Such a name
// leads out of the folder, or a file system takes it for .git. See git's verify_path,
// is_hfs_dotgit and is_ntfs_dotgit.
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
	if visible = strings.ToLower(strings.TrimRight(visible, ". ")); visible == ".git" ||
		visible == "git~1" {
		return errors.New("is git's own")
	}
	return nil
}
