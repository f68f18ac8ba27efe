package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/file"
	daemon "github.com/go-git/go-git/v5/plumbing/transport/git"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/kalypso-io/kalypso/internal/address"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// server is the address of a repository, with the transport and the credentials for it.
type server struct {
	endpoint  *transport.Endpoint
	transport transport.Transport
	reach     address.Reach
	// logins find the user's credentials for a host of HTTP, which are tried if auth is not
	// accepted.
	logins []func(context.Context) (login, bool)

	mu   sync.Mutex
	auth transport.AuthMethod // may be nil
}

func (s *server) credentials() transport.AuthMethod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.auth
}

func (s *server) use(auth transport.AuthMethod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.auth = auth
}

// How many bytes of a pack and of a list of refs are read at most.
const (
	maxPack = 1 << 30
	maxRefs = 64 << 20
)

// connect chooses the backend for the repository, and reads its refs.
func (r *Remote) connect(ctx context.Context, url string) error {
	if filepath.IsAbs(url) {
		url = "file://" + filepath.ToSlash(url)
	} else if credential.HasQuery(url) || strings.Contains(url, "#") {
		return errors.New(
			"the URL of a git repository has no query and no fragment: credentials are git's, by host")
	}
	if r.options.Local {
		if is := effectiveURL(ctx, url); !strings.HasPrefix(is, "file://") && !filepath.IsAbs(is) {
			return ErrNotLocal
		}
	}
	if r.options.Backend == Command {
		return r.connectCommand(ctx, url)
	}
	err := r.connectNative(ctx, url)
	_, noGit := exec.LookPath("git")
	if err == nil || r.options.Backend == Native || noGit != nil {
		return err
	}
	if errors.As(err, new(*unsupportedError)) {
		return r.connectCommand(ctx, url)
	}
	if r.gitMaySignIn(err) && r.connectCommand(ctx, url) == nil {
		return nil
	}
	return err
}

// gitMaySignIn reports whether git's own command may have credentials for a server, other than a
// user and a password.
func (r *Remote) gitMaySignIn(err error) bool {
	_, noGit := exec.LookPath("git")
	return errors.As(err, new(*noLogin)) && r.options.Backend == "" && noGit == nil && !netrcForAll()
}

func (r *Remote) connectNative(ctx context.Context, url string) error {
	is := effectiveURL(ctx, url)
	endpoint, err := parse(is)
	if err != nil {
		return err
	}
	reach, err := reachOf(r.options.Reach, url, is)
	if err != nil {
		return err
	}
	s := &server{endpoint: endpoint, reach: reach}
	n := &native{server: s}
	r.backend = n
	switch endpoint.Protocol {
	case "http", "https":
		return r.connectHTTP(ctx, n)
	case "ssh":
		auth, err := newSSHAuth(ctx, endpoint)
		if err != nil {
			return err
		}
		s.transport, s.auth = gitssh.NewClient(nil), auth
		endpoint.Proxy.URL = sshProxy(reach)
	case "git":
		s.transport = daemon.DefaultClient
	case "file":
		if _, err := exec.LookPath("git"); err != nil {
			return errors.New("repositories on this machine are read by git, which is not installed")
		}
		s.transport = file.DefaultClient
	}
	_, err = r.ask(ctx)
	return err
}

// connectHTTP reads the refs, without credentials if that is possible, as git does.
func (r *Remote) connectHTTP(ctx context.Context, n *native) error {
	s := n.server
	inURL := login{s.endpoint.User, s.endpoint.Password}
	s.endpoint.User, s.endpoint.Password = "", ""
	settings := readSettings(ctx, s.endpoint)
	// go-git follows a redirect of the first request only, and sends no credentials to
	// another host.
	options := httpclient.Patient(r.options.Wait)
	options.Repeat, options.Body, options.Reach = repeatable, maxBody, s.reach
	s.transport = githttp.NewClientWithOptions(&http.Client{Transport: settings.Transport(options)},
		&githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects})
	if settings.header != "" {
		r.secrets.Add(settings.header[strings.LastIndexAny(settings.header, ": ")+1:])
		s.auth = headerAuth(settings.header)
	}
	for _, ask := range []func(context.Context) (login, bool){
		func(context.Context) (login, bool) { return inURL, inURL.password != "" },
		func(context.Context) (login, bool) { return netrcLogin(s.endpoint.Host, inURL.username) },
		func(ctx context.Context) (login, bool) { return gitLogin(ctx, s.endpoint, inURL.username) },
	} {
		s.logins = append(s.logins, func(ctx context.Context) (login, bool) {
			l, ok := ask(ctx)
			r.secrets.Add(l.password)
			return l, ok
		})
	}
	return s.signIn(ctx, func() error { _, err := r.ask(ctx); return err })
}

// signIn calls do, and again with each of the credentials that the user has for the host until
// the server accepts one. A server may let everybody read, and want credentials for a push alone.
func (s *server) signIn(ctx context.Context, do func() error) error {
	err := do()
	if !wantsAuth(err) || s.logins == nil {
		return err
	}
	before := s.credentials()
	had := before != nil
	for _, ask := range s.logins {
		l, ok := ask(ctx)
		if !ok {
			continue
		}
		had = true
		s.use(&githttp.BasicAuth{Username: l.username, Password: l.password})
		if err = do(); !errors.As(err, new(*AuthError)) {
			return err
		}
	}
	s.use(before)
	if had {
		return err
	}
	return &noLogin{&AuthError{
		Problem: fmt.Sprintf("%s wants credentials, and git has none for it", s.endpoint.Host),
		Hint: "kalypso asks ~/.netrc and git's credential helpers: `git ls-remote` of the " +
			"repository, run once in a terminal, lets most helpers remember them",
	}}
}

// repeatable reports whether a request is retried. A push that may have had an effect is
// not: Push reads the refs first.
func repeatable(response *http.Response, err error) (bool, error) {
	again, err := httpclient.Unavailable(response, err)
	if err != nil ||
		!strings.HasSuffix(response.Request.URL.Path, "/"+transport.ReceivePackServiceName) {
		return again, err
	}
	return response.StatusCode == http.StatusTooManyRequests ||
		response.StatusCode == http.StatusServiceUnavailable, nil
}

// maxBody returns the largest number of bytes to read of a response.
func maxBody(r *http.Response) int64 {
	most := httpclient.MaxBody(r)
	if strings.HasSuffix(r.Request.URL.Path, "/info/refs") {
		return min(most, maxRefs)
	}
	return most
}

// noLogin is the error if a server requires credentials, and none were found.
type noLogin struct{ *AuthError }

func (e *noLogin) Unwrap() error { return e.AuthError }

// unauthenticatedError is an AuthError of a server that accepted no credentials yet.
type unauthenticatedError struct{ *AuthError }

func (e *unauthenticatedError) Unwrap() error { return e.AuthError }

// wantsAuth reports whether other credentials may help.
func wantsAuth(err error) bool { return errors.As(err, new(*unauthenticatedError)) }

// explain returns the error for one of go-git. doing is the forbidden action on the
// repository: "read" or "written".
func (s *server) explain(err error, doing string) error {
	host := s.endpoint.Host
	var key *knownhosts.KeyError
	switch unexpected := (*plumbing.UnexpectedError)(nil); {
	case err != nil && strings.Contains(err.Error(), "object-format=sha256"):
		return git.ErrSHA256
	case errors.As(err, &unexpected):
		// it has no Unwrap of its own
		return fmt.Errorf("the repository does not answer as one: %w", unexpected.Err)
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return &unauthenticatedError{&AuthError{Problem: host +
			" does not accept the credentials that git " +
			"has for it", Hint: "`git credential reject`, or the settings of the credential helper, " +
			"removes those that are wrong"}}
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return &AuthError{Problem: host + " answers 403 Forbidden", Hint: "git's credentials for the " +
			"host, where it has any, are not allowed to " + doing + " the repository: an account or a " +
			"token is needed that may"}
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return &NotFoundError{Problem: "there is no such repository, or it is not to be seen without " +
			"other credentials"}
	case errors.As(err, &key) && len(key.Want) == 0:
		return &AuthError{Problem: "~/.ssh/known_hosts does not know " + host,
			Hint: "`ssh " + host + "`, run once, shows the key of the host and adds it"}
	case errors.As(err, &key):
		return &AuthError{Problem: host + " has another key than in ~/.ssh/known_hosts: it was set up " +
			"anew, or somebody is in between",
			Hint: "if the change is known, `ssh-keygen -R " + host + "` forgets the old key"}
	case err != nil && strings.Contains(err.Error(), "ssh: unable to authenticate"):
		return s.credentials().(*sshAuth).refused(host)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the server ends the conversation: %w", err)
	}
	return err
}

// parse returns the endpoint of a URL. It accepts the schemes of the language, and rejects texts
// that a program could take for an option.
func parse(url string) (*transport.Endpoint, error) {
	scheme, _, isURL := strings.Cut(url, "://")
	host, _, isSCP := strings.Cut(url, ":")
	switch {
	case isURL && slices.Contains([]string{"http", "https", "ssh", "git", "file"}, scheme):
	case !isURL && isSCP && strings.Contains(host, "@") && !strings.Contains(host, "/"):
	default:
		return nil, errors.New("this is no URL of a git repository: that is https://, http://, ssh://, " +
			"git:// or file://, or user@host:path")
	}
	endpoint, err := transport.NewEndpoint(url)
	if err != nil {
		return nil, errors.New("this is no URL of a git repository")
	}
	if strings.ContainsAny(url, "\x00\n\r") ||
		strings.ContainsAny(endpoint.Host+endpoint.User+endpoint.Path, "\x00\n\r") {
		return nil, errors.New("the URL of the repository has a line break")
	}
	if strings.HasPrefix(endpoint.Host, "-") || strings.HasPrefix(endpoint.User, "-") {
		return nil, errors.New("the host of the repository begins with a dash")
	}
	if endpoint.Protocol != "file" && endpoint.Host == "" {
		return nil, errors.New("the URL of the repository has no host")
	}
	return endpoint, nil
}
