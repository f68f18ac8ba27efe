package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// diagnosticWriters are the values of --diagnostics.
var diagnosticWriters = map[string]func(io.Writer, []diag.Diagnostic) error{
	"text": func(w io.Writer, ds []diag.Diagnostic) error {
		if colour(w) {
			return diag.WriteText(w, ds, bold)
		}
		return diag.WriteText(w, ds, nil)
	},
	"json":   diag.WriteJSON,
	"github": diag.WriteGitHub,
	"sarif": func(w io.Writer, ds []diag.Diagnostic) error {
		return diag.WriteSARIF(w, ds, compiler.Version().Version)
	},
}

func (g *global) tell(w io.Writer, ds []diag.Diagnostic) error {
	return diagnosticWriters[g.diagnostics](w, ds)
}

// tellErrors tells the errors of a platform beside a result that is not about
// them, and returns errPlatform if there are some.
func (g *global) tellErrors(b *compiler.Build) error {
	var errs []diag.Diagnostic
	for _, d := range b.Diagnostics {
		if d.Severity == diag.Error {
			errs = append(errs, d)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	if err := g.tell(g.err, errs); err != nil {
		return err
	}
	return errPlatform
}

// colour says whether to use colour: on a terminal that has it, and where
// nobody asked not to (https://no-color.org).
func colour(w io.Writer) bool {
	f, isFile := w.(*os.File)
	return isFile && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

func bold(s diag.Severity, text string) string {
	if s == diag.Error {
		return "\x1b[1;31m" + text + "\x1b[0m"
	}
	return "\x1b[1;33m" + text + "\x1b[0m"
}
