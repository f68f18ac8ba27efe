package server

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Base returns the URL of an instance: http or https, a host and a path, and nothing else.
// The error does not contain what may be a password.
func Base(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("the address of a forge is https://HOST, or https://HOST/PATH")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the address of the forge at %s has more than a host and a path: "+
			"credentials belong into the environment", terminal.Line(u.Host))
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), ""
	return u, nil
}

// Same reports whether an address, a URL or HOST or HOST:PORT, is of the host. otherwise is
// the result for an empty address. The default ports 80 and 443 are ignored.
func Same(address, host string, otherwise bool) bool {
	if address == "" {
		return otherwise
	}
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	return strings.EqualFold(bare(address), bare(host))
}

func bare(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil && (port == "80" || port == "443") {
		return name
	}
	return host
}

var segment = lazyregexp.New(`^[A-Za-z0-9_.-]+$`)

// Path returns the segments of a repository's path, without slashes around it and at least
// two. They need no escaping in URLs.
func Path(path string) ([]string, error) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for _, s := range segments {
		if !segment.MatchString(s) || strings.Trim(s, ".") == "" {
			return nil, fmt.Errorf("%q is not the path of a repository", terminal.Line(path))
		}
	}
	if len(segments) < 2 {
		return nil, fmt.Errorf("%q is not the path of a repository: it begins with the name of a user, "+
			"an organisation or a group", terminal.Line(path))
	}
	return segments, nil
}
