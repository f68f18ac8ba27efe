package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cli/go-gh/v2/pkg/prompter"
	"golang.org/x/term"

	"github.com/kalypso-io/kalypso/cmd/kalypso/internal/progress"
	"github.com/kalypso-io/kalypso/compiler"
)

// sizeOf returns a function for the columns and rows of the terminal w. It returns nil if w is
// not a terminal, or if the terminal can only print.
func sizeOf(w io.Writer) func() (columns, rows int) {
	if p, isOurs := w.(resultWriter); isOurs {
		w = p.Writer
	}
	f, isFile := w.(*os.File)
	if !isFile || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() (int, int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil || columns == 0 || rows == 0 { // some consoles do not know
			return 80, 24
		}
		return columns, rows
	}
}

// The values of --progress.
const (
	progressAuto  = "auto"
	progressPlain = "plain"
	progressNone  = "none"
)

// showProgress shows the progress of a request on stderr, until stop is called or the context
// ends. All other output must wait for stop.
func (g *console) showProgress(ctx context.Context, r *compiler.Request) (stop func()) {
	o := progress.Options{Out: g.err}
	switch g.progress {
	case progressNone:
		return func() {}
	case progressAuto:
		o.Size = sizeOf(g.err)
	}
	d := progress.Start(o)
	r.Progress = d.Report
	forget := context.AfterFunc(ctx, d.Stop)
	g.display.Store(d)
	return func() {
		forget()
		d.Stop()
	}
}

// stopProgress stops the display of showProgress.
func (g *console) stopProgress() {
	if d := g.display.Load(); d != nil {
		d.Stop()
	}
}

// errInterrupted is the error of ask if the user presses Ctrl-C at a question.
var errInterrupted = errors.New("interrupted")

// ask asks questions on the terminal of stdin and stderr. If they are not a terminal, or if one
// of the results goes elsewhere, it returns false and does not ask. When the context ends, it
// restores the state of the terminal, and the answers must not be used.
func (g *console) ask(ctx context.Context, questions func(*prompter.Prompter) error,
	results ...io.Writer) (asked bool, err error) {
	for _, w := range append(results, g.err) {
		if sizeOf(w) == nil {
			return false, nil
		}
	}
	in, isFile := g.in.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return false, nil
	}
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return false, fmt.Errorf("asking on the terminal: %w", err)
	}
	out := g.err.(*os.File) // else it has no size
	done := make(chan error, 1)
	go func() { done <- questions(prompter.New(in, out, out)) }()
	select {
	case err := <-done:
		// prompter has no error of its own for Ctrl-C: it wraps this one of the library below it.
		for cause := err; cause != nil; cause = errors.Unwrap(cause) {
			if cause.Error() == "interrupt" {
				return true, errInterrupted
			}
		}
		return true, err
	case <-ctx.Done():
		fmt.Fprintln(out, "\x1b[?25h") // shows the cursor
		_ = term.Restore(int(in.Fd()), state)
		return true, ctx.Err()
	}
}
