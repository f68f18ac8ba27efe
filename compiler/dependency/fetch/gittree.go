package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/git"
)

// commitEntries returns the files of a commit. Submodules, files in Git LFS, and names that
// a tree cannot have are refused entries: only their use is an error.
func commitEntries(objects *git.Repository, id git.Hash) iter.Seq2[archive.Entry, error] {
	return func(yield func(archive.Entry, error) bool) {
		w := &treeWalk{objects: objects, yield: yield, trees: map[git.Hash][]git.Entry{}}
		root, err := objects.CommitTree(id)
		if err == nil {
			err = w.folder(root, "")
		}
		if err != nil && !w.done {
			yield(archive.Entry{}, fmt.Errorf("the commit %s cannot be read: %w", id, err))
		}
	}
}

type treeWalk struct {
	objects *git.Repository
	yield   func(archive.Entry, error) bool
	trees   map[git.Hash][]git.Entry // a cache
	entries int
	done    bool // the consumer has stopped
}

// folder yields the content of a folder. Folders without files can contain each other so
// often that only a count bounds them.
func (w *treeWalk) folder(id git.Hash, at string) error {
	if strings.Count(at, "/") > archive.DefaultLimits.Depth {
		return &archive.LimitError{Entry: at,
			Most: fmt.Sprintf("paths of at most %d elements", archive.DefaultLimits.Depth)}
	}
	entries, err := w.tree(id)
	if err != nil {
		return err
	}
	for i := range entries {
		if w.entries++; w.entries > archive.DefaultLimits.Entries {
			return &archive.LimitError{Entry: at,
				Most: fmt.Sprintf("at most %d entries", archive.DefaultLimits.Entries)}
		}
		if err := w.entry(&entries[i], at); err != nil || w.done {
			return err
		}
	}
	return nil
}

func (w *treeWalk) entry(e *git.Entry, at string) error {
	name := path.Join(at, e.Name)
	if problem := archive.NameProblem(e.Name); problem != "" {
		w.give(archive.Entry{Path: path.Join(at, validName(e.Name)), Refused: problem})
		return nil
	}
	switch e.Mode {
	case git.FolderMode:
		return w.folder(e.ID, name)
	case git.SubmoduleMode:
		w.give(archive.Entry{Path: name,
			Refused: "is a submodule of git, whose content kalypso does not fetch"})
		return nil
	}
	data, err := w.objects.BlobWithin(e.ID, archive.DefaultLimits.File)
	switch {
	case errors.Is(err, git.ErrTooLarge):
		w.give(archive.Entry{Path: name, Refused: archive.TooLarge})
	case err != nil:
		return fmt.Errorf("the file %s: %w", name, err)
	case e.Mode == git.LinkMode && len(data) > 0:
		w.give(archive.Entry{Path: name, Link: string(data)})
	case len(data) < 1024 &&
		bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/v1\n")):
		w.give(archive.Entry{Path: name,
			Refused: "is kept by Git LFS, from which kalypso does not fetch"})
	default:
		w.give(archive.Entry{Path: name, Data: data, Executable: e.Mode == git.ExecutableMode})
	}
	return nil
}

// tree returns a folder.
func (w *treeWalk) tree(id git.Hash) ([]git.Entry, error) {
	if known, ok := w.trees[id]; ok {
		return known, nil
	}
	t, err := w.objects.Tree(id)
	if err == nil {
		w.trees[id] = t
	}
	return t, err
}

func (w *treeWalk) give(e archive.Entry) { w.done = w.done || !w.yield(e, nil) }

// validName replaces a name that no path can have.
func validName(name string) string {
	text := []rune(strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name))
	if archive.NameProblem(string(text)) != "" {
		return "?" + string(text[:min(len(text), 50)])
	}
	return string(text)
}
