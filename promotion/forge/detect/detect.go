// Package detect detects the forge of a git remote, without a request: from its URL and the
// variables of CI systems.
package detect

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge/internal/server"
)

// The kinds of forges, as in --forge.
const (
	GitHub = "github"
	GitLab = "gitlab"
	Gitea  = "gitea"
	None   = "none"
)

// known are the public forges, and their names for SSH through port 443, which belong to
// the same forge.
var known = map[string]struct{ kind, host string }{
	"github.com": {GitHub, "github.com"}, "www.github.com": {GitHub, "github.com"},
	"ssh.github.com": {GitHub, "github.com"},
	"gitlab.com":     {GitLab, "gitlab.com"}, "altssh.gitlab.com": {GitLab, "gitlab.com"},
	"codeberg.org": {Gitea, "codeberg.org"}, "gitea.com": {Gitea, "gitea.com"},
}

// Detect returns the kind of the forge of a remote, the URL of the forge's instance and the path
// of the repository there. For the kind none, both are empty.
//
// override is the kind that the user chose, or "". Without it, Detect first checks the hosts of
// known services. Then it checks the variables that env, such as os.Getenv, returns for the host:
// GH_HOST, GITHUB_SERVER_URL, GITHUB_API_URL, CI_SERVER_URL and GITLAB_HOST. The GITHUB_
// variables name a Gitea if GITEA_ACTIONS or FORGEJO_ACTIONS is true. If nothing matches, the
// kind is None.
//
// It returns an error if the URL is invalid, or if the kind is not possible. The error does not
// contain credentials of the URL.
func Detect(remoteURL string, env func(string) string, override string) (kind, base, path string,
	err error) {
	switch override {
	case None:
		return None, "", "", nil
	case "", GitHub, GitLab, Gitea:
	default:
		return "", "", "",
			fmt.Errorf("%q is not a kind of forge: github, gitlab, gitea or none", terminal.Line(override))
	}
	r, err := parse(remoteURL)
	if err != nil {
		return "", "", "", err
	}
	if r == nil {
		if override != "" {
			return "", "", "",
				fmt.Errorf("the remote is a folder, and not on a server of the kind %s", override)
		}
		return None, "", "", nil
	}
	kind, instance := r.kind(env)
	if override != "" {
		kind, instance = override, r.instance(env, override, instance)
	}
	if kind == None {
		return None, "", "", nil
	}
	path, err = r.inside(instance, kind)
	return kind, strings.TrimSuffix(instance.String(), "/"), path, err
}

// remote is an address of a repository on a server.
type remote struct {
	scheme string // http, https, or ssh for all others
	host   string // in lower case; with the port for http and https, if it has one
	path   string
}

var (
	hosts = lazyregexp.New(`^[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?$`)
	// helper matches a URL for a remote helper of git, which may be any program.
	helper = lazyregexp.New(`^[A-Za-z0-9]+::`)
	// scp matches [USER@]HOST:PATH without a slash before the colon: git-clone(1).
	scp    = lazyregexp.New(`^(?:[^@/]*@)?(\[[0-9A-Fa-f:.]+\]|[^:/\[]+):(.*)$`)
	drive  = lazyregexp.New(`^[A-Za-z]:([\\/]|$)`)
	errURL = errors.New("the address of the remote is not one that git has: https://HOST/PATH, " +
		"ssh://HOST/PATH or HOST:PATH")
)

// parse parses a URL as git does; nil for a folder, a bundle, or a remote helper.
func parse(address string) (*remote, error) {
	if strings.ContainsFunc(address, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errURL
	}
	if helper.MatchString(address) || drive.MatchString(address) {
		return nil, nil
	}
	if strings.Contains(address, "://") {
		return parseURL(address)
	}
	parts := scp.FindStringSubmatch(address)
	if parts == nil {
		return nil, nil
	}
	return checked(&remote{scheme: "ssh", host: parts[1], path: parts[2]})
}

func parseURL(address string) (*remote, error) {
	u, err := url.Parse(address)
	if err != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
		return nil, errURL // the parser's own error contains the URL
	}
	switch strings.ToLower(u.Scheme) {
	case "file":
		return nil, nil
	case "http", "https":
		return checked(&remote{scheme: strings.ToLower(u.Scheme), host: u.Host, path: u.Path})
	case "ssh", "git", "git+ssh", "ssh+git":
		// The web server has another port.
		host := u.Hostname()
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return checked(&remote{scheme: "ssh", host: host, path: u.Path})
	}
	return nil, nil
}

// checked returns a remote, or an error if its host is invalid.
func checked(r *remote) (*remote, error) {
	r.host = strings.ToLower(r.host)
	name := r.host
	if h, port, err := net.SplitHostPort(name); err == nil {
		name = h
		if r.scheme == "https" && port == "443" || r.scheme == "http" && port == "80" {
			r.host = strings.TrimSuffix(r.host, ":"+port)
		}
	}
	if net.ParseIP(strings.Trim(name, "[]")) == nil && !hosts.MatchString(name) {
		return nil, errURL
	}
	return r, nil
}

// kind returns the kind of a remote's forge, and the URL of its instance.
func (r *remote) kind(env func(string) string) (string, *url.URL) {
	if k, ok := known[r.host]; ok {
		return k.kind, &url.URL{Scheme: "https", Host: k.host}
	}
	if name, ok := strings.CutSuffix(r.host, ".ghe.com"); ok && name != "" {
		return GitHub, &url.URL{Scheme: "https", Host: r.host}
	}
	for _, name := range names {
		if instance := r.instanceOf(env(name.variable)); instance != nil {
			return name.kind(env), instance
		}
	}
	return None, nil
}

// names are the variables with the URL or the host of a forge.
var names = []struct {
	variable string
	kind     func(env func(string) string) string
}{
	{"CI_SERVER_URL", func(func(string) string) string { return GitLab }},
	{"GITLAB_HOST", func(func(string) string) string { return GitLab }},
	{"GITHUB_SERVER_URL", actions},
	{"GITHUB_API_URL", actions},
	{"GH_HOST", func(func(string) string) string { return GitHub }},
}

// actions returns the forge of a job of Actions: Gitea and Forgejo have the variables of
// GitHub, and one more.
func actions(env func(string) string) string {
	if env("GITEA_ACTIONS") == "true" || env("FORGEJO_ACTIONS") == "true" {
		return Gitea
	}
	return GitHub
}

// apis matches the path of the API of an instance.
var apis = lazyregexp.New(`/api(/v[0-9]+)?/?$`)

// instanceOf returns the instance of a variable's value, if the remote is on it; nil if not. Over
// SSH, only the host name is compared.
func (r *remote) instanceOf(variable string) *url.URL {
	if variable == "" {
		return nil
	}
	if !strings.Contains(variable, "://") {
		variable = "https://" + variable
	}
	base, err := server.Base(apis.ReplaceAllString(variable, ""))
	if err != nil {
		return nil
	}
	base.Host = strings.ToLower(base.Host)
	if r.scheme == "ssh" && strings.EqualFold(base.Hostname(), strings.Trim(r.host, "[]")) {
		return base
	}
	if r.scheme != "ssh" && server.Same(base.Host, r.host, false) && below(r.path, base.Path) {
		return base
	}
	return nil
}

func below(path, folder string) bool {
	return folder == "" || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// instance returns the instance of a forge whose kind the user chose: the detected one, if
// any, or else the host.
func (r *remote) instance(env func(string) string, kind string, found *url.URL) *url.URL {
	for _, name := range names {
		if instance := r.instanceOf(env(name.variable)); instance != nil && name.kind(env) == kind {
			return instance
		}
	}
	if found != nil {
		return found
	}
	if r.scheme == "ssh" {
		return &url.URL{Scheme: "https", Host: r.host}
	}
	return &url.URL{Scheme: r.scheme, Host: r.host}
}

// inside returns the path of the repository within an instance.
func (r *remote) inside(instance *url.URL, kind string) (string, error) {
	path := r.path
	if r.scheme != "ssh" {
		path = strings.TrimPrefix(path, instance.Path)
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	segments, err := server.Path(path)
	if err != nil {
		return "", err
	}
	if kind != GitLab && len(segments) != 2 {
		return "", fmt.Errorf("%q is not the path of a repository on %s: OWNER/REPOSITORY", path,
			terminal.Line(instance.Host))
	}
	return path, nil
}
