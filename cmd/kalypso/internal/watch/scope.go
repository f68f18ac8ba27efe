package watch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// scope is which files count.
type scope struct{ Options }

// passing are the names of files that editors and systems write next to edited files: backups,
// swap files, locks, and the files that replace the edited ones by a rename.
var passing = []string{
	"*~", "#*#", ".#*", // Emacs and others
	".*.sw?", "4913", // Vim, which tries with 4913 whether it may write
	"*___jb_tmp___", "*___jb_old___", ".goutputstream-*", "*.kate-swp", ".DS_Store",
}

// foreign are the names of folders, or of files in their place, that belong to
// version control and editors.
var foreign = []string{".git", ".hg", ".jj", ".svn", ".idea", ".vscode"}

// counts reports whether a file or folder below a watched folder counts.
func (s *scope) counts(path string) bool {
	name := filepath.Base(path)
	if slices.Contains(foreign, name) {
		return false
	}
	for _, pattern := range passing {
		if ok, _ := filepath.Match(pattern, name); ok {
			return false
		}
	}
	return !slices.ContainsFunc(s.Except, func(dir string) bool { return within(dir, path) })
}

// within reports whether a path is a folder or lies in it.
func within(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}

// walk calls folder with each folder that counts, before reading it, and file with everything
// else in it. It ignores files that disappear meanwhile or cannot be read. If the root does not
// exist, it returns a GoneError. If one of the functions returns an error, walk stops and returns
// it.
func (s *scope) walk(folder func(path string) error,
	file func(path string, e fs.DirEntry) error) error {
	if info, err := os.Stat(s.Root); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return &GoneError{s.Root}
	} else if err != nil {
		return err
	}
	roots := []string{s.Root}
	if s.Outside != nil {
		roots = append(roots, s.Outside()...)
	}
	walked := map[string]bool{} // the targets of links, which may form a circle
	var walk func(dir string) error
	walk = func(dir string) error {
		if real, err := filepath.EvalSymlinks(dir); err != nil || walked[real] {
			return nil
		} else {
			walked[real] = true
		}
		if err := folder(dir); err != nil {
			return err
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case !s.counts(path):
			case isFolder(path, e):
				if e.IsDir() || s.Follow != nil && s.Follow(path) {
					err = walk(path)
				}
			default:
				err = file(path, e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, root := range roots {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			continue
		}
		if err := walk(root); err != nil {
			return err
		}
	}
	return nil
}

// isFolder reports whether an entry is a folder, or a link to one.
func isFolder(path string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
