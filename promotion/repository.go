package promotion

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/git/remote"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/plain"
)

// opener opens repositories, each once, and keeps them.
type opener struct {
	request  *Request
	now      time.Time
	known    map[string]*repository // by URL
	opened   map[string]*opened     // by URL: those that are not known yet
	unopened map[string]error       // by URL: why those cannot be
	// allowedSigners say whose signatures count; nil before the platform was read.
	allowedSigners []byte
}

// close releases the repositories.
func (o *opener) close() error {
	var errs []error
	for _, r := range o.known {
		errs = append(errs, r.close())
	}
	for _, other := range o.opened {
		if other.remote != nil {
			errs = append(errs, other.remote.Close())
		}
	}
	return errors.Join(errs...)
}

// opened is a repository that was asked for its refs.
type opened struct {
	remote *remote.Remote
	err    error
}

// openRemotes opens the repositories of all environments, beside each other.
func (o *opener) openRemotes(ctx context.Context, stages []evaluate.Stage) {
	o.opened = map[string]*opened{}
	var all sync.WaitGroup
	limit := make(chan struct{}, mostAtOnce)
	for i := range stages {
		g := stages[i].GitOps
		if g == nil || g.Repo == "" || o.known[g.Repo] != nil || o.opened[g.Repo] != nil {
			continue
		}
		to := &opened{}
		o.opened[g.Repo] = to
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			to.remote, to.err = o.request.Remote(ctx, g.Repo)
		})
	}
	all.Wait()
}

// mostAtOnce is how many repositories are asked at once.
const mostAtOnce = 8

// openRemote opens a repository, or returns what openRemotes got.
func (o *opener) openRemote(ctx context.Context, url string) (*remote.Remote, error) {
	if by := o.opened[url]; by != nil {
		delete(o.opened, url)
		return by.remote, by.err
	}
	return o.request.Remote(ctx, url)
}

// repository is a git repository with what it is hosted on.
type repository struct {
	gitRepository
	forge forge.Forge
	plain bool // nothing but git
	// notes are where statuses and approvals are kept where there is no forge.
	notes *notes
	// statuses is the ledger; nil before it is asked for.
	statuses *ledger
	// elsewhere is a ledger in git notes, for what is said of commits of a platform that
	// is on no forge; nil for none.
	elsewhere *ledger
}

// repository opens a repository, once for each URL.
func (o *opener) repository(ctx context.Context, url string) (*repository, error) {
	if known := o.known[url]; known != nil {
		return known, nil
	}
	if err := o.unopened[url]; err != nil {
		return nil, err
	}
	r, err := o.openRepository(ctx, url)
	if err != nil {
		o.unopened[url] = err
		return nil, errors.Join(err, r.close())
	}
	o.known[url] = r
	return r, nil
}

// openRepository opens a repository; what it returns is to be closed, also with an error.
func (o *opener) openRepository(ctx context.Context, url string) (r *repository, err error) {
	r = &repository{}
	if r.remote, err = o.openRemote(ctx, url); err != nil {
		return r, err
	}
	r.url = r.remote.URL()
	told, _ := r.remote.Advertised() // it has just been opened
	r.refs = maps.Clone(told)
	if r.staging, err = r.remote.Staging(); err != nil {
		return r, err
	}
	if r.forge, err = o.request.Forge(ctx, url); err != nil {
		return r, err
	}
	if r.forge == nil {
		r.plain = true
		r.forge, err = o.plainForge(r)
	}
	return r, err
}

func (r *repository) close() error {
	var errs []error
	if r.staging != nil {
		errs = append(errs, r.staging.Close())
	}
	if r.remote != nil {
		errs = append(errs, r.remote.Close())
	}
	return errors.Join(errs...)
}

// branchRef is the full name of a branch.
func branchRef(branch string) string { return "refs/heads/" + branch }

// defaultBranch is the branch that a repository begins with.
func (r *repository) defaultBranch() string { return cmp.Or(r.remote.DefaultBranch(), "main") }

// plainForge keeps what forges keep in the repository itself.
func (o *opener) plainForge(r *repository) (*plain.Forge, error) {
	options := plain.Options{By: o.request.author(o.now).Signature, Now: o.request.Now, AllowedSigners: o.allowedSigners}
	if o.request.Signer != nil {
		options.Signer = o.request.Signer.SSH
	}
	if r.notes == nil {
		r.notes = &notes{of: &r.gitRepository, refs: maps.Clone(r.refs)}
	}
	return plain.New(r.notes, options)
}

func (r *repository) ledger() *ledger {
	if r.statuses == nil {
		r.statuses = newLedger(r.forge)
	}
	return r.statuses
}

// statusesOf returns the statuses of a base commit, wherever they are kept.
func (r *repository) statusesOf(ctx context.Context, ledger *ledger, commit git.Hash) ([]forge.Status, error) {
	if r.plain {
		return ledger.of(ctx, commit)
	}
	return r.ledger().of(ctx, commit)
}
