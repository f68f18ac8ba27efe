// Package forge is the interface to the servers that host git repositories, beyond git
// itself: change requests with their reviews, commit statuses and deployments. Each kind of
// forge is a package of its own; without any, package plain keeps statuses as git notes and
// reads approvals from signed tags.
//
// A forge stores and reports; it never decides. Callers verify its answers, which may
// contain anything: texts are printed with terminal.Line only.
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

// Forge is one repository on a forge. Any number of goroutines may use it. If a server requests a
// retry, each method repeats its request within bounds. Every write is idempotent: after a lost
// response, another call does not change anything.
//
// If an error can be classified, it is an *AuthError, an *UnavailableError, git.ErrLostRace,
// ErrUnsupported or ErrUnknownCommit.
type Forge interface {
	// Kind is the kind of forge, as in --forge: github, gitlab, gitea or none.
	Kind() string
	// Repository is the repository's web address, without credentials; "" if it has no address.
	Repository() string
	// Limits returns the maximal lengths of texts.
	Limits() Limits
	// Viewer returns the name of the authenticated user, as in Status.By and Review.By; "" if the
	// forge does not report it.
	Viewer(ctx context.Context) (string, error)

	// FindChange returns the open change request from one branch of the repository to another. It
	// returns nil if there is no such request. It ignores requests of forks.
	FindChange(ctx context.Context, head, base string) (*Change, error)
	// SaveChange opens the change request from Head to Base, or updates the open one:
	// title, body, draft, and the missing labels and reviewers. Labels and reviewers that
	// others added stay.
	SaveChange(ctx context.Context, spec ChangeSpec) (*Change, error)
	// CloseChange closes a change request with a comment. One that is closed or
	// merged stays as it is.
	CloseChange(ctx context.Context, number int, comment string) error
	// Comment adds a comment, unless the newest one of the viewer has the same text.
	Comment(ctx context.Context, number int, text string) error
	// Merge merges a change request whose head is the commit, or lets the forge do so when its own
	// rules allow it. It returns git.ErrLostRace if the head is another commit.
	Merge(ctx context.Context, number int, head git.Hash, o MergeOptions) (MergeState, error)
	// CancelMerge cancels a merge that the forge has scheduled, whatever its head is. If no merge
	// is scheduled, it returns nil.
	CancelMerge(ctx context.Context, number int) error
	// Reviews returns the newest review of each reviewer of a change request, sorted by
	// reviewer, without dismissed ones.
	Reviews(ctx context.Context, number int) (*Reviews, error)

	// Statuses returns all statuses of some commits, by commit, oldest first. They include commit
	// statuses and check runs, if the forge has them. Commits that the forge does not know have no
	// statuses.
	Statuses(ctx context.Context, commits []git.Hash) (map[git.Hash][]Status, error)
	// SetStatus sets a status of a commit. It writes nothing if the viewer's newest status with
	// that name has the same state and description. It returns an ErrUnknownCommit if the forge
	// reports that it has no such commit.
	SetStatus(ctx context.Context, commit git.Hash, s Status) error
	// Deploy records a deployment for the forge's own pages. It writes nothing if the newest
	// deployment of the environment is the same. It returns an ErrUnsupported if the forge has no
	// deployments.
	Deploy(ctx context.Context, d Deployment) error
}

// Commenter is a Forge that keeps one comment on a change request up to date.
type Commenter interface {
	// ChangeOf returns the merged change request that added a commit to a branch. It returns nil
	// if no change request did.
	ChangeOf(ctx context.Context, commit git.Hash, base string) (*Change, error)
	// SaveComment sets the text of the viewer's first comment that begins with a mark, or adds a
	// comment. The text must begin with the mark, too. SaveComment writes nothing if the comment
	// has the text already.
	SaveComment(ctx context.Context, number int, mark, text string) error
}

// Limits are numbers of characters. 0 means that there is no limit.
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

// ChangeState is the state of a change request.
type ChangeState string

// The states of a change request.
const (
	ChangeOpen   ChangeState = "open"
	ChangeMerged ChangeState = "merged"
	ChangeClosed ChangeState = "closed"
)

// ChangeSpec is the wanted state of a change request.
type ChangeSpec struct {
	Head, Base  string // branches of the repository
	Title, Body string // within Limits
	Labels      []string
	Reviewers   []string // users, and teams as ORGANISATION/TEAM
	Draft       bool
}

// MergeOptions configure a merge.
type MergeOptions struct {
	// Method is merge, squash or rebase; "" for the first of squash, merge and rebase that
	// the repository allows. All of them keep the head's tree, unless the base has moved:
	// then the forge must refuse.
	Method  string
	Title   string
	Message string // with the trailers
	// WhenAllowed lets the forge merge by itself when its rules allow it, if it supports that.
	WhenAllowed bool
}

// MergeState is the result of Merge.
type MergeState string

// The results of Merge.
const (
	MergeDone    MergeState = "merged"
	MergeWaiting MergeState = "waiting" // the forge will merge when its rules allow it
	// MergeRefused is that the forge's rules do not allow the merge yet, and that it cannot
	// wait by itself.
	MergeRefused MergeState = "refused"
)

// Reviews are the reviews of a change request.
type Reviews struct {
	Reviews []Review
	// Required reports whether the forge's own rules, of protected branches and code owners, are
	// satisfied. It is Unknown if the forge does not report that.
	Required Requirement
}

// Requirement is the result of the forge's rules for reviews.
type Requirement string

// Whether a forge's rules for reviews are satisfied.
const (
	Unknown     Requirement = ""
	Satisfied   Requirement = "satisfied"
	Unsatisfied Requirement = "unsatisfied"
)

// Review is the newest review of a reviewer.
type Review struct {
	By       string
	Approved bool // else changes are requested
	// Commit is the reviewed head; zero if the forge does not report it. If it is not the present
	// head, the approval is stale.
	Commit git.Hash
	At     time.Time
}

// ByReviewer returns reviews sorted by reviewer.
func ByReviewer(reviews map[string]Review) []Review {
	return slices.SortedFunc(maps.Values(reviews),
		func(a, b Review) int { return strings.Compare(a.By, b.By) })
}

// State is the state of a status.
type State string

// The states of a status.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// Status is a status of a commit.
type Status struct {
	Name        string // "context" in the APIs of most forges
	State       State
	Description string // within Limits, one line
	URL         string
	// By is the author of the status: a user's name, or an app's with the suffix [bot]. At is its
	// time, by the forge's clock. SetStatus does not read them.
	By string
	At time.Time
}

// Newest returns the newest status with a name and by an author for which by holds. It returns
// nil if there is no such status. The statuses are sorted as Statuses sorts them.
func Newest(statuses []Status, name string, by func(author string) bool) *Status {
	for _, s := range slices.Backward(statuses) {
		if s.Name == name && by(s.By) {
			return &s
		}
	}
	return nil
}

// Same reports whether there is a status, and it has the state and the description of another.
func (s *Status) Same(other Status) bool {
	return s != nil && s.State == other.State && s.Description == other.Description
}

// Deployment is a deployment for the forge's pages.
type Deployment struct {
	Environment string // and ring, as environment/ring
	Commit      git.Hash
	State       State // Pending is in progress
	Description string
	URL         string
	Production  bool
	Payload     map[string]string
}

// ErrUnsupported is that a forge has no such feature.
var ErrUnsupported = errors.New("the forge does not support it")

// ErrUnknownCommit is that a forge has no such commit, or has it no more.
var ErrUnknownCommit = errors.New("the forge does not have the commit")

// AuthError is the error if a forge requires other credentials, or more permissions.
type AuthError struct {
	Host    string
	Problem string // the operation, and the answer of the forge
	Hint    string // the steps that the user can take
}

func (e *AuthError) Error() string { return fmt.Sprintf("%s: %s", e.Host, e.Problem) }

// UnavailableError is that a forge does not answer, or not again before some time.
type UnavailableError struct {
	Host  string
	Until time.Time // the zero Time if the forge does not report it
	Err   error
}

func (e *UnavailableError) Error() string {
	if e.Until.IsZero() {
		return fmt.Sprintf("%s does not answer: %v", e.Host, e.Err)
	}
	return fmt.Sprintf("%s has had enough requests; again after %s", e.Host,
		e.Until.UTC().Format(time.RFC3339))
}

func (e *UnavailableError) Unwrap() error { return e.Err }
