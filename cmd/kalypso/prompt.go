package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cli/go-gh/v2/pkg/prompter"
	"golang.org/x/term"
)

// errInterrupted is the error of ask if the user presses Ctrl-C at a question.
var errInterrupted = errors.New("interrupted")

// ask asks questions on the terminal that stdin and stderr are. It returns false, and asks
// nothing, where they are none, or one of the results goes elsewhere. When the context ends, the
// terminal becomes again what it was, and the answers are not to be used.
func (g *global) ask(ctx context.Context, questions func(*prompter.Prompter) error,
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
