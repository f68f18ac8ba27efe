// Package fetch fetches the content of sources from servers: git repositories, chart
// repositories, OCI registries and registries of CUE modules. Builds do not use it, only
// `kalypso lock` and `kalypso vendor` do. Its input is a [dependency.Source], or a
// [dependency.Entry] that pins one. Its output is the content as a build reads it, or an
// error with a remedy.
//
// # The content of a source
//
// The content of a git repository is the files of the commit, as archive.Pack writes them.
// Submodules and files in Git LFS are refused paths in it. The content of a chart is its
// archive, and the content of an OCI artifact is its first layer that is an archive. Both
// are exactly as they are served. The content of a CUE module is its zip file.
//
// # Trust
//
// Servers are not trusted. Their answers are bounded, verified by the digests that they
// gave before, and read as a hostile archive before they are returned. Credentials are sent
// only to their own host, and to no host that it redirects to. No error contains a
// password, or a URL that a redirect may have signed.
//
// Sources of registrations are fetched [Fetcher.Within] a reach. Over HTTP, the address of
// each connection is checked, also if a redirect, the index of charts or a registry names
// the server. For ssh and git://, go-git connects, so the host is resolved and checked
// right before. If a name leads elsewhere a moment later, known_hosts detects that for ssh;
// nothing detects it for git://. If a proxy connects, the name of the server is checked.
//
// # Example
//
// The hello-world example fetches nothing, so this example is from the package's tests. A
// repository has the tags v1.2.0, v1.10.0 and 2.0.0-rc.1, among others. [Fetcher.Resolve] gets a
// [dependency.Source] of Kind Git with Semver ">=1.2 <2". It returns a [dependency.Entry] with the
// commit of v1.10.0 as its Revision. It also returns the archive of this commit, whose only file a
// has the text 2.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/address"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// Options configure a Fetcher.
type Options struct {
	// Timeout is the time that one source may take, with all its requests and retries, even
	// if its server sends steadily; 0 means [Timeout]. The context of a call may allow
	// less.
	Timeout time.Duration

	// wait is the wait before the first retry, 0 for half a second; doubled each time.
	wait time.Duration
	// limit bounds work in a context; nil means context.WithTimeoutCause.
	limit func(context.Context, time.Duration, error) (context.Context, context.CancelFunc)
}

// Timeout is the default for the time that one source may take.
const Timeout = time.Minute

// Fetcher fetches sources. It reads the branches and tags of a repository, and the index of
// a chart repository, once: all sources of one Fetcher see the same. Any number of
// goroutines may use it.
type Fetcher struct {
	timeout time.Duration
	limit   func(context.Context, time.Duration, error) (context.Context, context.CancelFunc)
	wait    time.Duration
	reach   address.Reach
	logins  *logins
	web     http.RoundTripper
	origins map[dependency.Kind]origin
	git     *repositories
	secrets *httpclient.Secrets
	within  *memo[*Fetcher] // by reach, without this one
}

// logins are the credentials of registries and chart repositories.
type logins struct {
	registry auth.CredentialFunc
	helm     []helmRepository
}

// origin fetches sources of one kind. Its errors may contain anything: the Fetcher cleans
// them.
type origin interface {
	// resolve returns the newest revision that matches a source, and its content.
	resolve(ctx context.Context, s dependency.Source) (revision string, data []byte, err error)
	// fetch returns the content of an entry, or the content that the server has instead.
	fetch(ctx context.Context, e dependency.Entry) ([]byte, error)
}

// New returns a Fetcher. It reads the configurations of docker, helm and CUE with
// credentials; the error is for an unreadable one.
func New(o Options) (*Fetcher, error) {
	f := &Fetcher{
		timeout: o.Timeout, limit: o.limit, wait: o.wait,
		secrets: &httpclient.Secrets{}, within: &memo[*Fetcher]{},
	}
	if f.timeout == 0 {
		f.timeout = Timeout
	}
	if f.limit == nil {
		f.limit = context.WithTimeoutCause
	}
	if f.wait == 0 {
		f.wait = 500 * time.Millisecond
	}
	registry, err := registryLogins()
	if err != nil {
		return nil, err
	}
	helm, err := readHelmRepositories()
	if err != nil {
		return nil, err
	}
	f.logins = &logins{registry, helm}
	f.connect()
	return f, nil
}

// connect makes the clients of all kinds of sources.
func (f *Fetcher) connect() {
	f.web = httpclient.Transport(f.patient())
	registries := newRegistries(f)
	f.git = &repositories{wait: f.wait, reach: f.reach}
	f.origins = map[dependency.Kind]origin{
		dependency.Git:    f.git,
		dependency.Chart:  newChartRepositories(f, registries),
		dependency.OCI:    registries,
		dependency.Module: &modules{fetcher: f},
	}
}

// patient returns the options of all transports.
func (f *Fetcher) patient() httpclient.Options {
	o := httpclient.Patient(f.wait)
	o.Reach = f.reach
	return o
}

// Within implements [dependency.Fetcher]. The Fetchers of different reaches do not share
// any result of a connection.
func (f *Fetcher) Within(reach address.Reach) dependency.Fetcher {
	if reach == f.reach {
		return f
	}
	key := fmt.Sprintf("%t %s", reach.Remote, reach.But)
	within, _ := f.within.get(key, func() (*Fetcher, error) {
		w := &Fetcher{
			timeout: f.timeout, limit: f.limit, wait: f.wait, reach: reach,
			logins: f.logins, secrets: f.secrets, within: f.within,
		}
		w.connect()
		return w, nil
	})
	return within
}

// Close removes the temporary copies of git repositories. A closed Fetcher must not be
// used.
func (f *Fetcher) Close() error {
	errs := []error{f.git.close()}
	for _, w := range f.within.all() {
		errs = append(errs, w.git.close())
	}
	return errors.Join(errs...)
}

// Resolve returns the newest content that matches a source, and the entry that pins it.
// Errors are *AuthError, *NotFoundError and *Error.
func (f *Fetcher) Resolve(ctx context.Context, s dependency.Source) (dependency.Entry, []byte,
	error) {
	var e dependency.Entry
	data, err := f.askOrigin(ctx, s, func(ctx context.Context, o origin) ([]byte, error) {
		revision, data, err := o.resolve(ctx, s)
		e = dependency.Entry{Source: s, Revision: revision, Content: dependency.DigestOf(data),
			Size: int64(len(data))}
		return data, err
	})
	if err != nil {
		return dependency.Entry{}, nil, err
	}
	return e, data, nil
}

// Fetch returns exactly the content that an entry pins. The error is a *ChangedError if the
// server now has other content, or one of the errors of [Fetcher.Resolve].
func (f *Fetcher) Fetch(ctx context.Context, e dependency.Entry) ([]byte, error) {
	data, err := f.askOrigin(ctx, e.Source,
		func(ctx context.Context, o origin) ([]byte, error) { return o.fetch(ctx, e) })
	if err != nil {
		return nil, err
	}
	if actual := dependency.DigestOf(data); actual != e.Content {
		return nil, &ChangedError{Entry: e, Actual: actual}
	}
	return data, nil
}

// askOrigin calls ask with the origin of a source, with retries, within the timeout. It checks
// that a build can read the content.
func (f *Fetcher) askOrigin(ctx context.Context, s dependency.Source,
	ask func(context.Context, origin) ([]byte, error)) ([]byte, error) {
	o, ok := f.origins[s.Kind]
	if !ok {
		return nil, &Error{Source: s,
			Problem: fmt.Sprintf("nothing fetches sources of the kind %q", s.Kind)}
	}
	ctx, cancel := f.limit(ctx, f.timeout, errTooLong)
	defer cancel()
	var data []byte
	err := f.repeat(ctx, func() (err error) {
		data, err = ask(ctx, o)
		return err
	})
	if err == nil {
		err = readable(s.Kind, data)
	}
	if err != nil {
		return nil, f.failed(ctx, s, err)
	}
	return data, nil
}

// readable returns an error for content that a build cannot read.
func readable(kind dependency.Kind, data []byte) error {
	if len(data) > dependency.MaxSize {
		return fmt.Errorf("the content has %d bytes, more than the %d that are kept", len(data),
			int64(dependency.MaxSize))
	}
	if kind == dependency.Module {
		return nil // CUE's own code reads it
	}
	if _, err := archive.Read(data); err != nil {
		return untrustedError{fmt.Errorf("the content is not to be trusted: %w", err)}
	}
	return nil
}

// memo keeps the result for each key after the first success. It computes only one value
// per key at a time.
type memo[V any] struct {
	mu    sync.Mutex
	slots map[string]*slot[V]
}

type slot[V any] struct {
	mu    sync.Mutex
	known bool
	value V
}

// all returns the kept values.
func (m *memo[V]) all() []V {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []V
	for _, s := range m.slots {
		if s.known {
			out = append(out, s.value)
		}
	}
	return out
}

func (m *memo[V]) get(key string, ask func() (V, error)) (V, error) {
	m.mu.Lock()
	if m.slots == nil {
		m.slots = map[string]*slot[V]{}
	}
	s, ok := m.slots[key]
	if !ok {
		s = &slot[V]{}
		m.slots[key] = s
	}
	m.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known {
		return s.value, nil
	}
	value, err := ask()
	if err == nil {
		s.value, s.known = value, true
	}
	return value, err
}
