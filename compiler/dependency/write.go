package dependency

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// Put stores content in the machine's folder and returns its digest. Readers see all of it
// or nothing. A damaged file with that digest is replaced. Content over [MaxSize] and a
// read-only folder are errors.
func (s *Store) Put(data []byte) (Digest, error) {
	if s.machine == "" {
		return "", fmt.Errorf("this machine has no folder for the content of sources; %s names one",
			EnvDir)
	}
	d := DigestOf(data)
	_, err := put(d, data, s.machine)
	if err != nil {
		return "", fmt.Errorf(
			"the content of a source cannot be kept in %s (%s names another folder): %w",
			s.machine, EnvDir, err)
	}
	return d, nil
}

// put stores content in a folder, and reports whether the content was missing there.
func put(d Digest, data []byte, dir string) (added bool, err error) {
	if len(data) > MaxSize {
		return false, fmt.Errorf("%d bytes are more than the %d that content may have", len(data),
			int64(MaxSize))
	}
	name := d.path(dir)
	if _, err := read(d, name); err == nil {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return false, err
	}
	return true, regular.Replace(name, data, 0o644)
}

// CopyChanges lists the changes of [Store.Copy].
type CopyChanges struct{ Added, Removed int }

// Copy gives a folder exactly the content with these digests. It adds missing files, and
// then removes unlisted files whose names are digests. Other files stay. It removes nothing
// if content is missing or damaged, or cannot be written.
func (s *Store) Copy(digests []Digest, dir string) (CopyChanges, error) {
	var done CopyChanges
	keep := map[string]bool{}
	for _, d := range digests {
		data, err := s.Get(d)
		if err != nil {
			return done, err
		}
		added, err := put(d, data, dir)
		if err != nil {
			return done, fmt.Errorf("%s cannot be written to: %w", dir, err)
		}
		if added {
			done.Added++
		}
		keep[d.path(dir)] = true
	}
	own, err := ownFiles(dir)
	if err != nil {
		return done, err
	}
	for _, name := range own {
		if keep[name] {
			continue
		}
		if err := os.Remove(name); err != nil {
			return done, err
		}
		done.Removed++
		_ = os.Remove(filepath.Dir(name)) // which fails unless it is empty
	}
	return done, nil
}

// ownFiles returns the files of a folder that a store has written, sorted, with the
// leftovers of killed processes.
func ownFiles(dir string) ([]string, error) {
	root := filepath.Join(dir, algorithm)
	folders, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var own []string
	for _, folder := range folders {
		if !folder.IsDir() || !isHex(folder.Name(), 2) {
			continue
		}
		files, err := os.ReadDir(filepath.Join(root, folder.Name()))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if name := f.Name(); f.Type().IsRegular() && isOwn(folder.Name(), name) {
				own = append(own, filepath.Join(root, folder.Name(), name))
			}
		}
	}
	slices.Sort(own)
	return own, nil
}

func isOwn(folder, name string) bool {
	return Digest(algorithm+":"+name).Valid() && strings.HasPrefix(name, folder) ||
		strings.HasPrefix(name, regular.TempPrefix)
}
