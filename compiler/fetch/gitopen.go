package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/file"
	"github.com/go-git/go-git/v5/plumbing/transport/git"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// repository is a git repository on a server, as it was when it was first asked.
type repository struct {
	endpoint  *transport.Endpoint
	transport transport.Transport
	auth      transport.AuthMethod // nil for none

	refs         map[string]plumbing.Hash        // by full name; an annotated tag's commit
	named        map[plumbing.Hash]plumbing.Hash // by commit: what a ref names, an annotated tag itself
	unpeeled     []plumbing.Hash                 // of branches and tags, sorted; an annotated tag itself
	capabilities *capability.List
}

// open asks for the branches and tags of a repository.
func (r *repositories) open(ctx context.Context, url string) (*repository, error) {
	return r.known.get(url, func() (*repository, error) {
		endpoint, err := parseRepository(effectiveURL(ctx, url))
		if err != nil {
			return nil, err
		}
		repo := &repository{endpoint: endpoint}
		if err := r.connect(ctx, repo); err != nil {
			return nil, err
		}
		return repo, nil
	})
}

// connect finds out how a repository is spoken to, and asks for its refs.
func (r *repositories) connect(ctx context.Context, repo *repository) error {
	switch repo.endpoint.Protocol {
	case "http", "https":
		return r.connectHTTP(ctx, repo)
	case "ssh":
		auth, err := newSSHAuth(ctx, repo.endpoint)
		if err != nil {
			return err
		}
		repo.transport, repo.auth = gitssh.NewClient(nil), auth
	case "git":
		repo.transport = git.DefaultClient
	case "file":
		if _, err := exec.LookPath("git"); err != nil {
			return errors.New("repositories on this machine are read by git, which is not installed")
		}
		repo.transport = file.DefaultClient
	}
	return repo.explain(repo.survey(ctx))
}

// connectHTTP asks without credentials first, as git does, and then with those that
// the user has for the host.
func (r *repositories) connectHTTP(ctx context.Context, repo *repository) error {
	inURL := login{repo.endpoint.User, repo.endpoint.Password}
	repo.endpoint.User, repo.endpoint.Password = "", ""
	settings := readGitSettings(ctx, repo.endpoint)
	// go-git follows a redirect of the first request alone, and takes no
	// credentials to another host.
	repo.transport = githttp.NewClientWithOptions(&http.Client{Transport: settings.transport(r.fetcher)}, &githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects})
	had := settings.header != ""
	if had {
		r.fetcher.secrets.add(settings.header[strings.LastIndexAny(settings.header, ": ")+1:])
		repo.auth = headerAuth(settings.header)
	}
	err := repo.survey(ctx)
	if !errors.Is(err, transport.ErrAuthenticationRequired) {
		return repo.explain(err)
	}
	for _, ask := range []func() (login, bool){
		func() (login, bool) { return inURL, inURL.password != "" },
		func() (login, bool) { return netrcLogin(repo.endpoint.Host, inURL.username) },
		func() (login, bool) { return gitLogin(ctx, repo.endpoint, inURL.username) },
	} {
		l, ok := ask()
		if !ok {
			continue
		}
		had = true
		r.fetcher.secrets.add(l.password)
		repo.auth = &githttp.BasicAuth{Username: l.username, Password: l.password}
		if err = repo.survey(ctx); !isAuth(err) {
			return repo.explain(err)
		}
	}
	if had {
		return repo.explain(err)
	}
	return &unauthorized{
		problem: fmt.Sprintf("%s wants credentials, and git has none for it", repo.endpoint.Host),
		hint:    "kalypso asks ~/.netrc and git's credential helpers: `git ls-remote` of the repository, run once in a terminal, lets most helpers remember them",
	}
}

func isAuth(err error) bool {
	return errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed)
}

// survey asks for the refs.
func (r *repository) survey(ctx context.Context) error {
	session, err := r.session(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	told, err := session.AdvertisedReferencesContext(ctx)
	if err != nil {
		return err
	}
	r.refs, r.named, r.unpeeled = map[string]plumbing.Hash{}, map[plumbing.Hash]plumbing.Hash{}, nil
	r.capabilities = told.Capabilities
	for name, id := range told.References {
		r.refs[name], r.named[id] = id, id
		if strings.HasPrefix(name, branches) || strings.HasPrefix(name, tags) {
			r.unpeeled = append(r.unpeeled, id)
		}
	}
	for name, id := range told.Peeled {
		r.refs[name] = id
		if _, ok := r.named[id]; !ok {
			r.named[id] = told.References[name]
		}
	}
	slices.SortFunc(r.unpeeled, func(a, b plumbing.Hash) int { return strings.Compare(a.String(), b.String()) })
	return nil
}

// session begins to speak with the server. What go-git does then, over SSH, does
// not end with a context, so that it is left behind where that ends.
func (r *repository) session(ctx context.Context) (transport.UploadPackSession, error) {
	type result struct {
		session transport.UploadPackSession
		err     error
	}
	done := make(chan result, 1)
	// A redirect changes the endpoint of a session, which then has no credentials: the
	// next one begins where this one did.
	endpoint := *r.endpoint
	go func() {
		session, err := r.transport.NewUploadPackSession(&endpoint, r.auth)
		done <- result{session, err}
	}()
	select {
	case got := <-done:
		return got.session, got.err
	case <-ctx.Done():
		go func() {
			if got := <-done; got.err == nil {
				_ = got.session.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// explain says what an error of go-git means.
func (r *repository) explain(err error) error {
	host := r.endpoint.Host
	var key *knownhosts.KeyError
	switch unexpected := (*plumbing.UnexpectedError)(nil); {
	case errors.As(err, &unexpected):
		return fmt.Errorf("the repository does not answer as one: %w", unexpected.Err) // it has no Unwrap of its own
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return &unauthorized{host + " does not accept the credentials that git has for it", "`git credential reject`, or the settings of the credential helper, removes those that are wrong"}
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return &unauthorized{host + " answers 403 Forbidden", "git's credentials for the host, where it has any, are not allowed to read the repository: an account or a token is needed that may"}
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return &missing{problem: "there is no such repository, or it is not to be seen without other credentials"}
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return &missing{problem: "the repository is empty"}
	case errors.As(err, &key) && len(key.Want) == 0:
		return &unauthorized{"~/.ssh/known_hosts does not know " + host, "`ssh " + host + "`, run once, shows the key of the host and adds it"}
	case errors.As(err, &key):
		return &unauthorized{host + " has another key than in ~/.ssh/known_hosts: it was set up anew, or somebody is in between", "if the change is known, `ssh-keygen -R " + host + "` forgets the old key"}
	case err != nil && strings.Contains(err.Error(), "ssh: unable to authenticate"):
		return r.auth.(*sshAuth).refused(host)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the server ends the conversation: %w", err)
	}
	return err
}

// parseRepository returns where a repository is. It takes the schemes that the
// language has, and nothing that a program would take for an option.
func parseRepository(url string) (*transport.Endpoint, error) {
	scheme, _, isURL := strings.Cut(url, "://")
	host, _, isSCP := strings.Cut(url, ":")
	switch {
	case isURL && slices.Contains([]string{"http", "https", "ssh", "git", "file"}, scheme):
	case !isURL && isSCP && strings.Contains(host, "@") && !strings.Contains(host, "/"):
	default:
		return nil, errors.New("this is no URL of a git repository: that is https://, http://, ssh://, git:// or file://, or user@host:path")
	}
	endpoint, err := transport.NewEndpoint(url)
	if err != nil {
		return nil, errors.New("this is no URL of a git repository")
	}
	if strings.ContainsAny(url, "\x00\n\r") || strings.ContainsAny(endpoint.Host+endpoint.User+endpoint.Path, "\x00\n\r") {
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
