package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/forge"
)

const (
	// maxBody is the largest number of bytes of an answer. A page of a hundred change requests is
	// smaller.
	maxBody = 32 << 20
	// maxWait is the longest wait that a server may ask for.
	maxWait = 366 * 24 * time.Hour
)

// transport makes a request with retries, and turns the answers that mean the same for all
// forges into errors. The body of its answers has been read completely, so that a broken
// answer counts as lost.
type transport struct{ *Server }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.owns(r.URL) {
		return nil, fmt.Errorf("%s names an address of another server", t.Host())
	}
	var body []byte // of a request that may have to be sent more than once
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	for attempt := 0; ; attempt++ {
		response, err := t.send(r, body)
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		pause, err := t.judge(r, response, err, attempt)
		if err != nil {
			return nil, err
		}
		if pause == 0 {
			return response, nil
		}
		if err := t.Wait(r.Context(), pause); err != nil {
			return nil, err
		}
	}
}

// send makes the request once, with the credentials, and reads the answer.
func (t *transport) send(r *http.Request, body []byte) (*http.Response, error) {
	request := r.Clone(r.Context())
	if body != nil {
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if t.o.Credentials != "" {
		request.Header.Set(t.o.Header, t.o.Credentials)
	}
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	data, err := readBody(response)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		data = []byte(t.redact(string(data)))
	}
	setBody(response, data)
	response.Request = r
	return response, nil
}

// readBody reads and closes the body of an answer.
func readBody(response *http.Response) ([]byte, error) {
	defer func() { _ = response.Body.Close() }()
	return httpclient.ReadAll(response.Body, maxBody)
}

func setBody(response *http.Response, data []byte) {
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
}

// noNulls turns lists with a null in them into errors.
type noNulls struct{ base http.RoundTripper }

func (n noNulls) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.base.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		return response, err
	}
	data, err := readBody(response)
	switch {
	case err != nil:
		return nil, err
	case hasNull(data):
		return nil, errors.New("it sends a list with nothing in one of its places")
	case string(bytes.TrimSpace(data)) == "null":
		data = []byte("[]") // some servers send it for an empty list, and no server for an object
	}
	setBody(response, data)
	return response, nil
}

// hasNull reports whether a list in a JSON text has a null in it. No working server sends
// one, and the libraries would return a nil pointer. Text that is not JSON is left to the
// libraries.
func hasNull(data []byte) bool {
	if !bytes.Contains(data, []byte("null")) {
		return false
	}
	decoder, lists := json.NewDecoder(bytes.NewReader(data)), []bool{}
	for {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			lists = append(lists, token == json.Delim('['))
		case json.Delim(']'), json.Delim('}'):
			lists = lists[:len(lists)-1]
		case nil:
			if len(lists) > 0 && lists[len(lists)-1] {
				return true
			}
		}
	}
}

// judge decides how to continue after an answer. It returns an error, or a pause before a retry,
// or a pause of zero if the answer is the result.
func (t *transport) judge(r *http.Request, response *http.Response, err error,
	attempt int) (time.Duration, error) {
	pause := firstWait << attempt
	tooLong, unavailable := (*httpclient.TooLongError)(nil), (*forge.UnavailableError)(nil)
	switch {
	case errors.As(err, &unavailable):
		return 0, unavailable
	case errors.As(err, &tooLong):
		return 0, &forge.UnavailableError{Host: t.Host(), Err: err}
	case err != nil:
		err = errors.New(t.Line(err.Error()))
	default:
		code := response.StatusCode
		switch {
		case limited(response) && attempt == repeats:
			return 0, &forge.UnavailableError{Host: t.Host(),
				Until: t.Now().Add(t.retryAfter(response, attempt)),
				Err:   errors.New("too many requests")}
		case limited(response):
			return t.retryAfter(response, attempt), nil
		case code == http.StatusUnauthorized, code == http.StatusForbidden,
			code == http.StatusNotFound && t.o.Hidden != "" &&
				strings.Contains(messageOf(response), t.o.Hidden):
			return 0, t.refused(r, response)
		case code < 500 || code == http.StatusNotImplemented:
			return 0, nil
		}
		err = fmt.Errorf("it answers %s", terminal.Line(response.Status))
		pause = t.retryAfter(response, attempt)
	}
	switch {
	case KindOf(r) == Write: // its result is not known
		return 0, &LostError{Err: err}
	case attempt == repeats, pause > patience:
		return 0, &forge.UnavailableError{Host: t.Host(), Err: err}
	}
	return pause, nil
}

// Kind is how a request is handled whose answer is lost.
type Kind uint8

// The kinds of requests.
const (
	Write      Kind = iota // repeated by Run, because only a read shows whether it was obeyed
	Idempotent             // a write that may be made again
	Read                   // it changes nothing
)

type kindKey struct{}

// WithKind returns a context for requests of a kind, whatever their method is.
func WithKind(ctx context.Context, k Kind) context.Context {
	return context.WithValue(ctx, kindKey{}, k)
}

// KindOf returns the kind of a request: the kind in its context, else the kind of its method.
func KindOf(r *http.Request) Kind {
	if k, ok := r.Context().Value(kindKey{}).(Kind); ok {
		return k
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return Read
	}
	return Write
}

// refused returns the error for an answer that requires other credentials.
func (t *transport) refused(r *http.Request, response *http.Response) error {
	if t.o.Refusal != nil {
		return &refusal{code: response.StatusCode, error: t.o.Refusal(response)}
	}
	status := t.Line(response.Status)
	problem := fmt.Sprintf("%s %s: %s", r.Method, terminal.Line(r.URL.Path), status)
	if words := messageOf(response); words != "" && words != status {
		problem += ": " + words
	}
	if t.o.Credentials == "" {
		problem = "there is no token: " + problem
	}
	return &refusal{code: response.StatusCode,
		error: &forge.AuthError{Host: t.Host(), Problem: terminal.Line(problem), Hint: t.o.Hint}}
}

// refusal is a *forge.AuthError with the status code of the answer.
type refusal struct {
	code int
	error
}

func (r *refusal) Unwrap() error { return r.error }

// Refused reports whether an error, within Do, is that the credentials are valid but lack a
// permission.
func Refused(err error) bool {
	refused := (*refusal)(nil)
	return errors.As(err, &refused) && refused.code == http.StatusForbidden
}

// Line returns a text of the server as one printable line without the credentials.
func (s *Server) Line(text string) string { return terminal.Line(s.redact(text)) }

// redact removes the credentials from a text of a server, because some servers repeat the
// request.
func (s *Server) redact(text string) string {
	token := s.o.Credentials
	if _, after, ok := strings.Cut(token, " "); ok {
		token = after
	}
	if token == "" {
		return text
	}
	return strings.ReplaceAll(text, token, "[token]")
}

// messageOf returns the message of an answer, whose body can still be read.
func messageOf(response *http.Response) string {
	data, _ := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(data))
	message := struct {
		Message any `json:"message"`
		Error   any `json:"error"`
	}{}
	if json.Unmarshal(data, &message) == nil {
		for _, m := range []any{message.Message, message.Error} {
			if text, ok := m.(string); ok && text != "" {
				return text
			}
		}
	}
	return string(data[:min(len(data), 1<<10)])
}

// limited reports whether the server has refused because of too many requests. Some do so
// with 403, which without these headers is a refusal.
func limited(response *http.Response) bool {
	h := response.Header
	return response.StatusCode == http.StatusTooManyRequests ||
		response.StatusCode == http.StatusForbidden && (h.Get("Retry-After") != "" ||
			h.Get("RateLimit-Remaining") == "0" || h.Get("X-RateLimit-Remaining") == "0")
}

// retryAfter returns the time to wait by the answer's headers, always more than zero. It reads
// Retry-After (RFC 9110, 10.2.3) or RateLimit-Reset. RateLimit-Reset is a time for GitLab
// (https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/) and seconds for
// others.
func (t *transport) retryAfter(response *http.Response, attempt int) time.Duration {
	now, h := t.o.Now(), response.Header
	for _, name := range []string{"Retry-After", "RateLimit-Reset", "X-RateLimit-Reset"} {
		value := strings.TrimSpace(h.Get(name))
		if at, err := http.ParseTime(value); err == nil {
			return waitOf(at.Sub(now))
		}
		seconds, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil || seconds < 0:
		case seconds > 1e9: // a time: as seconds, they would be thirty years
			return waitOf(time.Unix(min(seconds, 1e12), 0).Sub(now))
		default:
			return waitOf(time.Duration(seconds) * time.Second)
		}
	}
	return firstWait << min(attempt, 10)
}

func waitOf(d time.Duration) time.Duration { return min(max(d, time.Second), maxWait) }
