package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/cli/go-gh/v2/pkg/prompter"
	"golang.org/x/term"
)

// prompter returns what asks questions on the terminal that stdin and stderr are; nil where they
// are none, or one of the results goes elsewhere. Where the command is interrupted from outside
// while it asks, the terminal becomes again what it was.
func (g *global) prompter(ctx context.Context, results ...io.Writer) *prompter.Prompter {
	for _, w := range append(results, g.err) {
		if sizeOf(w) == nil {
			return nil
		}
	}
	in, isFile := g.in.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return nil
	}
	context.AfterFunc(ctx, func() {
		_ = term.Restore(int(in.Fd()), state)
		fmt.Fprint(g.err, "\x1b[?25h") // shows the cursor
	})
	out := g.err.(*os.File) // else it has no size
	return prompter.New(in, out, out)
}
