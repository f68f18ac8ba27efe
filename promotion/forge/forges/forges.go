// Package forges opens the forge of a git repository by its URL.
package forges

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/forge/detect"
	"github.com/kalypso-io/kalypso/promotion/forge/gitea"
	"github.com/kalypso-io/kalypso/promotion/forge/github"
	"github.com/kalypso-io/kalypso/promotion/forge/gitlab"
)

// Open returns the repository of a URL on its forge. It returns nil if the URL is not on a forge.
// kind is the kind of forge; "" to detect it from the URL and the environment. Tokens come from
// the environment, in the same variables as for the forges' own tools.
func Open(ctx context.Context, remote, kind string) (forge.Forge, error) {
	kind, base, path, err := detect.Detect(remote, os.Getenv, kind)
	if err != nil {
		return nil, err
	}
	switch kind {
	case detect.GitHub:
		owner, name, ok := strings.Cut(path, "/")
		host, err := hostOf(base)
		if err != nil || !ok {
			return nil, fmt.Errorf("%s is no repository of GitHub: it has the form OWNER/NAME", path)
		}
		return github.New(host, owner, name, github.Options{})
	case detect.GitLab:
		host, err := hostOf(base)
		if err != nil {
			return nil, err
		}
		token, _ := gitlab.Token(host)
		return some(gitlab.New(ctx, base, path, token, gitlab.Options{}))
	case detect.Gitea:
		host, err := hostOf(base)
		if err != nil {
			return nil, err
		}
		token, _ := gitea.Token(host)
		return some(gitea.New(ctx, base, path, token, gitea.Options{}))
	}
	return nil, nil
}

// HasToken reports whether there is a token for a forge of a kind at a host, as HOST or
// HOST:PORT. It does not send a request to the forge.
func HasToken(kind, host string) bool {
	found := false
	switch kind {
	case detect.GitHub:
		_, found = github.Token(host)
	case detect.GitLab:
		_, found = gitlab.Token(host)
	case detect.Gitea:
		_, found = gitea.Token(host)
	}
	return found
}

// some converts the result of New: a nil pointer would not be a nil Forge.
func some[F forge.Forge](f F, err error) (forge.Forge, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func hostOf(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	return u.Host, nil
}
