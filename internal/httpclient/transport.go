// Package httpclient is how kalypso speaks HTTP with servers that others run: with bounds
// on how long a server may be silent and how much it may say, through the proxies
// of the environment, and again where the server asks for it.
package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// Options say how patient a transport is. Zero fields mean no bound and no
// repetition.
type Options struct {
	// Dial is how long a connection may take, and Answer how long a server may be
	// silent once it has a request.
	Dial, Answer time.Duration
	// Repeat says whether a request is made again after a response or an error; nil
	// for never. Retries is how often at most, First how long to wait before the
	// first time, doubled each time, and Most how long at most, also where the server
	// asks for more with Retry-After.
	Repeat      func(*http.Response, error) (bool, error)
	Retries     int
	First, Most time.Duration
	// Body is how many bytes of a response's body are read at most. One that is
	// longer ends with a *TooLongError.
	Body func(*http.Response) int64
	// TLS is what the server must prove, and this side can; nil for Go's own.
	TLS *tls.Config
}

// maxHeader is how many bytes the header of a response may have.
const maxHeader = 256 << 10

// Transport returns a transport. It uses the proxies that $HTTPS_PROXY, $HTTP_PROXY
// and $NO_PROXY name now. Any number of goroutines may use it.
func Transport(o Options) http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone()
	proxy := httpproxy.FromEnvironment().ProxyFunc()
	base.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
	base.DialContext = (&net.Dialer{Timeout: o.Dial, KeepAlive: 30 * time.Second}).DialContext
	base.ResponseHeaderTimeout = o.Answer
	base.MaxResponseHeaderBytes = maxHeader
	// What is fetched is compressed already, and sizes are those of the bytes that
	// travel.
	base.DisableCompression = true
	base.TLSClientConfig = o.TLS
	base.OnProxyConnectResponse = func(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
		if answer.StatusCode != http.StatusOK {
			return &ProxyError{Proxy: proxy.Host, Err: errors.New("it answers " + answer.Status)}
		}
		return nil
	}
	out := http.RoundTripper(&proxied{base: base, proxy: base.Proxy})
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
		out = &limiting{base: out, most: o.Body}
	}
	return out
}

// A ProxyError says that a proxy is in the way of a request, and not the server.
type ProxyError struct {
	Proxy string // HOST:PORT
	Err   error
}

func (e *ProxyError) Error() string { return fmt.Sprintf("the proxy %s: %v", e.Proxy, e.Err) }

func (e *ProxyError) Unwrap() error { return e.Err }

// proxied tells what a proxy says from what servers say.
type proxied struct {
	base  http.RoundTripper
	proxy func(*http.Request) (*url.URL, error)
}

func (p *proxied) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.base.RoundTrip(r)
	by, proxyErr := p.proxy(r)
	if proxyErr != nil || by == nil {
		return response, err
	}
	if failed := (*net.OpError)(nil); errors.As(err, &failed) && failed.Op == "proxyconnect" {
		return nil, &ProxyError{Proxy: by.Host, Err: failed.Err}
	}
	if err == nil && response.StatusCode == http.StatusProxyAuthRequired {
		_ = response.Body.Close()
		return nil, &ProxyError{Proxy: by.Host, Err: errors.New("it answers " + response.Status)}
	}
	return response, err
}

// A TooLongError says that a server sends more than is read.
type TooLongError struct{ Most int64 }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the server sends more than the %d bytes that are read", e.Most)
}

// limiting bounds the bodies of responses.
type limiting struct {
	base http.RoundTripper
	most func(*http.Response) int64
}

func (l *limiting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	most := l.most(response)
	response.Body = &limitedBody{Closer: response.Body, Reader: NewReader(response.Body, most)}
	return response, nil
}

type limitedBody struct {
	io.Closer
	io.Reader
}

// NewReader returns a reader that ends with a *TooLongError where r has more than
// most bytes.
func NewReader(r io.Reader, most int64) io.Reader {
	return &limitedReader{r: r, most: most, left: most}
}

type limitedReader struct {
	r          io.Reader
	most, left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		return int(l.left), &TooLongError{Most: l.most}
	}
	l.left -= int64(n)
	return n, err
}

// IsLoopback says whether HOST or HOST:PORT is this machine: docker and oras ask
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

// Wait waits, or returns the context's error if that ends before.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
