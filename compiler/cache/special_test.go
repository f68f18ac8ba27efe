//go:build unix

package cache

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNoFiles replaces a cache's files by pipes without a writer, and by links to a device without
// an end. They count as missing.
func TestNoFiles(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			fillDamaged(t, dir)
			replaced := 0
			err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err != nil || !e.Type().IsRegular() || !strings.HasSuffix(path, "-a") && !strings.HasSuffix(path, "-d") {
					return err
				}
				replaced++
				if err := os.Remove(path); err != nil {
					return err
				}
				return replace(path)
			})
			if err != nil || replaced == 0 {
				t.Fatalf("%d files, %v", replaced, err)
			}
			if found := fillDamaged(t, dir); found > 0 {
				t.Errorf("%d results are found", found)
			}
		})
	}
}
