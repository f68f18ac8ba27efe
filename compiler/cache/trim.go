package cache

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/regular"
)

const (
	// trimInterval is the time between two trims.
	trimInterval = time.Hour
	// abandoned is the age after which no process writes a temporary file any more.
	abandoned = 24 * time.Hour
)

// A storedFile is an action or an output.
type storedFile struct {
	path string
	size int64
	used time.Time
}

// trim removes the files that were not used for the longest time, until the folder is small
// enough. It does so only if a trim is due. The library records uses to the hour. A trim always
// removes abandoned files.
func (s *store) trim(maxBytes int64, due bool) error {
	marker := filepath.Join(s.dir, trimmedFile)
	if info, err := os.Stat(marker); !due && err == nil {
		if since := time.Since(info.ModTime()); since >= 0 && since < trimInterval {
			return nil
		}
	}
	lock := regular.Lock(filepath.Join(s.dir, trimLock), 0o666)
	locked, err := lock.TryLock()
	if err != nil {
		return err
	}
	if !locked {
		return nil // another process trims the folder
	}
	defer lock.Close()
	files, err := storedFiles(s.dir)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, tmpFolder)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	removeDown(files, maxBytes)
	if err := os.WriteFile(marker, nil, 0o666); err != nil {
		return err
	}
	now := time.Now()
	return os.Chtimes(marker, now, now)
}

// removeDown removes files until the folder is small enough, starting with those that were not used
// for the longest time. Files that cannot be removed now stay until the next trim.
func removeDown(files []storedFile, maxBytes int64) {
	slices.SortFunc(files, func(a, b storedFile) int {
		return cmp.Or(a.used.Compare(b.used), strings.Compare(a.path, b.path))
	})
	total := int64(0)
	for _, f := range files {
		total += f.size
	}
	for _, f := range files {
		if total <= maxBytes {
			return
		}
		os.Remove(f.path)
		total -= f.size
	}
}

// storedFiles lists the actions and outputs of a cache folder, sorted by path.
func storedFiles(dir string) ([]storedFile, error) {
	var out []storedFile
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if len(folder.Name()) != 2 || !folder.IsDir() {
			continue
		}
		path := filepath.Join(dir, folder.Name())
		entries, err := os.ReadDir(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), "-a") && !strings.HasSuffix(e.Name(), "-d") {
				continue
			}
			info, err := e.Info()
			if err != nil {
				continue // removed meanwhile
			}
			out = append(out, storedFile{filepath.Join(path, e.Name()), info.Size(), info.ModTime()})
		}
	}
	return out, nil
}
