package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// TempPrefix begins the names of files that are being written.
const TempPrefix = ".new-"

// Replace writes a file atomically: readers see the old content or all of data, even after a
// power failure. Its folder must exist. If name is a link, Replace replaces the link, and not its
// target.
func Replace(name string, data []byte, mode fs.FileMode) error {
	return ReplaceBy(name, mode, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// ReplaceBy is Replace for content that a function writes to an empty file next to the final one.
// The function may open the empty file by its name.
func ReplaceBy(name string, mode fs.FileMode, write func(*os.File) error) error {
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, TempPrefix+filepath.Base(name)+"-")
	if err != nil {
		return err
	}
	err = write(f)
	// CreateTemp makes files that only their owner can read. A file that is renamed before
	// it is synced may be empty after a power failure.
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	settle(dir)
	return nil
}

// settle syncs the names in a folder to the disk, if the system can. Some file systems can only
// sync files, and the content is complete in any case.
func settle(dir string) {
	if runtime.GOOS == "windows" {
		return
	}
	if f, err := os.Open(dir); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}
