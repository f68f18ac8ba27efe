package git

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Mode is the mode of a tree's entry.
type Mode string

// The modes that git writes, and one that old versions wrote for a file.
const (
	FileMode       Mode = "100644"
	OldFileMode    Mode = "100664"
	ExecutableMode Mode = "100755"
	LinkMode       Mode = "120000"
	FolderMode     Mode = "40000"
	SubmoduleMode  Mode = "160000"
)

// Entry is one entry of a tree.
type Entry struct {
	Name string
	Mode Mode
	ID   Hash
}

// Compare orders the entries of a tree: folders as if their names ended in a
// slash.
func (e Entry) Compare(other Entry) int {
	n := min(len(e.Name), len(other.Name))
	return cmp.Or(strings.Compare(e.Name[:n], other.Name[:n]), cmp.Compare(e.next(n), other.next(n)))
}

// next is the byte after the first n bytes of the name, as entries are sorted, or -1.
func (e Entry) next(n int) int {
	switch {
	case n < len(e.Name):
		return int(e.Name[n])
	case e.Mode == FolderMode:
		return '/'
	}
	return -1
}

// ParseTree returns the entries of a tree's content, in its order. Leading zeros of modes,
// which some programs write, are removed. The content need not be trusted: names have no
// slash and are not empty, but may be anything else, as may modes.
func ParseTree(data []byte) ([]Entry, error) {
	const usual = 48 // bytes of an entry
	entries := make([]Entry, 0, len(data)/usual+1)
	for text := string(data); len(text) > 0; { // which the names share
		head, rest, found := strings.Cut(text, "\x00")
		mode, name, spaced := strings.Cut(head, " ")
		if !found || !spaced || len(rest) < len(Hash{}) {
			return nil, errors.New("the content of the tree is malformed")
		}
		if len(name) == 0 || strings.IndexByte(name, '/') >= 0 {
			return nil, fmt.Errorf("%q is not a name of a file", name)
		}
		e := Entry{Name: name, Mode: Mode(strings.TrimLeft(mode, "0"))}
		copy(e.ID[:], rest)
		entries = append(entries, e)
		text = rest[len(e.ID):]
	}
	return entries, nil
}

// EncodeTree returns the content of the tree with the entries, which it sorts in place.
func EncodeTree(entries []Entry) []byte {
	slices.SortFunc(entries, Entry.Compare)
	size := 0
	for _, e := range entries {
		size += len(e.Mode) + len(e.Name) + len(e.ID) + 2
	}
	data := make([]byte, 0, size)
	for _, e := range entries {
		data = append(data, e.Mode...)
		data = append(data, ' ')
		data = append(data, e.Name...)
		data = append(data, 0)
		data = append(data, e.ID[:]...)
	}
	return data
}

// Tree returns the entries of a tree in the repository.
func (r *Repository) Tree(id Hash) ([]Entry, error) {
	data, err := r.read(id, TreeKind)
	if err != nil {
		return nil, err
	}
	entries, err := ParseTree(data)
	if err != nil {
		return nil, fmt.Errorf("reading tree %s of %s: %w", id, r.dir, err)
	}
	return entries, nil
}

// Blob returns a file's content.
func (r *Repository) Blob(id Hash) ([]byte, error) { return r.read(id, BlobKind) }

// BlobWithin returns a file's content of at most most bytes. The error is an ErrTooLarge
// for a larger file, which is not read.
func (r *Repository) BlobWithin(id Hash, most int64) ([]byte, error) {
	return r.readWithin(id, BlobKind, most)
}

func (r *Repository) read(id Hash, kind Kind) ([]byte, error) {
	return r.readWithin(id, kind, maxObject)
}

func (r *Repository) readWithin(id Hash, kind Kind, most int64) ([]byte, error) {
	o, err := r.objectWithin(id, most)
	if err != nil {
		return nil, err
	}
	if o.Kind != kind {
		return nil, fmt.Errorf("object %s of %s is a %s, not a %s", id, r.dir, o.Kind, kind)
	}
	return o.Data, nil
}
