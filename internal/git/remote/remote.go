// Package remote reads and writes git repositories that others write to as well: on
// a server, or in a folder of this machine. What goes in is a URL, as git takes it;
// what comes out are refs, a repository on this machine with the commits that were
// asked for, and the promise of a push: each ref moves from exactly the commit that
// was seen to exactly the one that is wanted, or not at all.
//
// # What is fetched
//
// A commit comes with all its trees and, where the server can leave files out,
// without the content of files: that is fetched when it is read. What was fetched
// is kept, so that only what is new is asked for the next time.
//
// # Who is asked, and as whom
//
// A server is reached as git reaches it: with url.*.insteadOf and http.* of git's
// configuration, the proxies of the environment, ~/.netrc, git's credential helpers,
// and the keys, agent, configuration and known_hosts of ssh. Credentials go to the
// host that they are for, and to no host that it redirects to. No error and no
// process's arguments have a password or token.
//
// # Trust
//
// Servers are not trusted: what they send is bounded, and every object has the id of
// its content. A name of a ref that git does not allow is not passed on.
package remote

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// Options say how a repository is spoken with.
type Options struct {
	// Store is a folder that keeps what was fetched, one bare repository for each
	// URL. Any number of processes may use it at once, and one that is killed leaves
	// it whole. "" is a temporary folder, which Close removes.
	Store string
	// Backend is who speaks with the server: "native" for this program, "git" for
	// git's own command, and "" for git's only where this program cannot: through
	// another host of ssh, and where git alone gets credentials.
	Backend string
	// Whole fetches the content of files with their commit, for those who read most
	// of them.
	Whole bool
	// Local refuses a repository that is not on this machine, with ErrNotLocal.
	Local bool
	// Wait is how long to wait before the first of three repetitions of what a
	// connection that breaks is in the way of; 0 for half a second. Doubled each time.
	Wait time.Duration
}

// The backends.
const (
	Native  = "native"
	Command = "git"
)

// Remote is a repository that others write to as well. Any number of goroutines may
// use it. The errors of its methods, unless they say more, are *AuthError,
// *NotFoundError and *Error, or wrap the context's error.
type Remote struct {
	url     string // without credentials
	ctx     context.Context
	options Options
	wire    wire
	store   *store
	secrets *httpclient.Secrets

	mu      sync.Mutex
	told    *advertisement    // what the server said last
	named   map[git.Hash]bool // what refs have named since Open, but for what Push has moved
	staging *git.Repository
	unstage func() error // removes the folder of staging

	queue batches
}

// wire is how one backend speaks with a repository.
type wire interface {
	// advertised asks for the refs.
	advertised(ctx context.Context) (*advertisement, error)
	// get puts objects into the store. The error is an errRefused where the server
	// does not give them, which it may do for others, or asked in another way.
	get(ctx context.Context, s *store, w want) error
	// push asks for those updates that are not done yet, and sends the packs with them.
	push(ctx context.Context, p *proposal) (*report, error)
}

// advertisement is what a server says about its refs. HEAD is not among them.
type advertisement struct {
	refs    map[string]git.Hash // annotated tags as they are
	peeled  map[string]git.Hash // what annotated tags stand for
	head    string              // the ref that HEAD stands for; "" if it is not known
	anyID   bool                // commits that no ref names can be asked for
	ids     bool                // objects of any kind can be
	filter  bool                // the content of files can be left out
	shallow bool                // commits can be had without those before them
	cut     []git.Hash          // commits that the repository itself has without those before them
}

// want is a request for objects and, of commits, all that they refer to.
type want struct {
	ids   []git.Hash
	depth int  // how many commits of each history; 0 for all
	whole bool // with the content of files
	alone bool // as if there were nothing in the store
}

// errRefused is that a server gives nothing for what was asked for.
var errRefused = errors.New("the server refuses to give what was asked for")

// Open asks a repository for its refs, and finds out by that how it is spoken with.
// url is a URL (https, http, ssh, git or file), user@host:path as ssh writes it, or
// the absolute path of a folder. The repository may be empty. The context also ends
// what the Remote does on its own: bringing objects that are read and not there.
func Open(ctx context.Context, url string, o Options) (*Remote, error) {
	if o.Wait == 0 {
		o.Wait = 500 * time.Millisecond
	}
	r := &Remote{url: credential.Hide(url), ctx: ctx, options: o, secrets: &httpclient.Secrets{}, named: map[git.Hash]bool{}, queue: batches{busy: make(chan struct{}, 1)}}
	if err := r.open(ctx, url); err != nil {
		return nil, errors.Join(r.failed(ctx, err), r.Close())
	}
	return r, nil
}

func (r *Remote) open(ctx context.Context, url string) error {
	if err := r.connect(ctx, url); err != nil {
		return err
	}
	var err error
	if r.store, err = openStore(r.options.Store, r.url, r.options.Whole); err != nil {
		return err
	}
	r.store.objects.Missing = func(id git.Hash) error { return r.Prefetch(r.ctx, []git.Hash{id}) }
	return nil
}

// Close ends what the Remote has open, and removes Staging and a temporary store. A
// closed Remote must not be used.
func (r *Remote) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	if r.staging != nil {
		errs = append(errs, r.staging.Close(), r.unstage())
	}
	if r.store != nil {
		errs = append(errs, r.store.close())
	}
	r.staging, r.store = nil, nil
	return errors.Join(errs...)
}

// URL returns the repository's URL as it was given, without credentials.
func (r *Remote) URL() string { return r.url }

// Refs asks anew for the refs by their full names. An annotated tag has its own id,
// and not the commit's. An empty repository has none.
func (r *Remote) Refs(ctx context.Context) (map[string]git.Hash, error) {
	told, err := r.ask(ctx)
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	return maps.Clone(told.refs), nil
}

// ask asks for the refs.
func (r *Remote) ask(ctx context.Context) (*advertisement, error) {
	var told *advertisement
	err := r.repeat(ctx, func() (err error) {
		told, err = r.wire.advertised(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = told
	for id := range told.named() {
		r.named[id] = true
	}
	return told, nil
}

// advertisement is what the server said last.
func (r *Remote) advertisement() *advertisement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// Advertised returns the refs as the server named them last, to Open or to Refs, and
// of the annotated tags among them, what they stand for. Neither must be changed.
func (r *Remote) Advertised() (refs, peeled map[string]git.Hash) {
	told := r.advertisement()
	return told.refs, told.peeled
}

// DefaultBranch returns the branch that HEAD stood for when the server was asked
// last, without refs/heads/; "" where it does not say.
func (r *Remote) DefaultBranch() string { return branchOf(r.advertisement().head) }

// Objects returns the repository of this machine that has what was fetched. An
// object that was left with the server is fetched when it is read. Nothing must be
// written to it.
func (r *Remote) Objects() *git.Repository { return r.store.objects }

// Staging returns a bare repository for new objects. It borrows from Objects, so
// that what is written to it is what the server may lack. Close removes it.
func (r *Remote) Staging() (*git.Repository, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.staging != nil {
		return r.staging, nil
	}
	dir, remove, err := scratch.Dir("staging")
	if err != nil {
		return nil, err
	}
	staging, err := borrow(dir, filepath.Join(r.store.dir, "objects"), r.url)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	staging.Missing = r.store.objects.Missing
	r.staging, r.unstage = staging, remove
	return staging, nil
}

// repeat does something again that a connection which breaks is in the way of.
func (r *Remote) repeat(ctx context.Context, do func() error) error {
	return httpclient.Repeat(ctx, httpclient.Retries, r.options.Wait, do)
}
