// Package forge is what promotion needs of the servers that host git repositories,
// beside git itself: change requests with their reviews, commit statuses and
// deployments. Each kind of forge is a package of its own; without any, package
// plain keeps the statuses as git notes and takes signed tags for approvals.
//
// A forge is asked and told; it never decides. What it answers is checked by those
// who use it, and may say anything: texts are shown by web.Printable only.
package forge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/git"
)

// Forge is one repository on a forge. Any number of goroutines may use it. Every
// method repeats what a server asks to repeat, within bounds, and everything that
// it writes may be written again: a response that was lost changes nothing.
//
// Errors are, where they can be told: an *AuthError, an *UnavailableError,
// git.ErrLostRace, or ErrUnsupported.
type Forge interface {
	// Kind is the kind of forge, as in --forge: github, gitlab, gitea or none.
	Kind() string
	// Repository is the repository's web address, without credentials; "" for none.
	Repository() string
	// Limits says how long texts may be.
	Limits() Limits
	// Viewer is the name of who writes, as Status.By and Review.By have it; "" where
	// the forge does not say.
	Viewer(ctx context.Context) (string, error)

	// FindChange returns the change request that is open from one branch of the
	// repository to another; nil for none. Those of forks are not looked at.
	FindChange(ctx context.Context, head, base string) (*Change, error)
	// SaveChange opens the change request from Head to Base, or brings the open one
	// up to date: title, body, draft, labels and reviewers that it lacks. Labels and
	// reviewers that others added stay.
	SaveChange(ctx context.Context, spec ChangeSpec) (*Change, error)
	// CloseChange closes a change request with a comment. One that is closed or
	// merged stays as it is.
	CloseChange(ctx context.Context, number int, comment string) error
	// Comment adds a comment, unless the newest one of the viewer says the same.
	Comment(ctx context.Context, number int, text string) error
	// Merge merges a change request whose head is the commit, or asks the forge to do
	// so once its own rules allow it. The error is git.ErrLostRace where the head is
	// another one by now.
	Merge(ctx context.Context, number int, head git.Hash, o MergeOptions) (MergeState, error)
	// CancelMerge takes back what Merge has asked the forge to do by itself, whatever
	// the head was. One that waits for nothing stays as it is.
	CancelMerge(ctx context.Context, number int) error
	// Reviews returns the newest review of each reviewer of a change request, sorted
	// by reviewer, dismissed ones left out.
	Reviews(ctx context.Context, number int) (*Reviews, error)

	// Statuses returns all that was said of some commits, by commit, oldest first:
	// commit statuses and, where there are some, check runs. Commits that the forge
	// does not know have none.
	Statuses(ctx context.Context, commits []git.Hash) (map[git.Hash][]Status, error)
	// SetStatus says something of a commit. It is said once: where the newest status
	// of the viewer with that name has the same state and description, nothing is
	// written.
	SetStatus(ctx context.Context, commit git.Hash, s Status) error
	// Deploy records a deployment, a mirror for the forge's own pages. It does nothing
	// where the newest one of the environment says the same, and is an
	// ErrUnsupported where there are none.
	Deploy(ctx context.Context, d Deployment) error
}

// Limits are in characters; 0 is no limit.
type Limits struct {
	Title, Body, StatusDescription int
}

// Change is a change request: a pull request, or a merge request.
type Change struct {
	Number int
	URL    string // of its page
	Head   git.Hash
	Base   string // the branch
	Title  string
	Body   string
	Labels []string
	Author string
	Draft  bool
	State  ChangeState
	// Merged is the commit that merging made; zero unless State is ChangeMerged.
	Merged git.Hash
}

// ChangeState is what became of a change request.
type ChangeState string

// The states of a change request.
const (
	ChangeOpen   ChangeState = "open"
	ChangeMerged ChangeState = "merged"
	ChangeClosed ChangeState = "closed"
)

// ChangeSpec is a change request as it should be.
type ChangeSpec struct {
	Head, Base  string // branches of the repository
	Title, Body string // within Limits
	Labels      []string
	Reviewers   []string // users, and teams as ORGANISATION/TEAM
	Draft       bool
}

// MergeOptions say how to merge.
type MergeOptions struct {
	// Method is merge, squash or rebase; "" for the first of squash, merge and rebase
	// that the repository allows. All of them keep the head's tree, unless the base
	// has moved, and then the forge must refuse.
	Method  string
	Title   string
	Message string // with the trailers
	// WhenAllowed lets the forge merge by itself when its rules allow it, where it can.
	WhenAllowed bool
}

// MergeState is what became of a Merge.
type MergeState string

// The results of Merge.
const (
	MergeDone    MergeState = "merged"
	MergeWaiting MergeState = "waiting" // the forge merges when its rules allow it
	// MergeRefused is that the forge's rules do not allow it yet, and that it cannot
	// wait for that itself.
	MergeRefused MergeState = "refused"
)

// Reviews are what people said of a change request.
type Reviews struct {
	Reviews []Review
	// Required reports whether the forge's own rules, of protected branches and code
	// owners, want something that is not there yet; Unknown where it does not tell.
	Required Requirement
}

// Requirement is whether the forge's rules are satisfied.
type Requirement string

// Whether a forge's rules for reviews are satisfied.
const (
	Unknown     Requirement = ""
	Satisfied   Requirement = "satisfied"
	Unsatisfied Requirement = "unsatisfied"
)

// Review is the newest word of a reviewer.
type Review struct {
	By       string
	Approved bool // else changes are requested
	// Commit is the head that was looked at; zero where the forge does not say.
	// Approvals of another head than the present one are stale.
	Commit git.Hash
	At     time.Time
}

// ByReviewer returns reviews sorted by reviewer.
func ByReviewer(reviews map[string]Review) []Review {
	return slices.SortedFunc(maps.Values(reviews), func(a, b Review) int { return strings.Compare(a.By, b.By) })
}

// State is the state of a status.
type State string

// The states of a status.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// Status is what somebody said of a commit.
type Status struct {
	Name        string // "context" in the APIs of most forges
	State       State
	Description string // within Limits, one line
	URL         string
	// By is who said it: a user's name, or an app's with [bot] behind it. At is when,
	// by the forge's clock. SetStatus does not read them.
	By string
	At time.Time
}

// Deployment is what runs where, for the forge's pages.
type Deployment struct {
	Environment string // and ring, as environment/ring
	Commit      git.Hash
	State       State // Pending is in progress
	Description string
	URL         string
	Production  bool
	Payload     map[string]string
}

// ErrUnsupported says that a forge has no such thing.
var ErrUnsupported = errors.New("the forge does not support it")

// AuthError says that a forge wants other credentials, or more rights.
type AuthError struct {
	Host    string
	Problem string // what was to be done, and what the forge says
	Hint    string // a way out
}

func (e *AuthError) Error() string { return fmt.Sprintf("%s: %s", e.Host, e.Problem) }

// UnavailableError says that a forge does not answer, or not any more for some
// time.
type UnavailableError struct {
	Host  string
	Until time.Time // the zero Time where the forge does not say
	Err   error
}

func (e *UnavailableError) Error() string {
	if e.Until.IsZero() {
		return fmt.Sprintf("%s does not answer: %v", e.Host, e.Err)
	}
	return fmt.Sprintf("%s has had enough requests; again after %s", e.Host, e.Until.UTC().Format(time.RFC3339))
}

func (e *UnavailableError) Unwrap() error { return e.Err }
