package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/address"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// An AuthError reports that a server needs credentials and gets none, or rejects the
// credentials.
type AuthError struct {
	Source  dependency.Source
	Problem string
	Hint    string // the remedy
}

func (e *AuthError) Error() string { return fmt.Sprintf("%s: %s", e.Source, e.Problem) }

// A NotFoundError is that the wanted revision does not exist.
type NotFoundError struct {
	Source  dependency.Source
	Problem string // such as "there is no branch main"
	// There are alternatives, the newest or the most likely first; at most twelve.
	There []string
}

func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("%s: %s", e.Source, e.Problem)
	if len(e.There) > 0 {
		text += "; there are: " + strings.Join(e.There, ", ")
	}
	return text
}

// A ChangedError is that a server has other content now under a pinned revision.
type ChangedError struct {
	Entry  dependency.Entry
	Actual dependency.Digest
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s: %s was %s when it was locked, and is %s now: somebody has replaced it",
		e.Entry.Source, e.Entry.Revision, e.Entry.Content, e.Actual)
}

// An Error is why a source cannot be fetched.
type Error struct {
	Source  dependency.Source
	Problem string
	Hint    string // the remedy
	Err     error  // nil if nothing else failed
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Source, e.Problem) }

func (e *Error) Unwrap() error { return e.Err }

// unauthorizedError is an error of an origin that becomes an *AuthError.
type unauthorizedError struct{ problem, hint string }

func (e *unauthorizedError) Error() string { return e.problem }

// missingError is an error of an origin that becomes a *NotFoundError.
type missingError struct {
	problem string
	there   []string
}

func (e *missingError) Error() string { return e.problem }

// errTooLong is the cause of a timeout.
var errTooLong = errors.New("it takes too long")

// failed returns an error for people: on one line, of a documented type, and without
// secrets. A timeout is the error, whatever it interrupted.
func (f *Fetcher) failed(ctx context.Context, s dependency.Source, err error) error {
	var who *unauthorizedError
	var what *missingError
	var auth *remote.AuthError
	var gone *remote.NotFoundError
	switch {
	case context.Cause(ctx) == errTooLong:
		problem := fmt.Sprintf("it takes longer than %s", f.timeout)
		return &Error{Source: s, Problem: problem, Hint: hintSlow, Err: ctx.Err()}
	case ctx.Err() != nil:
		return &Error{Source: s, Problem: "it was cancelled", Err: ctx.Err()}
	case errors.As(err, &who):
		return &AuthError{Source: s, Problem: f.secrets.Clean(who.problem),
			Hint: f.secrets.Clean(who.hint)}
	case errors.As(err, &auth):
		return &AuthError{Source: s, Problem: auth.Problem, Hint: auth.Hint}
	case errors.As(err, &gone):
		return &NotFoundError{Source: s, Problem: gone.Problem}
	case errors.As(err, &what):
		there := slices.Clone(what.there[:min(len(what.there), maxThere)])
		for i := range there {
			there[i] = f.secrets.Clean(there[i])
		}
		return &NotFoundError{Source: s, Problem: f.secrets.Clean(what.problem), There: there}
	}
	if known := (*remote.Error)(nil); errors.As(err, &known) {
		return &Error{Source: s, Problem: known.Problem, Hint: hintFor(err), Err: known}
	}
	return &Error{Source: s, Problem: f.secrets.Problem(err), Hint: hintFor(err),
		Err: f.secrets.CleanError(err)}
}

// untrustedError is an error about content that builds must not read.
type untrustedError struct{ error }

func (e untrustedError) Unwrap() error { return e.error }

// hintReach is the hint for a server that returns wrong content.
const hintReach = "correct the address, or see that this machine reaches it, and run `kalypso " +
	"lock` again; what is pinned and in the store builds without"

// hintSlow is the hint for a server that takes too long.
const hintSlow = "give it more time with --source-timeout, or see what keeps its server; " +
	"what is pinned and in the store builds without"

// hintFor returns the remedy of an error of an origin.
func hintFor(err error) string {
	switch {
	case errors.As(err, new(*httpclient.ProxyError)):
		return "correct $HTTPS_PROXY, $HTTP_PROXY or $NO_PROXY, or have the proxy let it through"
	case errors.As(err, new(*address.LocalError)):
		return "have it served by another host, or let the platform name it: in the registration, or " +
			"in a workload of its own"
	case errors.As(err, new(untrustedError)):
		return "have it corrected where it is kept, or ask for another version"
	}
	return hintReach
}

// maxThere is the largest number of alternatives in a *NotFoundError.
const maxThere = 12
