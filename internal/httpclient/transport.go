// Package httpclient is the HTTP client of all packages that reach servers of others. It turns
// Options into an [http.RoundTripper]. The RoundTripper limits the time that a server may be
// silent and the size of an answer. It uses the proxies of the environment, and retries requests
// that the server may answer later. [Secrets] keeps passwords out of messages.
package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/kalypso-io/kalypso/internal/address"
)

// Options are the bounds and the retries of a transport. Zero fields mean no bound and
// no retry.
type Options struct {
	// Dial is the longest time to connect. Answer is the longest time that a server may be silent
	// after a request.
	Dial, Answer time.Duration
	// Repeat reports whether a request is retried after a response or an error. If it is nil,
	// requests are never retried. Retries is the largest number of retries. First is the wait
	// before the first retry, doubled each time. Most is the longest wait, even if the server
	// requests more with Retry-After.
	Repeat      func(*http.Response, error) (bool, error)
	Retries     int
	First, Most time.Duration
	// Body returns the largest number of bytes to read of a response's body. A longer body ends
	// with a *TooLongError.
	Body func(*http.Response) int64
	// TLS has the certificates of both sides; nil for Go's defaults.
	TLS *tls.Config
	// Reach has the servers that may be connected to, whether a URL or a redirect names
	// them. An error for another one is an *address.LocalError. If a proxy connects, only
	// the name of the server is known.
	Reach address.Reach
}

// DialTimeout and Retries are the same as in [Patient].
const (
	DialTimeout = 15 * time.Second
	Retries     = 3
)

// Patient returns the options for servers that a command cannot do without. An answer may take a
// minute and have [MaxBody] bytes. [Unavailable] answers are retried, for the first time after
// wait. No retry is after more than 60 waits.
func Patient(wait time.Duration) Options {
	return Options{
		Dial: DialTimeout, Answer: time.Minute,
		Repeat: Unavailable, Retries: Retries, First: wait, Most: 60 * wait,
		Body: MaxBody,
	}
}

// MaxBody returns 1 GiB for a success, and 64 KiB for any other response.
func MaxBody(r *http.Response) int64 {
	if r.StatusCode >= 300 {
		return 64 << 10
	}
	return 1 << 30
}

// maxHeader is the largest number of bytes of a response's header.
const maxHeader = 256 << 10

// Transport returns a transport. It uses the proxies that $HTTPS_PROXY, $HTTP_PROXY
// and $NO_PROXY name when it is made. Any number of goroutines may use it.
func Transport(o Options) http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone()
	proxy := httpproxy.FromEnvironment().ProxyFunc()
	base.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
	dialer := &net.Dialer{Timeout: o.Dial, KeepAlive: 30 * time.Second}
	base.DialContext = dialer.DialContext
	base.ResponseHeaderTimeout = o.Answer
	base.MaxResponseHeaderBytes = maxHeader
	// Content is compressed already, and bounds are for the bytes on the wire.
	base.DisableCompression = true
	base.TLSClientConfig = o.TLS
	base.OnProxyConnectResponse = func(_ context.Context, proxy *url.URL, _ *http.Request,
		answer *http.Response) error {
		if answer.StatusCode != http.StatusOK {
			return &ProxyError{Proxy: proxy.Host, Err: errors.New("it answers " + answer.Status)}
		}
		return nil
	}
	direct := base.Clone()
	direct.Proxy = nil
	direct.DialContext = func(ctx context.Context, network, server string) (net.Conn, error) {
		return o.Reach.Dial(ctx, dialer, network, server)
	}
	out := http.RoundTripper(
		&proxyTransport{direct: direct, by: base, proxy: base.Proxy, reach: o.Reach})
	if o.Repeat != nil {
		policy := &retry.GenericPolicy{
			Retryable: o.Repeat,
			Backoff:   retry.ExponentialBackoff(o.First, 2, 0.1),
			MaxWait:   o.Most,
			MaxRetry:  o.Retries,
		}
		out = &retry.Transport{Base: out, Policy: func() retry.Policy { return policy }}
	}
	if o.Body != nil {
		out = LimitTransport(out, o.Body)
	}
	return out
}

// A ProxyError is a failure of a proxy, and not of the server behind it.
type ProxyError struct {
	Proxy string // HOST:PORT
	Err   error
}

func (e *ProxyError) Error() string { return fmt.Sprintf("the proxy %s: %v", e.Proxy, e.Err) }

func (e *ProxyError) Unwrap() error { return e.Err }

// proxyTransport sends requests directly or by proxies. It distinguishes errors of proxies from
// errors of servers.
type proxyTransport struct {
	direct, by http.RoundTripper
	proxy      func(*http.Request) (*url.URL, error)
	reach      address.Reach
}

func (p *proxyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	proxy, err := p.proxy(r)
	if err == nil && proxy == nil {
		return p.direct.RoundTrip(r)
	}
	if err := p.reach.CheckName(serverOf(r.URL)); err != nil {
		return nil, err
	}
	response, err := p.by.RoundTrip(r)
	if failed := (*net.OpError)(nil); errors.As(err, &failed) && failed.Op == "proxyconnect" {
		return nil, &ProxyError{Proxy: proxy.Host, Err: failed.Err}
	}
	if err == nil && response.StatusCode == http.StatusProxyAuthRequired {
		_ = response.Body.Close()
		return nil, &ProxyError{Proxy: proxy.Host, Err: errors.New("it answers " + response.Status)}
	}
	return response, err
}

// IsLoopback reports whether HOST or HOST:PORT is this machine: docker and oras use
// such registries without TLS as well.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.Unmap().IsLoopback()
}
