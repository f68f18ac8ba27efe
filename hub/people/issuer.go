package people

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// issuer is an issuer of tokens. It requests the issuer's addresses and keys when they are needed,
// so that a hub starts without it. Any number of goroutines may use it.
type issuer struct {
	address string
	client  *http.Client
	now     func() time.Time
	problem func(error) // called each time that the issuer does not answer

	mu       sync.Mutex
	provider *oidc.Provider
	tried    time.Time
	err      error
}

// askAgain is the time between two attempts to reach an issuer that does not answer.
const askAgain = 10 * time.Second

// newClient returns the client for issuers. It limits the size of answers and the time.
func newClient() *http.Client {
	const most = 1 << 20
	return &http.Client{
		Timeout: 15 * time.Second,
		Transport: httpclient.Transport(httpclient.Options{Dial: 5 * time.Second,
			Answer: 10 * time.Second, Body: func(*http.Response) int64 { return most }}),
		CheckRedirect: httpclient.Redirect,
	}
}

// requestContext returns a context for requests to the issuer.
func (i *issuer) requestContext(
	ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, i.client)
}

// get returns the issuer's own description.
func (i *issuer) get(ctx context.Context) (*oidc.Provider, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if i.provider != nil {
		return i.provider, nil
	}
	if i.err != nil && now.Sub(i.tried) < askAgain {
		return nil, i.err
	}
	i.tried = now
	// A caller that gives up does not stop the others that wait for the same answer.
	provider, err := oidc.NewProvider(i.requestContext(context.WithoutCancel(ctx)), i.address)
	if other := (*oidc.IssuerMismatchError)(nil); errors.As(err, &other) &&
		trimIssuer(other.Discovered) == trimIssuer(i.address) {
		provider, err = oidc.NewProvider(i.requestContext(context.WithoutCancel(ctx)), other.Discovered)
	}
	if err != nil {
		i.err = fmt.Errorf("the issuer %s: %w", i.address, short(err))
		i.problem(fmt.Errorf("nobody gets in by its tokens until it answers: %w", i.err))
		return nil, i.err
	}
	i.provider, i.err = provider, nil
	return provider, nil
}

// trimIssuer returns the address of an issuer without the slash at its end, which does not
// distinguish issuers. Tokens are accepted only with the address that the issuer itself uses.
func trimIssuer(address string) string { return strings.TrimRight(address, "/") }

// short removes the answer of a server from an error, and limits its length.
func short(err error) error {
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err
	}
	return errors.New(line(err.Error(), 300))
}

// verify returns the claims of a token that the issuer gave for an audience.
func (i *issuer) verify(ctx context.Context, token, audience string) (*oidc.IDToken, map[string]any,
	error) {
	provider, err := i.get(ctx)
	if err != nil {
		return nil, nil, &unreachableError{err}
	}
	verified, err := provider.Verifier(&oidc.Config{ClientID: audience, Now: i.now}).Verify(
		i.requestContext(ctx),
		token)
	if err != nil {
		return nil, nil, err
	}
	claims := map[string]any{}
	return verified, claims, verified.Claims(&claims)
}

// unreachableError is the error if an issuer does not answer.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }
