package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/dependency/fetch"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/apiserver"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// diagnosticFormat is how diagnostics are written.
type diagnosticFormat struct {
	name  string
	write func(io.Writer, []diag.Diagnostic) error
}

// diagnosticFormats are the formats of diagnostics, the default first.
var diagnosticFormats = []diagnosticFormat{
	{"text", func(w io.Writer,
		ds []diag.Diagnostic) error {
		return diag.WriteText(w, ds, emphasis(w))
	}},
	{"json", diag.WriteJSON},
	{"github", diag.WriteGitHub},
	{"sarif", func(w io.Writer, ds []diag.Diagnostic) error {
		return diag.WriteSARIF(w, ds, compiler.Version().Version)
	}},
}

// diagnosticsFlag adds a flag with the format of diagnostics.
func (g *console) diagnosticsFlag(cmd *cobra.Command, flags *pflag.FlagSet, name, shorthand,
	usage string) {
	var names []string
	for _, f := range diagnosticFormats {
		names = append(names, f.name)
	}
	choiceFlag(cmd, flags, &g.diagnostics, name, shorthand, usage, names...)
}

// failOnFlag adds --fail-on, and returns a pointer to its value.
func failOnFlag(cmd *cobra.Command) *string {
	failOn := new(string)
	choiceFlag(cmd, cmd.Flags(), failOn, "fail-on", "",
		"exit with 3 for errors only, or for warnings as well",
		string(diag.Error), string(diag.Warning))
	return failOn
}

// failsOn reports whether diagnostics are as severe as the value of --fail-on.
func failsOn(failOn string, ds []diag.Diagnostic) bool {
	return diag.Errors(ds) || failOn == string(diag.Warning) && len(ds) > 0
}

// report writes diagnostics in the format of --diagnostics.
func (g *console) report(w io.Writer, ds []diag.Diagnostic) error {
	if g.diagnostics == "github" || g.diagnostics == "sarif" {
		ds = fromWorkingDirectory(g.dir, ds)
	}
	i := slices.IndexFunc(diagnosticFormats,
		func(f diagnosticFormat) bool { return f.name == g.diagnostics })
	return diagnosticFormats[i].write(w, ds)
}

// fromWorkingDirectory returns diagnostics of the platform around dir with paths from the working
// directory, not from the platform's root. GitHub looks for files in the repository, and its jobs
// run at the root of the repository. Diagnostics of written trees have such paths already.
func fromWorkingDirectory(dir string, ds []diag.Diagnostic) []diag.Diagnostic {
	prefix, err := toRoot(dir)
	if err != nil || prefix == "." {
		return ds
	}
	ds = slices.Clone(ds)
	for i, d := range ds {
		if strings.HasPrefix(string(d.Code), "K4") {
			continue
		}
		ds[i].Sites = slices.Clone(d.Sites)
		for j, s := range d.Sites {
			if !s.Position.IsZero() {
				ds[i].Sites[j].Position.File = path.Join(prefix, s.Position.File)
			}
		}
	}
	return ds
}

// toRoot returns the path, with slashes, from the working directory to the root
// of the platform that dir is in.
func toRoot(dir string) (string, error) {
	root, err := source.Root(dir)
	if err != nil {
		return "", err
	}
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(here, root)
	return filepath.ToSlash(rel), err
}

// reportErrors reports the errors of a platform after a result that is not about them. It returns
// errPlatform if there are some. It also reports that a platform has no environments, because the
// result is empty then.
func (g *platform) reportErrors(b *compiler.Build) error {
	ds := blocking(b.Diagnostics)
	if err := g.report(g.err, ds); err != nil {
		return err
	}
	if diag.Errors(ds) {
		return errPlatform
	}
	return nil
}

// blocking returns errors, and that there are no environments.
func blocking(ds []diag.Diagnostic) (out []diag.Diagnostic) {
	for _, d := range ds {
		if d.Severity == diag.Error || d.Code == diag.NoEnvironments {
			out = append(out, d)
		}
	}
	return out
}

// unready reports the files or environments that the platform lacks. It is for commands that do
// not compile the platform.
func (g *platform) unready(ctx context.Context, c *cache.Cache) error {
	_, ds, err := compiler.Declarations(ctx, g.request(nil, c))
	if err != nil {
		return err
	}
	return g.report(g.err, slices.DeleteFunc(ds,
		func(d diag.Diagnostic) bool { return d.Code != diag.Module && d.Code != diag.NoEnvironments }))
}

// emphasis returns a function that highlights text on a terminal with colour. It returns nil if w
// is not a terminal, or if the user has disabled colours (https://no-color.org).
func emphasis(w io.Writer) func(diag.Severity, string) string {
	if os.Getenv("NO_COLOR") != "" || sizeOf(w) == nil {
		return nil
	}
	return func(s diag.Severity, text string) string {
		if s == diag.Error {
			return "\x1b[1;31m" + text + "\x1b[0m"
		}
		return "\x1b[1;33m" + text + "\x1b[0m"
	}
}

// exitCode is the result of a command for its caller.
type exitCode int

// The exit codes, a stable interface: `kalypso help exit-codes`.
const (
	exitDone       exitCode = 0 // done, or there was nothing to do
	exitDifference exitCode = 1 // the command found a difference, and its purpose is to look for one
	exitFailure    exitCode = 2 // usage, I/O or internal error
	exitPlatform   exitCode = 3 // the platform has errors
	exitAuth       exitCode = 4 // a server requires other credentials
	exitBlocked    exitCode = 5 // a gate blocks a promotion
	exitPending    exitCode = 6 // a gate of a promotion is pending
	exitHeld       exitCode = 7 // a promotion is held or frozen
	// a forge, API server or hub does not answer, or has had enough requests
	exitForge    exitCode = 8
	exitLostRace exitCode = 9 // another process moved the branch
)

// errPlatform is the error for a platform with errors, which are already printed.
var errPlatform = errors.New("the platform has errors")

// The errors of a promotion that stops. The command has already printed the reason.
var (
	errBlocked = errors.New("a promotion is blocked")
	errPending = errors.New("a promotion is pending")
	errHeld    = errors.New("a promotion is held")
)

// errDifference is the error of a command that looks for differences and has found one. The
// command has already printed it.
var errDifference = errors.New("a difference was found")

// printedError is an error that is already printed.
type printedError struct{ error }

// Unwrap returns the error that was printed.
func (e printedError) Unwrap() error { return e.error }

// usageError is a mistake in the command line.
type usageError struct{ error }

// Unwrap returns the mistake in the use.
func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func exitOf(err error) exitCode {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, tree.ErrLostRace), errors.Is(err, plan.ErrMoved):
		return exitLostRace
	case errors.As(err, new(*fetch.AuthError)), errors.As(err, new(*remote.AuthError)),
		errors.As(err, new(*forge.AuthError)), errors.As(err, new(*apiserver.AuthError)), api.IsAuth(err):
		return exitAuth
	case errors.Is(err, errDifference):
		return exitDifference
	case errors.As(err, new(*forge.UnavailableError)),
		errors.As(err, new(*apiserver.UnavailableError)), api.IsUnavailable(err):
		return exitForge
	case errors.Is(err, errPlatform), diag.Errors(reasonsOf(err)):
		return exitPlatform
	case errors.Is(err, errBlocked):
		return exitBlocked
	case errors.Is(err, errHeld):
		return exitHeld
	case errors.Is(err, errPending):
		return exitPending
	}
	return exitFailure
}

// reasonsOf returns the diagnostics that explain why an environment with a name does not exist:
// the diagnostics of a platform that has no such environment.
func reasonsOf(err error) []diag.Diagnostic {
	if unknown := (*compiler.UnknownEnvironmentError)(nil); errors.As(err, &unknown) {
		return unknown.Diagnostics
	}
	if unknown := (*session.UnknownError)(nil); errors.As(err, &unknown) {
		return unknown.Diagnostics
	}
	return nil
}

// hintOf returns the steps that a user can take to solve an error. It returns "" if no steps are
// known.
func hintOf(err error) string {
	if wants := (*forge.AuthError)(nil); errors.As(err, &wants) {
		return wants.Hint
	}
	if wants := (*remote.AuthError)(nil); errors.As(err, &wants) {
		return wants.Hint
	}
	if wants := (*apiserver.AuthError)(nil); errors.As(err, &wants) {
		return wants.Hint
	}
	if api.IsAuth(err) {
		return "give a token of a role that may do that, in " + hubTokenEnv + " or in a file"
	}
	return ""
}
