package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client speaks to a hub. Any number of goroutines may use it.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// NewClient returns the client of a hub at an address, such as https://hub.example.com. token is
// "" for none: it is sent over https, and to this machine, alone.
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
	// a third of the time of a handshake
	transport.TLSClientConfig = &tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	client := &http.Client{Transport: transport, Timeout: 2 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Client{strings.TrimSuffix(u.String(), "/"), token, client}, nil
}

// CloseIdle closes the connections that are not in use. Who asks again in a minute makes a new one:
// a hub that holds one for each of 100,000 clusters takes 2 GB of memory for them.
func (c *Client) CloseIdle() { c.http.CloseIdleConnections() }

// Error is an answer of a hub that is none of success: RFC 9457.
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

// Error returns the status and all that the hub says is wrong.
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

// UnavailableError is a hub that does not answer.
type UnavailableError struct {
	Host string
	Err  error
}

// Error names the hub and says what went wrong.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the hub %s does not answer: %v", e.Host, e.Err)
}

// Unwrap returns what went wrong.
func (e *UnavailableError) Unwrap() error { return e.Err }

// IsAuth reports whether a hub wants another token.
func IsAuth(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden)
}

// IsUnavailable reports whether a hub does not answer, or has too much to do.
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

// maxAnswer bounds an answer that is no stream.
const maxAnswer = 256 << 20

func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var reader io.Reader
	signed, isSigned := body.(*Signed)
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
			err = u.Err // the rest is said
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

// do asks, and reads the answer; into is nil for none.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body, into any) error {
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
