package dependency

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// FileName is the name of the lock in a platform's root.
const FileName = "kalypso.lock"

// The file's type.
const (
	apiVersion = "kalypso.io/v1alpha1"
	older      = "kalypso.io/v1" // of former versions, with the same fields
	kind       = "Lock"
)

// Entry is a source and its pin.
type Entry struct {
	Source
	// Revision is the revision that the source had when it was locked: a commit, a chart's
	// version, the digest of an OCI manifest, or a module's version.
	Revision string `json:"revision"`
	// Content is the digest of the content in the store. For a commit, this is its archive
	// as archive.Pack writes it. For a chart, an artifact or a module, this is the archive,
	// the layer or the zip file as it was served.
	Content Digest `json:"content"`
	// Size is the content's size in bytes.
	Size int64 `json:"size"`
}

// A SizeError is that an entry of the lock has a different size from its content.
type SizeError struct {
	Entry  Entry
	Actual int64 // the size of its content, in bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: the content has %d bytes, and %s says %d", e.Entry.Source, e.Actual,
		FileName, e.Entry.Size)
}

// Hint returns the remedy.
func (e *SizeError) Hint() string {
	return "somebody has changed " + FileName +
		": restore it from git, or run `kalypso lock --update-all`"
}

// Fits returns a *SizeError if content with the entry's digest does not have its size. Then
// the entry was edited, and its other fields may be wrong too.
func (e Entry) Fits(content []byte) error {
	if size := int64(len(content)); size != e.Size {
		return &SizeError{Entry: e, Actual: size}
	}
	return nil
}

// Lock is the pins of a platform: sorted, and each source once.
type Lock struct{ Sources []Entry }

// NewLock returns the lock of entries in any order. If a source has several entries, the
// last one counts.
func NewLock(entries []Entry) *Lock {
	bySource := map[Source]Entry{}
	for _, e := range entries {
		bySource[e.Source] = e
	}
	l := &Lock{Sources: make([]Entry, 0, len(bySource))}
	for _, e := range bySource {
		l.Sources = append(l.Sources, e)
	}
	slices.SortFunc(l.Sources, func(a, b Entry) int { return a.compare(b.Source) })
	return l
}

// Find returns the pin of a source, and reports whether the source has one.
func (l *Lock) Find(s Source) (Entry, bool) {
	i, found := slices.BinarySearchFunc(l.Sources, s,
		func(e Entry, s Source) int { return e.compare(s) })
	if !found {
		return Entry{}, false
	}
	return l.Sources[i], true
}

// Write writes the lock to the file in a platform's root, atomically as WriteFile, unless
// it has that content already. An empty lock replaces another one, but creates no file.
func (l *Lock) Write(root string) error {
	data, err := l.encode()
	if err != nil {
		return err
	}
	name := filepath.Join(root, FileName)
	old, err := regular.ReadFile(name)
	if err == nil && bytes.Equal(old, data) {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) && len(l.Sources) == 0 {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := regular.Replace(name, data, 0o644); err != nil {
		return fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return nil
}

// encode returns the content of the file.
func (l *Lock) encode() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // a range such as >=1.2 <2 is read by people
	e.SetIndent("", "  ")
	err := e.Encode(struct {
		APIVersion string  `json:"apiVersion"`
		Kind       string  `json:"kind"`
		Sources    []Entry `json:"sources"`
	}{apiVersion, kind, NewLock(l.Sources).Sources})
	return out.Bytes(), err
}
