// Package gitea implements forge.Forge for repositories on Gitea and on Forgejo, with Gitea's
// API, version 1 (https://docs.gitea.com/development/api-usage), which Forgejo keeps
// (https://forgejo.org/docs/latest/user/api-usage/).
//
// Change requests are pull requests. A title that begins with "WIP: " makes a pull request a
// draft, and the package adds this prefix to titles and removes it. There are no deployments.
package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"code.gitea.io/sdk/gitea"

	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Options are the clock, for tests; the zero value is the real one.
type Options = server.Clock

// Forge is a repository of a Gitea or Forgejo instance.
type Forge struct {
	server      *server.Server
	client      *http.Client
	base        *url.URL
	owner, name string
	viewer      string
}

var _ forge.Forge = (*Forge)(nil)

const hint = "set GITEA_TOKEN or FORGEJO_TOKEN to a token with the scopes write:repository, " +
	"write:issue and read:user of a user that may write to the repository"

// New returns a repository: base is the instance's URL, with its path if any, and path is
// OWNER/REPOSITORY. The token is sent to that server only; without one, public repositories
// can be read.
//
// It requests the user of the token: the error for an invalid one is a *forge.AuthError.
func New(ctx context.Context, base, path, token string, o Options) (*Forge, error) {
	address, err := server.Base(base)
	if err != nil {
		return nil, err
	}
	segments, err := server.Path(path)
	if err != nil {
		return nil, err
	}
	if len(segments) != 2 {
		return nil, fmt.Errorf("%q is not the path of a repository: OWNER/REPOSITORY", path)
	}
	credentials := ""
	if token != "" {
		credentials = "token " + token
	}
	s, err := server.New(server.Options{
		Base: address, Header: "Authorization", Credentials: credentials, Hint: hint,
		Clock: o,
	})
	if err != nil {
		return nil, err
	}
	f := &Forge{server: s, client: s.Client(), base: address, owner: segments[0], name: segments[1]}
	if token != "" {
		f.viewer, err = server.Ask(ctx, s, f.whoami)
	}
	return f, err
}

// Token returns the token for a host, as HOST or HOST:PORT, from the environment. It returns
// FORGEJO_TOKEN or GITEA_TOKEN, unless GITEA_SERVER_URL names another host. In a job of Actions
// on that host, it returns the job's token otherwise.
func Token(host string) (string, bool) {
	for _, name := range []string{"FORGEJO_TOKEN", "GITEA_TOKEN"} {
		if token := os.Getenv(name); token != "" &&
			server.Same(os.Getenv("GITEA_SERVER_URL"), host, true) {
			return token, true
		}
	}
	actions := os.Getenv("GITEA_ACTIONS") == "true" || os.Getenv("FORGEJO_ACTIONS") == "true"
	if token := os.Getenv("GITHUB_TOKEN"); actions && token != "" &&
		server.Same(os.Getenv("GITHUB_SERVER_URL"), host, false) {
		return token, true
	}
	return "", false
}

// api returns the library's client for one method, because it keeps the context. It gets no
// token, so that it cannot print it, and does not request the server's version.
func (f *Forge) api(ctx context.Context) *gitea.Client {
	client, err := gitea.NewClient(f.base.String(), gitea.SetGiteaVersion(""),
		gitea.SetHTTPClient(f.client),
		gitea.SetContext(ctx), gitea.SetUserAgent("kalypso"))
	if err != nil {
		panic(err) // only the request for the version can fail
	}
	return client
}

// Kind returns gitea, for Forgejo as well.
func (f *Forge) Kind() string { return "gitea" }

// Repository returns the URL of the repository's page.
func (f *Forge) Repository() string { return f.base.JoinPath(f.owner, f.name).String() }

// Limits returns the limits of Gitea. Its database stores titles as VARCHAR(255), and the prefix
// of a draft is part of the title. Gitea has no limits for texts. These are the length of a line
// on its pages, and the size of a MySQL TEXT.
func (f *Forge) Limits() forge.Limits {
	return forge.Limits{Title: 255 - len(drafts.Prefix), Body: 65535, StatusDescription: 255}
}

// Viewer returns the name of the token's user; "" for a token without that permission.
func (f *Forge) Viewer(context.Context) (string, error) { return f.viewer, nil }

func (f *Forge) whoami(ctx context.Context) (string, error) {
	user, r, err := f.api(ctx).GetMyUserInfo()
	if server.Refused(err) {
		return "", nil
	}
	if err != nil {
		return "", f.fail("ask who the token belongs to", r, err)
	}
	return user.UserName, nil
}

// Deploy returns an ErrUnsupported.
func (f *Forge) Deploy(context.Context, forge.Deployment) error {
	return fmt.Errorf("record a deployment: %w", forge.ErrUnsupported)
}

// fail returns an error with the operation and the answer of the server, on one line.
func (f *Forge) fail(doing string, r *gitea.Response, err error) error {
	switch c := code(r); {
	case err == nil:
		return nil
	case c >= http.StatusBadRequest:
		return fmt.Errorf("%s: %s answers %d: %s", doing, f.server.Host(), c, terminal.Line(err.Error()))
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// code returns the status code of an answer. It returns 0 if there is no answer.
func code(r *gitea.Response) int {
	if r == nil || r.Response == nil {
		return 0
	}
	return r.StatusCode
}

var errHidden = errors.New("the server does not show it")

// visible returns the repository. It returns a *forge.AuthError if the repository is not found,
// because servers hide it from users who may not see it.
func (f *Forge) visible(ctx context.Context) (*gitea.Repository, error) {
	repository, r, err := f.api(ctx).GetRepo(f.owner, f.name)
	if code(r) == http.StatusNotFound {
		return nil, &forge.AuthError{Host: f.server.Host(),
			Problem: fmt.Sprintf("read the repository %s/%s: %v", f.owner, f.name, errHidden), Hint: hint}
	}
	return repository, f.fail("read the repository", r, err)
}

// pages returns all elements of a list. Some lists of Gitea have no link to the next page,
// only the number of elements.
func pages[T any](page func(gitea.ListOptions) ([]T, *gitea.Response, error)) ([]T, *gitea.Response,
	error) {
	var last *gitea.Response
	seen := 0
	all, err := server.Pages(func(number int) ([]T, int, error) {
		list, r, err := page(gitea.ListOptions{Page: number, PageSize: 50})
		last, seen = r, seen+len(list)
		if err != nil || len(list) == 0 {
			return list, 0, err
		}
		total, _ := strconv.Atoi(r.Header.Get("X-Total-Count"))
		if r.NextPage > 0 || total > seen {
			return list, number + 1, nil
		}
		return list, 0, nil
	})
	return all, last, err
}
