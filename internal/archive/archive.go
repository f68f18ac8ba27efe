// Package archive reads source trees that others have made: the archive of a chart, the layer of
// an OCI artifact, the commit of a git repository. The input is unchecked bytes. The output is a
// [Tree] of files in memory, with paths below its root and a bounded size, or an error that names
// the entry. [Pack] writes a tree as its only possible archive.
//
// The package writes nothing to disk and reads only its arguments. All of it is safe for
// concurrent use, as long as nobody changes a tree.
package archive

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// File is a file of a tree.
type File struct {
	Data       []byte
	Executable bool
}

// Tree is a folder of files. Paths are relative to it, with slashes, and no path is a folder of
// another. A folder without files does not exist.
type Tree struct {
	Files map[string]File
	// Refused are the paths whose content is not to be had, with a reason each that
	// follows the path in a sentence, such as "is a link that leaves the tree". A caller
	// that does not need them can ignore them.
	Refused map[string]string
}

// Data returns the content of each file by its path.
func (t *Tree) Data() map[string][]byte {
	out := make(map[string][]byte, len(t.Files))
	for name, f := range t.Files {
		out[name] = f.Data
	}
	return out
}

// Limits bound the content of a tree, so that a small archive cannot become something
// that no machine has room for.
type Limits struct {
	Entries int   // files, links and folders, also those that links to folders repeat
	Total   int64 // the bytes of all files
	File    int64 // the bytes of one file
	Path    int   // the bytes of a path
	Depth   int   // the elements of a path
}

// DefaultLimits are far above the sizes of charts, overlays and playbooks, and fit the memory of
// a laptop.
var DefaultLimits = Limits{
	Entries: 100_000,
	Total:   256 << 20,
	File:    64 << 20,
	Path:    1024,
	Depth:   64,
}

// TooLarge is the reason for refusing the content of a file beyond DefaultLimits.
var TooLarge = fmt.Sprintf("is larger than %d MiB", DefaultLimits.File>>20)

// WayOut is a hint for a file that is refused for a reason, which is otherwise
// for reasons other than its size.
func WayOut(reason, otherwise string) string {
	if reason == TooLarge {
		return "make it smaller, or divide it"
	}
	return otherwise
}

// An EntryError is the reason why an entry makes an archive unreadable.
type EntryError struct {
	Entry   string // its path, as the archive has it
	Problem string // follows the path in a sentence
}

func (e *EntryError) Error() string { return fmt.Sprintf("%q %s", e.Entry, e.Problem) }

// A LimitError names the limit that an archive exceeds.
type LimitError struct {
	Entry string // the entry that exceeds it; "" if no single entry does
	Most  string // the bound, such as "at most 100000 entries"
}

func (e *LimitError) Error() string {
	if e.Entry == "" {
		return "the archive is too large: " + e.Most + " are read"
	}
	return fmt.Sprintf("%q is too much: %s are read", e.Entry, e.Most)
}

// A FormatError is the error for bytes that are not an archive, or are damaged.
type FormatError struct {
	Entry string // the last entry that was read, or ""
	Err   error
}

func (e *FormatError) Error() string {
	if e.Entry == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("after %q: %v", e.Entry, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

var errNotArchive = errors.New("this is neither a tar archive nor one that is compressed with gzip")

// Sub returns the folder dir of the tree as a tree of its own; "." and "./" are
// the tree itself. The files' bytes are shared. Errors are *EntryError: there is
// no such folder, or it is refused.
func (t *Tree) Sub(dir string) (*Tree, error) {
	clean := path.Clean(strings.TrimSuffix(dir, "/"))
	if clean == "." {
		return t, nil
	}
	if err := pathProblem(clean); err != "" {
		return nil, &EntryError{Entry: dir, Problem: err}
	}
	sub := &Tree{Files: map[string]File{}, Refused: map[string]string{}}
	for name, f := range t.Files {
		if rest, ok := strings.CutPrefix(name, clean+"/"); ok {
			sub.Files[rest] = f
		}
	}
	for name, reason := range t.Refused {
		if rest, ok := strings.CutPrefix(name, clean+"/"); ok {
			sub.Refused[rest] = reason
		}
	}
	if len(sub.Files)+len(sub.Refused) > 0 {
		return sub, nil
	}
	if _, ok := t.Files[clean]; ok {
		return nil, &EntryError{Entry: clean, Problem: "is a file, and not a folder"}
	}
	return nil, t.absent(clean, "folder")
}

// File returns a file of the tree. Errors are *EntryError: there is no such file,
// or it is refused.
func (t *Tree) File(name string) (File, error) {
	clean := path.Clean(name)
	if f, ok := t.Files[clean]; ok {
		return f, nil
	}
	return File{}, t.absent(clean, "file")
}

// absent returns the reason why something does not exist: it or a folder around it is refused, or
// it never existed.
func (t *Tree) absent(name, what string) error {
	for at := name; at != "." && at != "/"; at = path.Dir(at) {
		if reason, ok := t.Refused[at]; ok {
			return &EntryError{Entry: at, Problem: reason}
		}
	}
	return &EntryError{Entry: name, Problem: "is no " + what + " of the source"}
}
