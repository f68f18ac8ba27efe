package main

import (
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/dependency/fetch"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/apiserver"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/plan"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// exitCode is what a command says to its caller.
type exitCode int

// The exit codes, a stable interface: `kalypso help exit-codes`.
const (
	exitDone       exitCode = 0 // done, also when there was nothing to do
	exitDifference exitCode = 1 // a difference was found where one was asked for
	exitFailure    exitCode = 2 // usage, I/O or internal error
	exitPlatform   exitCode = 3 // the platform has errors
	exitAuth       exitCode = 4 // a server wants other credentials
	exitBlocked    exitCode = 5 // a gate blocks a promotion
	exitPending    exitCode = 6 // a gate of a promotion is pending
	exitHeld       exitCode = 7 // a promotion is held or frozen
	exitForge      exitCode = 8 // a forge, API server or hub does not answer, or has had enough requests
	exitLostRace   exitCode = 9 // another process moved the branch
)

// errPlatform says that the platform has errors, which are already printed.
var errPlatform = errors.New("the platform has errors")

// What stops a promotion, which is already printed.
var (
	errBlocked = errors.New("a promotion is blocked")
	errPending = errors.New("a promotion is pending")
	errHeld    = errors.New("a promotion is held")
)

// errDifference says that a difference was found where one was asked for, which
// is already printed.
var errDifference = errors.New("a difference was found")

// isTold says whether an error is only an exit code: what stops a promotion is in its
// result.
func isTold(err error) bool { return err == errBlocked || err == errPending || err == errHeld }

// printedError is an error that is already printed.
type printedError struct{ error }

// Unwrap returns the error that was printed.
func (e printedError) Unwrap() error { return e.error }

// usageError is a mistake in the command line.
type usageError struct{ error }

// Unwrap returns what is wrong with the use.
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

// reasonsOf returns the diagnostics that say why an environment of a name is not there: those
// of a platform that has none.
func reasonsOf(err error) []diag.Diagnostic {
	if unknown := (*compiler.UnknownEnvironmentError)(nil); errors.As(err, &unknown) {
		return unknown.Diagnostics
	}
	if unknown := (*session.UnknownError)(nil); errors.As(err, &unknown) {
		return unknown.Diagnostics
	}
	return nil
}

// hintOf is what the user can do about an error; "" where nobody knows.
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
