// Package github implements forge.Forge for a repository on GitHub: github.com, GitHub Enterprise
// Cloud with data residency (*.ghe.com), and GitHub Enterprise Server. It calls the REST API, and
// GraphQL if REST lacks a feature.
//
// The package uses the credentials, hosts and sockets of the gh command. It waits for the server
// for a minute in total. After that, the caller has to run again later. The package does not
// trust answers. It limits their size, and an error quotes them as one printable line without the
// token.
package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// Options configure New. Commands use the zero value.
type Options struct {
	// Token is the credential. If it is "", New uses the token of gh: the environment, its files,
	// its keyring.
	Token string
	// Socket is a Unix socket for all hosts; "" for http_unix_socket of gh's configuration.
	Socket string
	// Now and Wait are the clock; nil for the real one.
	Now  func() time.Time
	Wait func(context.Context, time.Duration) error
}

// name matches the names of owners and repositories, and no other path.
var name = lazyregexp.New(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// New returns a repository of a host as a forge. It makes no request, but runs gh if gh keeps the
// token. Without a token, it returns a *forge.AuthError.
func New(host, owner, repository string, o Options) (forge.Forge, error) {
	if !name.MatchString(owner) || !name.MatchString(repository) {
		return nil, fmt.Errorf("%s/%s is no repository of GitHub: it has the form OWNER/NAME",
			terminal.Line(owner), terminal.Line(repository))
	}
	o.Now, o.Wait = httpclient.Clock(o.Now, o.Wait)
	c, err := newClient(host, o)
	if err != nil {
		return nil, err
	}
	return &repo{client: c, owner: owner, name: repository, path: "repos/" + owner + "/" + repository},
		nil
}

// repo is one repository.
type repo struct {
	client      *client
	owner, name string
	path        string // in the REST API

	mu       sync.Mutex
	settings *settings // nil before the first request
	viewer   *string
}

// settings are the settings of the repository. Merge methods are nil if the token may not see
// them.
type settings struct {
	Squash *bool `json:"allow_squash_merge"`
	Merge  *bool `json:"allow_merge_commit"`
	Rebase *bool `json:"allow_rebase_merge"`
}

func (r *repo) Kind() string { return "github" }

func (r *repo) Repository() string {
	return "https://" + r.client.Host() + "/" + r.owner + "/" + r.name
}

// Limits returns the limits in the API's checks of pull requests and statuses.
func (r *repo) Limits() forge.Limits {
	return forge.Limits{Title: 256, Body: 65536, StatusDescription: 140}
}

// Viewer uses GraphQL. REST's GET /user refuses the token of an installation or a workflow. For
// such a token, GraphQL returns the app's name with [bot], the same name as the creator of its
// statuses.
func (r *repo) Viewer(ctx context.Context) (string, error) {
	return requestOnce(r, &r.viewer, func() (string, error) {
		var got struct {
			Viewer struct{ Login string }
		}
		err := r.client.Run(ctx, func(ctx context.Context) error {
			return r.client.graphQL(ctx, server.Read, "Viewer", `query Viewer { viewer { login } }`, nil,
				&got)
		})
		if err != nil && !isGraphQL(err, "FORBIDDEN") {
			return "", fmt.Errorf("asking who the token belongs to: %w", err)
		}
		return got.Viewer.Login, nil
	})
}

// setup returns the repository's settings.
func (r *repo) setup(ctx context.Context) (settings, error) {
	return requestOnce(r, &r.settings, func() (got settings, err error) {
		_, err = r.client.call(ctx, server.Read, http.MethodGet, r.client.urlOf(r.path, nil), nil, &got)
		if isRefusal(err, http.StatusNotFound) {
			err = &forge.AuthError{
				Host: r.client.Host(),
				Problem: fmt.Sprintf("there is no repository %s/%s, or the token may not see it", r.owner,
					r.name),
				Hint: "check the name, and that the token has access to the repository",
			}
		}
		return got, err
	})
}

// requestOnce returns a value that is requested once, unless that fails. Nothing is locked during
// the request: another goroutine may make it too.
func requestOnce[T any](r *repo, value **T, request func() (T, error)) (T, error) {
	r.mu.Lock()
	before := *value
	r.mu.Unlock()
	if before != nil {
		return *before, nil
	}
	got, err := request()
	if err != nil {
		return got, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	*value = &got
	return got, nil
}

// get reads one object below the repository's path.
func (r *repo) get(ctx context.Context, path string, query values, out any) error {
	_, err := r.client.call(ctx, server.Read, http.MethodGet,
		r.client.urlOf(r.path+"/"+path, query), nil,
		out)
	return r.explain(ctx, err)
}

// send writes to a path below the repository's. k determines whether the request may be repeated.
func (r *repo) send(ctx context.Context, k server.Kind, method, path string, in, out any) error {
	_, err := r.client.call(ctx, k, method, r.client.urlOf(r.path+"/"+path, nil), in, out)
	return r.explain(ctx, err)
}

// explain finds the reason of a 404. GitHub also returns 404 for objects that a token may not
// see.
func (r *repo) explain(ctx context.Context, err error) error {
	if isRefusal(err, http.StatusNotFound) {
		if _, hidden := r.setup(ctx); hidden != nil {
			return hidden
		}
	}
	return err
}

// sameText reports whether a text is the one that was sent: GitHub changes the ends of
// lines and of texts.
func sameText(a, b string) bool {
	clean := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return clean(a) == clean(b)
}
