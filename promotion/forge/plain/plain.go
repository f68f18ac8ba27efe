// Package plain implements forge.Forge for a GitOps repository without a forge: on any git
// server, or on a disk without a network.
//
// Statuses are git notes of refs/notes/kalypso on their commits, a line of JSON each. Programs
// only add lines, so that git notes merge -s union joins the notes of two processes. `git notes
// --ref=kalypso show COMMIT` shows them. The commit of the notes that added a line determines its
// author and time. The author is the committer, who can be anybody. If the commit is signed, the
// author is the principal of the key in the policy's allowed signers.
//
// Approvals are annotated tags signed with SSH, kalypso/approve/ENVIRONMENT/DIGEST12; see
// Approvals. There are no change requests and no deployments.
package plain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

// Repository is the interface to the GitOps repository. Any number of goroutines may use
// it.
type Repository interface {
	// Refs returns the refs as they are now, by their full names. Tags are not peeled.
	Refs(ctx context.Context) (map[string]git.Hash, error)
	// Object returns an object that is reachable from a ref.
	Object(id git.Hash) (git.Object, error)
	// Push moves a ref from old to new, after the objects were added to the pack. If the ref does
	// not exist, old is the zero Hash. Push returns git.ErrLostRace if the ref is not at old.
	Push(ctx context.Context, ref string, old, new git.Hash, objects func(*git.PackWriter) error) error
}

// Options configure who writes statuses, and whose signatures are trusted.
type Options struct {
	// By is the committer of notes; its time is not used.
	By git.Signature
	// Signer signs the commits of notes; nil if they are not signed.
	Signer ssh.Signer
	// AllowedSigners is the policy's .kalypso/allowed_signers, in the format of
	// ssh-keygen(1). Without it no signature is trusted.
	AllowedSigners []byte
	// Now and Wait are the clock; nil for the real one.
	Now  func() time.Time
	Wait func(context.Context, time.Duration) error
}

// Forge is a repository without a forge.
type Forge struct {
	repository Repository
	o          Options
	signers    signers

	mu    sync.Mutex
	notes *notes           // with a cache
	held  *pendingStatuses // nil if statuses are pushed immediately
}

var _ forge.Forge = (*Forge)(nil)

// New returns a repository as a forge. The error is for invalid allowed signers: they must
// not look like an empty list.
func New(repository Repository, o Options) (*Forge, error) {
	signers, err := parseSigners(o.AllowedSigners)
	if err != nil {
		return nil, err
	}
	o.Now, o.Wait = httpclient.Clock(o.Now, o.Wait)
	f := &Forge{repository: repository, o: o, signers: signers}
	f.notes = readNotes(f)
	return f, nil
}

// Kind returns "none".
func (f *Forge) Kind() string { return "none" }

// Repository returns "": there are no pages.
func (f *Forge) Repository() string { return "" }

// Limits returns the zero Limits, because there are no limits.
func (f *Forge) Limits() forge.Limits { return forge.Limits{} }

// Viewer returns the author of new statuses. This is the principal of the signer's key if the key
// is allowed, or the committer as "Name <email>".
func (f *Forge) Viewer(context.Context) (string, error) { return f.viewer(f.o.Now()), nil }

func (f *Forge) viewer(at time.Time) string {
	if f.o.Signer != nil {
		if by, ok := f.signers.principal(f.o.Signer.PublicKey(), at); ok {
			return by
		}
	}
	// As it will be read: commits remove some characters from names.
	committer := f.o.By
	committer.When = at
	by, _, _ := parsePerson(committer.String())
	return by
}

// attempts is the number of times that a note is written after lost races.
const attempts = 5

// SetStatus implements forge.Forge. The error is git.ErrLostRace after five lost races.
func (f *Forge) SetStatus(ctx context.Context, commit git.Hash, s forge.Status) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.retry(ctx, func() error { return f.setStatus(ctx, commit, s) })
	if err != nil {
		return fmt.Errorf("set the status %s of %s: %w", s.Name, git.Short(commit), err)
	}
	return nil
}

// retry calls do, again after a lost race.
func (f *Forge) retry(ctx context.Context, do func() error) error {
	var err error
	for attempt := range attempts {
		if attempt > 0 {
			if err := f.o.Wait(ctx, 50*time.Millisecond<<attempt); err != nil {
				return err
			}
		}
		if err = do(); !errors.Is(err, git.ErrLostRace) {
			break
		}
	}
	return err
}

func unsupported(what string) error { return fmt.Errorf("%s: %w", what, forge.ErrUnsupported) }

// FindChange returns an ErrUnsupported, like all methods for change requests.
func (f *Forge) FindChange(context.Context, string, string) (*forge.Change, error) {
	return nil, unsupported("find a change request")
}

// SaveChange returns an ErrUnsupported.
func (f *Forge) SaveChange(context.Context, forge.ChangeSpec) (*forge.Change, error) {
	return nil, unsupported("open a change request")
}

// CloseChange returns an ErrUnsupported.
func (f *Forge) CloseChange(context.Context, int, string) error {
	return unsupported("close a change request")
}

// CancelMerge returns an ErrUnsupported.
func (f *Forge) CancelMerge(context.Context, int) error {
	return unsupported("keep a change request from being merged")
}

// Comment returns an ErrUnsupported.
func (f *Forge) Comment(context.Context, int, string) error {
	return unsupported("comment on a change request")
}

// Merge returns an ErrUnsupported.
func (f *Forge) Merge(context.Context, int, git.Hash, forge.MergeOptions) (forge.MergeState,
	error) {
	return "", unsupported("merge a change request")
}

// Reviews returns an ErrUnsupported: see Approvals.
func (f *Forge) Reviews(context.Context, int) (*forge.Reviews, error) {
	return nil, unsupported("read the reviews of a change request")
}

// Deploy returns an ErrUnsupported.
func (f *Forge) Deploy(context.Context, forge.Deployment) error {
	return unsupported("record a deployment")
}
