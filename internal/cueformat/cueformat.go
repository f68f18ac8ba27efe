// Package cueformat formats CUE files as `cue fmt` does.
package cueformat

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso/internal/regular"
)

// ErrLink is the error for a link, which is not followed.
var ErrLink = errors.New("is a link: name the file that it leads to")

// Text returns CUE in the format of `cue fmt`. An error is an error of CUE, with positions in
// the file name.
func Text(name string, src []byte) ([]byte, error) {
	f, err := parser.ParseFile(name, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return format.Node(f)
}

// Problem is a syntax error.
type Problem struct {
	Message      string
	Line, Column int
}

// Problems returns the syntax errors in an error of Text or Read. It returns nil for any other
// error.
func Problems(err error) (out []Problem) {
	if cue := cueerrors.Error(nil); !errors.As(err, &cue) {
		return nil
	}
	for _, e := range cueerrors.Errors(err) {
		text, args := e.Msg()
		at := e.Position()
		out = append(out, Problem{fmt.Sprintf(text, args...), max(at.Line(), 1), max(at.Column(), 1)})
	}
	return out
}

// Files calls f with each CUE file that name is, or that is in the folder name, in the order of
// the file names. Like `cue fmt --files`, it leaves out cue.mod and names that begin with a dot
// or an underscore. It also leaves out trees that kalypso wrote. For an unreadable file and for
// a link, it calls f with an error. An error of f ends the walk.
func Files(name string, f func(name string, err error) error) error {
	if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		if err == nil {
			err = ErrLink
		}
		return f(name, err)
	}
	return filepath.WalkDir(name, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return f(at, err)
		case d.IsDir() && at != name && isLeftOut(at):
			return fs.SkipDir
		case d.IsDir() || at != name && !strings.HasSuffix(at, ".cue"):
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			return f(at, ErrLink)
		}
		return f(at, nil)
	})
}

func isLeftOut(dir string) bool {
	base := filepath.Base(dir)
	if base == "cue.mod" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, ".kalypso", "provenance.json"))
	return err == nil
}

// Change is the effect of formatting on a file.
type Change struct {
	Name          string
	Before, After []byte
	mode          fs.FileMode
}

// Read returns the effect of formatting a file. It returns nil if formatting does not change
// the file. An error of CUE has positions in the file.
func Read(name string) (*Change, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	src, err := regular.ReadFile(name)
	if err != nil {
		return nil, err
	}
	after, err := Text(name, src)
	if err != nil || bytes.Equal(src, after) {
		return nil, err
	}
	return &Change{name, src, after, info.Mode().Perm()}, nil
}

// Write atomically replaces the file by one with the same permissions.
func (c *Change) Write() error { return regular.Replace(c.Name, c.After, c.mode) }
