// Package remote reads and writes git repositories that others write to as well: on a server, or
// in a folder of this machine. The input is a URL, as git accepts it. The results are refs, a
// local repository with the fetched commits, and pushes. A push moves each ref from exactly the
// expected commit to exactly the wanted one, or not at all.
//
// # What is fetched
//
// A commit is fetched with all its trees. If the server supports filters, the content of files is
// fetched only when it is read. Fetched objects are kept, so that only new objects are requested
// the next time.
//
// # Connections and credentials
//
// The package reaches a server in the same way as git. It uses url.*.insteadOf and http.* of
// git's configuration, the proxies of the environment, ~/.netrc and git's credential helpers. For
// ssh it uses the keys, agent, configuration and known_hosts. Credentials go to the host that
// they are for, and to no host that it redirects to. No error and no process's arguments contain
// a password or token.
//
// # Trust
//
// Servers are not trusted. The package limits the size of their answers, and checks that every
// object has the id of its content. It ignores names of refs that git does not allow.
package remote

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/internal/address"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// Options configure the access to a repository.
type Options struct {
	// Store is a folder for fetched objects, with one bare repository for each URL. Any
	// number of processes may use it at once, and it stays intact when one is killed. "" is
	// a temporary folder, which Close removes.
	Store string
	// Backend is the implementation of git's protocol: "native" for this program, or "git" for
	// git's own command. With "", git's command is used only if this program cannot connect. That
	// is the case if the way to the server is through another host of ssh, or if only git has
	// credentials.
	Backend string
	// Whole fetches the content of files with their commit, for callers that read most of
	// them.
	Whole bool
	// Local refuses a repository that is not on this machine, with ErrNotLocal.
	Local bool
	// Pushing is called before anything is pushed, or nil.
	Pushing func()
	// Wait is the time before the first of three retries after a broken connection, doubled
	// each time; 0 for half a second.
	Wait time.Duration
	// Reach is which servers are connected to, as in httpclient.Options, and by a proxy of the
	// environment over ssh. With a reach that is Remote, the backend must be Native, since git's
	// own command resolves names itself, and a local repository must be one by the URL itself.
	Reach address.Reach
}

// The backends.
const (
	Native  = "native"
	Command = "git"
)

// Remote is a repository that others write to as well. Any number of goroutines may use it.
// Errors of its methods, unless documented otherwise, are *AuthError, *NotFoundError and
// *Error, or wrap the context's error.
type Remote struct {
	url     string // without credentials
	ctx     context.Context
	options Options
	backend backend
	store   *store
	secrets *httpclient.Secrets

	mu      sync.Mutex
	latest  *advertisement    // the last report of the server
	named   map[git.Hash]bool // the ids in refs since Open, except the ids that Push has moved away
	staging *git.Repository
	unstage func() error // removes the folder of staging

	queue batches
}

// backend implements git's protocol for one repository.
type backend interface {
	// advertised returns the refs of the server.
	advertised(ctx context.Context) (*advertisement, error)
	// get fetches objects into the store. It returns an errRefused if the server does not send
	// them. Another request may then succeed.
	get(ctx context.Context, s *store, w want) error
	// push applies the updates that are not done yet, and sends the packs with them.
	push(ctx context.Context, p *proposal) (*report, error)
}

// advertisement is a server's report about its refs. HEAD is not among them.
type advertisement struct {
	refs    map[string]git.Hash // annotated tags as they are
	peeled  map[string]git.Hash // the commits of annotated tags
	head    string              // the target of HEAD; "" if it is not known
	anyID   bool                // commits that no ref names can be requested
	ids     bool                // objects of any kind can be requested
	filter  bool                // the content of files can be left out
	shallow bool                // histories can be cut
	cut     []git.Hash          // commits at which the repository's own history is cut
}

// want is a request for objects and, for commits, everything that they refer to.
type want struct {
	ids   []git.Hash
	depth int  // how many commits of each history; 0 for all
	whole bool // with the content of files
	alone bool // as if the store were empty
}

// errRefused is that a server does not send the requested objects.
var errRefused = errors.New("the server refuses to give what was asked for")

// Open reads the refs of a repository, and thereby finds the protocol and the credentials
// for it. url is a URL (https, http, ssh, git or file), user@host:path as ssh writes it, or
// the absolute path of a folder. The repository may be empty. The context also ends the
// requests that the Remote makes on its own: for objects that are read and missing.
func Open(ctx context.Context, url string, o Options) (*Remote, error) {
	if o.Wait == 0 {
		o.Wait = 500 * time.Millisecond
	}
	r := &Remote{url: credential.Hide(url), ctx: ctx, options: o, secrets: &httpclient.Secrets{},
		named: map[git.Hash]bool{}, queue: batches{busy: make(chan struct{}, 1)}}
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

// Close releases all resources, and removes Staging and a temporary store. A closed Remote
// must not be used.
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

// Refs returns the current refs, by their full names. An annotated tag has its own id, and not
// the commit's. An empty repository has no refs.
func (r *Remote) Refs(ctx context.Context) (map[string]git.Hash, error) {
	latest, err := r.ask(ctx)
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	return maps.Clone(latest.refs), nil
}

// ask reads the refs, with retries.
func (r *Remote) ask(ctx context.Context) (*advertisement, error) {
	var latest *advertisement
	err := r.repeat(ctx, func() (err error) {
		latest, err = r.backend.advertised(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = latest
	for id := range latest.named() {
		r.named[id] = true
	}
	return latest, nil
}

// advertisement returns the last report of the server.
func (r *Remote) advertisement() *advertisement {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest
}

// Advertised returns the refs as the server reported them last, to Open or to Refs, and the
// commits of the annotated tags among them. Neither must be changed.
func (r *Remote) Advertised() (refs, peeled map[string]git.Hash) {
	latest := r.advertisement()
	return latest.refs, latest.peeled
}

// DefaultBranch returns the branch of HEAD when the refs were read last, without
// refs/heads/; "" if the server does not report it.
func (r *Remote) DefaultBranch() string { return branchOf(r.advertisement().head) }

// Objects returns the local repository with the fetched objects. An object that was left
// with the server is fetched when it is read. Nothing must be written to it.
func (r *Remote) Objects() *git.Repository { return r.store.objects }

// Staging returns a bare repository for new objects. It borrows from Objects, so that its
// own objects are the ones that the server may lack. Close removes it.
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

// repeat calls do, again after errors of connections.
func (r *Remote) repeat(ctx context.Context, do func() error) error {
	return httpclient.Repeat(ctx, httpclient.Retries, r.options.Wait, do)
}
