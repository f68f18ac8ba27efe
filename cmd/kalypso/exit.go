package main

import (
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/fetch"
	"github.com/kalypso-io/kalypso/compiler/git/remote"
	"github.com/kalypso-io/kalypso/compiler/tree"
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
	exitLostRace   exitCode = 9 // another process moved the branch
)

// errPlatform says that the platform has errors, which are already told.
var errPlatform = errors.New("the platform has errors")

// errDifference says that a difference was found where one was asked for, which
// is already told.
var errDifference = errors.New("a difference was found")

// toldError is an error that is already told.
type toldError struct{ error }

func (e toldError) Unwrap() error { return e.error }

// usageError is a mistake in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func exitOf(err error) exitCode {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, tree.ErrLostRace):
		return exitLostRace
	case errors.As(err, new(*fetch.AuthError)), errors.As(err, new(*remote.AuthError)):
		return exitAuth
	case errors.Is(err, errDifference):
		return exitDifference
	case errors.Is(err, errPlatform):
		return exitPlatform
	}
	return exitFailure
}
