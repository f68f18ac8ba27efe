package remote

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// settings are the settings of git's configuration for a server (git-config(1),
// http.*).
type settings struct {
	httpclient.Certificates
	header string // NAME: VALUE, which CI systems use for tokens, of a URL, or ""
}

// readSettings reads git's configuration, in the working directory as git would. Without
// git it is empty.
func readSettings(ctx context.Context, e *transport.Endpoint) settings {
	address := e.Protocol + "://" + hostPort(e) + e.Path
	set := map[string]string{}
	// something is set
	if out, err := exec.CommandContext(ctx, "git", "config", "--get-urlmatch", "http",
		address).Output(); err == nil {
		for line := range strings.Lines(string(out)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			set[strings.ToLower(key)] = value
		}
	}
	path := func(variable, key string) string {
		name := cmp.Or(os.Getenv(variable), set[key])
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			home, _ := os.UserHomeDir() // git's ~, which differs from ssh's
			return filepath.Join(home, rest)
		}
		return name
	}
	// A header without a URL would be sent to every host that the platform names.
	header := set["http.extraheader"]
	if header != "" {
		out, err := exec.CommandContext(ctx, "git", "config", "--get", "http.extraHeader").Output()
		if err == nil && strings.TrimSpace(string(out)) == header {
			header = ""
		}
	}
	return settings{
		Certificates: httpclient.Certificates{
			CAFile:   path("GIT_SSL_CAINFO", "http.sslcainfo"),
			CertFile: path("GIT_SSL_CERT", "http.sslcert"),
			KeyFile:  path("GIT_SSL_KEY", "http.sslkey"),
		},
		header: header,
	}
}

// hostPort is HOST or HOST:PORT of an endpoint, as its URL has it.
func hostPort(e *transport.Endpoint) string {
	host := strings.Trim(e.Host, "[]")
	if e.Port != 0 {
		return net.JoinHostPort(host, strconv.Itoa(e.Port))
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// headerAuth is a header that goes with every request to a repository's server.
type headerAuth string

var _ githttp.AuthMethod = headerAuth("")

// Name is the name of the method in errors.
func (h headerAuth) Name() string { return "http-extra-header" }

// String is the method for people, without its secret.
func (h headerAuth) String() string { return h.Name() }

// SetAuth adds the header.
func (h headerAuth) SetAuth(r *http.Request) {
	if name, value, ok := strings.Cut(string(h), ":"); ok {
		r.Header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
	}
}
