package api

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/kalypso-io/kalypso/hub/state"
)

// Client is a client of a hub. Any number of goroutines may use it.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// NewClient returns the client of a hub at an address, such as https://hub.example.com. If there is
// no token, token is "". The client sends a token only over https or to this machine.
func NewClient(address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%q is no address of a hub, such as https://hub.example.com", address)
	}
	if u.User != nil {
		return nil, errors.New("the address of the hub has a password in it: give a token instead")
	}
	if host := u.Hostname(); token != "" && u.Scheme == "http" && host != "localhost" &&
		host != "127.0.0.1" && host != "::1" {
		return nil, fmt.Errorf("%s would get the token unencrypted: use https", u.Host)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// A resumed session needs a third of the time of a handshake.
	transport.TLSClientConfig = &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	client := &http.Client{Transport: transport, Timeout: 2 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Client{strings.TrimSuffix(u.String(), "/"), token, client}, nil
}

// CloseIdle closes the connections that are not in use. A client that sends its next request in a
// minute should call it. A hub with an open connection for each of 100,000 clusters needs 2 GB of
// memory for them.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Error is an answer of a hub without success: RFC 9457.
type Error struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Message  string `json:"message"`
		Location string `json:"location"`
	} `json:"errors"`
	RetryAfter time.Duration `json:"-"`
}

// Error returns the status, the detail and all errors of the hub's answer.
func (e *Error) Error() string {
	text := e.Detail
	if text == "" {
		text = e.Title
	}
	for _, more := range e.Errors {
		text += "; " + strings.TrimSpace(more.Location+" "+more.Message)
	}
	return fmt.Sprintf("the hub says %d: %s", e.Status, text)
}

// UnavailableError is the error if a hub does not answer.
type UnavailableError struct {
	Host string
	Err  error
}

// Error returns the name of the hub and the cause.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the hub %s does not answer: %v", e.Host, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// IsAuth reports whether a hub requires a different token.
func IsAuth(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) &&
		(e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden)
}

// IsUnavailable reports whether a hub does not answer, or is busy.
func IsUnavailable(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, new(*UnavailableError)) ||
		errors.As(err, &e) && (e.Status == http.StatusTooManyRequests ||
			e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable ||
			e.Status == http.StatusGatewayTimeout)
}

// IsResend reports whether a hub needs the items of a snapshot that had only a digest.
func IsResend(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && e.Status == http.StatusConflict
}

// maxAnswer limits the size of an answer that the client reads as a whole.
const maxAnswer = 256 << 20

func (c *Client) request(ctx context.Context, method, path string, query url.Values,
	body any) (*http.Response, error) {
	var reader io.Reader
	signed, isSigned := body.(*SignedReport)
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		if isSigned {
			data = signed.Report
		}
		reader = bytes.NewReader(data)
	}
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json, application/problem+json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if isSigned {
		r.Header.Set(SignatureHeader, signed.Signature)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err // the message has the host already
		}
		return nil, &UnavailableError{r.URL.Host, err}
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	e := &Error{}
	data, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if json.Unmarshal(data, e) != nil || e.Title == "" {
		e.Title = answer.Status
	}
	e.Status = answer.StatusCode
	if seconds, err := time.ParseDuration(answer.Header.Get("Retry-After") + "s"); err == nil {
		e.RetryAfter = seconds
	}
	return nil, e
}

// do sends a request and decodes the answer into a value. If into is nil, it ignores the answer.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body,
	into any) error {
	answer, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if into == nil || answer.StatusCode == http.StatusNoContent {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return err
	}
	if len(data) > maxAnswer {
		return fmt.Errorf("the hub's answer has more than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the hub's answer: %w", err)
	}
	return nil
}

// TokenPrefix is the prefix of tokens: kalypso_<id>_<secret>.
const TokenPrefix = "kalypso_"

// TokenParts returns the id and the secret of a token. It returns false if the text is not a token.
func TokenParts(token string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(token, TokenPrefix)
	id, secret, found := strings.Cut(rest, "_")
	return id, secret, ok && found && id != "" && secret != ""
}

// SignedReport is a report with its signature: a person who carries it to a hub cannot change it.
type SignedReport struct {
	Report json.RawMessage `json:"report"`
	// Signature is a JWS (RFC 7515) with detached content, by Ed25519. Its key ID is the id of a
	// token. The signer has the secret of that token.
	Signature string `json:"signature"`
}

// SignatureHeader is the header of a request that has the signature of the report in its body.
const SignatureHeader = "Kalypso-Signature"

// SigningKey returns the key that is derived from the secret of a token. A hub stores only its
// public key.
func SigningKey(secret string) ed25519.PrivateKey {
	// 32 bytes are never too many
	seed, _ := hkdf.Key(sha256.New, []byte(secret), nil, "kalypso report", ed25519.SeedSize)
	return ed25519.NewKeyFromSeed(seed)
}

// Sign signs a report with a token.
func Sign(token string, r *Report) (*SignedReport, error) {
	id, secret, ok := TokenParts(token)
	if !ok {
		return nil, errors.New("reports are signed with a token of a hub, kalypso_..., and this is none")
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA,
		Key: jose.JSONWebKey{Key: SigningKey(secret), KeyID: id}}, nil)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	jws, err := signer.Sign(data)
	if err != nil {
		return nil, err
	}
	signature, err := jws.DetachedCompactSerialize()
	return &SignedReport{data, signature}, err
}

// Verify verifies the signature of a report. key returns the public key of the token with an id.
func (s *SignedReport) Verify(key func(id string) (ed25519.PublicKey, error)) (id string,
	err error) {
	jws, err := jose.ParseDetached(s.Signature, s.Report, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return "", ErrSignature
	}
	id = jws.Signatures[0].Header.KeyID
	public, err := key(id)
	if err != nil {
		return "", err
	}
	if err := jws.DetachedVerify(s.Report, public); err != nil {
		return "", ErrSignature
	}
	return id, nil
}

// ErrSignature is the error if a signature does not match its report.
var ErrSignature = errors.New("the signature is not that of the report: it was changed after it " +
	"was signed, or the token was made before hubs verified signatures")

// String returns the counts as in "73/100 ok, 2 failed, 25 stale", without zeros.
func (c Counts) String() string {
	if c.Wanted == 0 {
		return "nothing is wanted"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d/%d ok", c.OK, c.Wanted)
	for _, s := range []state.State{state.Failed, state.Drifted, state.Suspended, state.Behind,
		state.Progressing, state.Stale, state.Missing} {
		if n := c.Of(s); n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, s)
		}
	}
	return b.String()
}
