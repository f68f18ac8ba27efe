// Package regular reads files that others may have replaced: by a pipe, which blocks its reader
// if nobody writes to it, or by a device without an end. It follows links. It replaces files so
// that nobody reads half of one.
package regular

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is wrapped by errors of [Open] and [ReadFile] for anything but a file or a
// folder. For a folder they wrap syscall.EISDIR.
var ErrNotRegular = errors.New("is not a regular file")

// Open opens a file for reading. It never waits for somebody to write.
func Open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil || info.Mode().IsRegular():
	case info.IsDir():
		err = &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	default:
		err = fmt.Errorf("%s %w", name, ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// maxKnown is the largest number of bytes for which memory is allocated before they are read
// from a file.
const maxKnown = 16 << 20

// ReadFile returns the content of a file.
func ReadFile(name string) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(min(info.Size(), maxKnown)) + bytes.MinRead)
	_, err = b.ReadFrom(f)
	return b.Bytes(), err
}
