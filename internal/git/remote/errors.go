package remote

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/kalypso-io/kalypso/internal/git"
)

// An AuthError is the error if a server requires credentials and gets none, or rejects the
// credentials that it gets.
type AuthError struct {
	URL     string
	Problem string
	Hint    string // the remedy
}

func (e *AuthError) Error() string { return e.URL + ": " + e.Problem }

// A NotFoundError is that a repository or a commit does not exist.
type NotFoundError struct {
	URL     string
	Problem string
}

func (e *NotFoundError) Error() string { return e.URL + ": " + e.Problem }

// A ShallowError is that a repository, which may be a clone, lacks a commit because its
// history was cut.
type ShallowError struct {
	URL    string
	Commit git.Hash
}

func (e *ShallowError) Error() string {
	return fmt.Sprintf("%s: its history is shallow, and commit %s is before it begins: `git fetch "+
		"--unshallow` gets the rest, and in CI `fetch-depth: 0` or `GIT_DEPTH: 0`", e.URL,
		git.Short(e.Commit))
}

// An Error is the reason why a repository cannot be used. Helpful retries were already made.
type Error struct {
	URL     string
	Problem string
	Err     error // nil if nothing else failed
}

func (e *Error) Error() string { return e.URL + ": " + e.Problem }

func (e *Error) Unwrap() error { return e.Err }

// A RejectedError is that the server does not let a ref be changed: it is protected, or a
// hook declines.
type RejectedError struct {
	URL    string
	Ref    string
	Reason string // the server's own text, as one line
}

func (e *RejectedError) Error() string {
	return fmt.Sprintf("%s does not let %s be changed: %s", e.URL, e.Ref, e.Reason)
}

// ErrNotLocal is that a repository is not on this machine.
var ErrNotLocal = errors.New("it is not on this machine")

// ErrNoAtomic is the error of Push if the server cannot change several refs at once.
// Nothing was sent then.
var ErrNoAtomic = errors.New(
	"the server cannot change several refs as one (it lacks the capability atomic)")

// lostRace is that another process changed refs. detail is the server's text.
type lostRace struct{ url, detail string }

func (e *lostRace) Error() string {
	text := e.url + ": " + git.ErrLostRace.Error()
	if e.detail != "" {
		text += ": " + e.detail
	}
	return text
}

func (e *lostRace) Unwrap() error { return git.ErrLostRace }

// failed returns an error for people: of a documented type, on one line, with the
// repository's URL and without secrets.
func (r *Remote) failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var who *AuthError
	var what *NotFoundError
	var cut *ShallowError
	var no *RejectedError
	var race *lostRace
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", r.url, context.Cause(ctx))
	case errors.As(err, &who):
		return &AuthError{r.url, r.secrets.Clean(who.Problem), r.secrets.Clean(who.Hint)}
	case errors.As(err, &what):
		return &NotFoundError{r.url, r.secrets.Clean(what.Problem)}
	case errors.As(err, &cut):
		return &ShallowError{r.url, cut.Commit}
	case errors.As(err, &no):
		return &RejectedError{r.url, r.secrets.Clean(no.Ref), r.secrets.Clean(no.Reason)}
	case errors.As(err, &race):
		return &lostRace{r.url, r.secrets.Clean(race.detail)}
	case errors.Is(err, ErrNoAtomic):
		return fmt.Errorf("%s: %w", r.url, ErrNoAtomic)
	}
	if known := (*Error)(nil); errors.As(err, &known) {
		return &Error{r.url, r.secrets.Clean(known.Problem), known.Err}
	}
	if of := foreign.FindStringSubmatch(err.Error()); of != nil {
		return &Error{r.url, "it belongs to another user, and git does not read it then: if you trust " +
			"that user, `git config --global --add safe.directory '" + of[1] + "'` lets the user that " +
			"runs this program read it", r.secrets.CleanError(err)}
	}
	return &Error{r.url, r.secrets.Problem(err), r.secrets.CleanError(err)}
}

// foreign is git's message about a repository on this machine that another user owns.
var foreign = regexp.MustCompile(`detected dubious ownership in repository at '([^'\n]+)'`)

// branchOf returns the name of a branch; "" for another ref.
func branchOf(ref string) string {
	if name, ok := strings.CutPrefix(ref, branches); ok {
		return name
	}
	return ""
}

const (
	branches = "refs/heads/"
	tags     = "refs/tags/"
)
