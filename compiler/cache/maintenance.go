package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	gocache "github.com/rogpeppe/go-internal/cache"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// recognise reports whether dir is a cache folder. It returns false without an error if dir does
// not exist or is empty. A folder with other content is an error.
func recognise(dir string) (bool, error) {
	text, err := regular.ReadFile(filepath.Join(dir, readmeFile))
	if err == nil && bytes.Equal(text, []byte(readme)) {
		return true, nil
	}
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(files) == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return false, fmt.Errorf("%s is not a cache of kalypso: it has no %s that says so", dir,
		readmeFile)
}

// Size returns the total size of the files of a cache folder, and the number of its entries: single
// results, and results in tables. A folder that does not exist has size 0. A folder that is not a
// cache is an error.
func Size(dir string) (size int64, entries int, err error) {
	ours, err := recognise(dir)
	if !ours {
		return 0, 0, err
	}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return skipRemoved(err)
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return skipRemoved(err)
	})
	if err != nil {
		return 0, 0, err
	}
	i, err := newInspection(dir)
	if err != nil {
		return 0, 0, err
	}
	defer i.restore()
	for _, f := range i.files {
		if id, isAction := fileID(f.path, "-a"); isAction {
			entries += i.entries(id)
		}
	}
	return size, entries, nil
}

// Clean removes a cache folder. It is an error if the folder is not a cache; Clean then leaves it
// unchanged. It is not an error if the folder does not exist. Clean does not remove files that do
// not belong to the cache, and then the folder stays as well.
//
// Processes that use the cache at the same time compute missing results again.
func Clean(dir string) error {
	ours, err := recognise(dir)
	if !ours {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !ourName(f.Name()) || f.Name() == readmeFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	// Remove the README last, so that an interrupted run can be repeated.
	if err := os.Remove(filepath.Join(dir, readmeFile)); err != nil {
		return err
	}
	_ = os.Remove(dir) // fails if it contains other files
	return nil
}

// VerifyAll reads every file of a cache folder. It removes damaged files, files whose
// content does not match their name, and tables that cannot be read. It returns the names of
// the removed files, relative to the folder, with slashes, sorted. It also returns the
// number of files that it checked. A folder that does not exist has no files. A folder that
// is not a cache is an error.
//
// A missing file is not bad: a trim may have removed it. Verifying does not count as a use. Other
// processes may use the cache at the same time.
func VerifyAll(dir string) (bad []string, checked int, err error) {
	ours, err := recognise(dir)
	if !ours {
		return nil, 0, err
	}
	i, err := newInspection(dir)
	if err != nil {
		return nil, 0, err
	}
	defer i.restore()
	var actions []storedFile
	for _, f := range i.files { // outputs first: actions refer to them
		if _, ok := fileID(f.path, "-a"); ok {
			actions = append(actions, f)
		} else if id, ok := fileID(f.path, "-d"); !ok || outputDamaged(f, id) {
			i.remove(f.path)
		}
	}
	for _, f := range actions {
		id, _ := fileID(f.path, "-a")
		i.verifyAction(f, id)
	}
	for path := range i.bad {
		name, err := filepath.Rel(i.store.dir, path)
		if err != nil {
			return nil, 0, err
		}
		bad = append(bad, filepath.ToSlash(name))
	}
	slices.Sort(bad)
	return bad, len(i.files), i.err
}

// An inspection checks all files of a cache folder.
type inspection struct {
	store *store
	files []storedFile
	bad   map[string]bool
	err   error // of removals
}

// newInspection lists the files of a cache folder. The caller must call restore in the end.
func newInspection(dir string) (*inspection, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	library, err := gocache.Open(dir) // it writes nothing if the cache is complete
	if err != nil {
		return nil, err
	}
	files, err := storedFiles(dir)
	return &inspection{store: &store{dir, library}, files: files, bad: map[string]bool{}}, err
}

// restore sets the times of use back to their values before the inspection.
func (i *inspection) restore() {
	for _, f := range i.files {
		if info, err := os.Stat(f.path); err == nil && !info.ModTime().Equal(f.used) {
			os.Chtimes(f.path, f.used, f.used)
		}
	}
}

// remove removes a bad file, once.
func (i *inspection) remove(path string) {
	if i.bad[path] {
		return
	}
	i.bad[path] = true
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		i.err = errors.Join(i.err, err)
	}
}

// fileID returns the hash in the name of a file XX/<hash><suffix>.
func fileID(path, suffix string) (id digest, ok bool) {
	text, ok := strings.CutSuffix(filepath.Base(path), suffix)
	if !ok || len(text) != hex.EncodedLen(len(id)) || filepath.Base(filepath.Dir(path)) != text[:2] {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(text))
	return id, err == nil
}

// outputDamaged reports whether the hash of an output differs from its name. An output that another
// process has just removed is not damaged.
func outputDamaged(f storedFile, id digest) bool {
	data, err := regular.ReadFile(f.path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return sha256.Sum256(data) != id
}

// verifyAction removes an action that is damaged, or at another action's place.
func (i *inspection) verifyAction(f storedFile, id Key) {
	data, _, ok := i.store.get(id)
	if !ok {
		if i.actionDamaged(f.path) {
			i.remove(f.path)
		}
		return
	}
	h, payload, ok := unseal(data)
	switch {
	case ok && h.kind == kindEntry && len(h.name) == len(Key{}) &&
		entryID(h.level, Key([]byte(h.name))) == id:
	case ok && h.kind == kindTable && tableID(h.level, h.name) == id && isComplete(payload):
	default:
		i.remove(f.path)
	}
}

// actionDamaged reports whether an action without an output is itself damaged. An empty action may
// be one that is about to be written.
func (i *inspection) actionDamaged(path string) bool {
	id, _ := fileID(path, "-a")
	if _, err := i.store.files.Get(gocache.ActionID(id)); err == nil {
		return false // its output is missing, or was removed as bad
	}
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// isComplete reports whether a payload is a complete table.
func isComplete(payload []byte) bool {
	_, ok := decodeRows(payload)
	return ok
}

// entries returns the number of results that an action refers to.
func (i *inspection) entries(id Key) int {
	data, _, ok := i.store.get(id)
	if !ok {
		return 0
	}
	h, payload, ok := unseal(data)
	if !ok || h.kind != kindTable {
		return 1
	}
	rows, _ := decodeRows(payload)
	return len(rows)
}

// skipRemoved ignores the error of a file that another process has just removed.
func skipRemoved(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
