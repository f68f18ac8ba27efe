package httpclient

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// serverOf returns HOST:PORT of a URL.
func serverOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// maxRedirects is the largest number of redirects, the same as in Go's own client.
const maxRedirects = 10

// Redirect is the CheckRedirect of clients that send credentials: it allows no redirect from
// https to http, and removes the credentials for other servers. Go would send them to
// subdomains and other ports of a host.
func Redirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) >= maxRedirects:
		return errors.New("it redirects too often")
	case r.URL.Scheme != "https" && (first.Scheme == "https" || r.URL.Scheme != "http"):
		return errors.New("it redirects to a place without TLS")
	}
	for _, before := range append(via[1:len(via):len(via)], r) {
		if !SameOrigin(first, before.URL) {
			r.Header.Del("Authorization")
			r.Header.Del("Cookie")
		}
	}
	return nil
}

// SameOrigin reports whether two URLs are of one server.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(serverOf(a), serverOf(b))
}
