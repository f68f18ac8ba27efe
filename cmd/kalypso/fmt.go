package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/cueformat"
)

// formatter is `kalypso fmt`.
type formatter struct {
	*platform
	check, diff bool

	seen    bool // a file
	changed bool
	ds      []diag.Diagnostic
	err     error // of files that cannot be read or written
}

func newFmt(g author) *cobra.Command {
	f := &formatter{platform: g.platform}
	cmd := &cobra.Command{
		Use:   "fmt [FILE|DIR...]",
		Short: "Format CUE files",
		Long: `fmt writes CUE files as 'cue fmt' does, and prints the names of those that it changes.
Without arguments that are all in the working directory and below it; - formats stdin
to stdout. What is in cue.mod, in folders whose names begin with a dot or an underscore
and in trees that kalypso wrote is left out. Links are not followed.

A file with a syntax error is reported, and the others are formatted; the exit code is
then 3.`,
		Example: `  kalypso fmt
  kalypso fmt --check environments/prod
  kalypso fmt --diff configs.cue`,
		RunE: func(_ *cobra.Command, args []string) error { return f.run(args) },
	}
	cmd.Flags().BoolVar(&f.check, "check", false, "write nothing, list what is not formatted, and "+
		"exit with 1 if there is something")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "write nothing, and print the differences")
	return cmd
}

func (f *formatter) run(args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	for _, name := range args {
		if name == "-" {
			f.seen = true
			f.stdin()
			continue
		}
		at := name
		if !filepath.IsAbs(name) {
			at = filepath.Join(f.dir, name)
		}
		err := cueformat.Files(at, func(path string, err error) error {
			f.seen = true
			f.file(path, f.called(name, at, path), err)
			return nil
		})
		f.err = errors.Join(f.err, err)
	}
	if err := f.report(f.streams.err, diag.Sort(f.ds)); err != nil {
		return err
	}
	switch {
	case f.err != nil:
		return f.err
	case len(f.ds) > 0:
		return errPlatform
	case !f.seen:
		fmt.Fprintln(f.streams.err, "kalypso: no CUE files are there to format; let kalypso init write "+
			"a platform, or name a folder with some")
	case f.check && f.changed:
		return errDifference
	}
	return nil
}

// called returns the name of a file at or below an argument, as the user would write it.
func (f *formatter) called(name, at, path string) string {
	if rest, below := strings.CutPrefix(path, at); below {
		return filepath.ToSlash(filepath.Clean(name + rest))
	}
	return filepath.ToSlash(filepath.Join(name, path)) // at is the working directory
}

func (f *formatter) file(path, called string, err error) {
	var c *cueformat.Change
	if err == nil {
		c, err = cueformat.Read(path)
	}
	switch {
	case errors.Is(err, cueformat.ErrLink):
		f.err = errors.Join(f.err, fmt.Errorf("%s %w", called, err))
	case err != nil:
		f.failed(called, err)
	case c != nil:
		f.show(called, c)
		if !f.check && !f.diff {
			f.err = errors.Join(f.err, c.Write())
		}
	}
}

// show prints the name or the differences of a file that is not formatted.
func (f *formatter) show(called string, c *cueformat.Change) {
	f.changed = true
	if f.diff {
		f.out.Write(diff.Diff(called+".orig", c.Before, called, c.After))
		return
	}
	fmt.Fprintln(f.out, called)
}

func (f *formatter) stdin() {
	src, err := io.ReadAll(f.in)
	if err != nil {
		f.err = errors.Join(f.err, err)
		return
	}
	after, err := cueformat.Text("-", src)
	switch {
	case err != nil:
		f.failed("-", err)
	case !f.check && !f.diff:
		f.out.Write(after)
	case string(after) != string(src):
		f.show("-", &cueformat.Change{Name: "-", Before: src, After: after})
	}
}

// failed reports the errors that CUE finds in a file, or that the file cannot be read.
func (f *formatter) failed(called string, err error) {
	problems := cueformat.Problems(err)
	if len(problems) == 0 {
		f.err = errors.Join(f.err, err)
	}
	for _, p := range problems {
		f.ds = append(f.ds, diag.New(diag.Syntax,
			p.Message).In(model.Position{File: called, Line: p.Line, Column: p.Column}, ""))
	}
}
