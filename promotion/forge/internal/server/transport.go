package server

import (
	"bytes"
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
	// largest is how many bytes of an answer are read: a page of a hundred change
	// requests with descriptions of a megabyte would have more, and none has.
	largest = 32 << 20
	// longest is what a server may ask to wait that is still a time to name.
	longest = 366 * 24 * time.Hour
)

// transport makes one request as often as it takes, and turns the answers that all
// forges mean alike into errors. What it returns has been read in whole, so that an
// answer that breaks off is one that was lost.
type transport struct{ *Server }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.owns(r.URL) {
		return nil, fmt.Errorf("%s names an address of another server", t.Host())
	}
	body, err := content(r)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		response, err := t.once(r, body)
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

// content returns a request's body, which may have to be sent more than once.
func content(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	return io.ReadAll(r.Body)
}

// once makes the request once, with the credentials, and reads the answer.
func (t *transport) once(r *http.Request, body []byte) (*http.Response, error) {
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
	data, err := httpclient.ReadAll(response.Body, largest)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode >= http.StatusBadRequest:
		data = []byte(t.without(string(data)))
	case hollow(data):
		return nil, errors.New("it sends a list with nothing in one of its places")
	case string(bytes.TrimSpace(data)) == "null":
		data = []byte("[]") // what some servers say for an empty list, and no object
	}
	response.Body, response.Request = io.NopCloser(bytes.NewReader(data)), r
	return response, nil
}

// hollow reports whether a list in a JSON text has a null in it. The libraries would
// hand on a nil pointer, and no server that works sends one. What is no JSON is for
// the libraries to say.
func hollow(data []byte) bool {
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

// judge says what follows from an answer: an error, another request after a pause,
// or, for a pause of zero, that it is the answer.
func (t *transport) judge(r *http.Request, response *http.Response, err error, attempt int) (time.Duration, error) {
	tooLong := (*httpclient.TooLongError)(nil)
	switch {
	case errors.As(err, &tooLong):
		return 0, &forge.UnavailableError{Host: t.Host(), Err: err}
	case err != nil:
		return t.again(r, errors.New(terminal.Line(err.Error())), first<<attempt, attempt)
	}
	switch code := response.StatusCode; {
	case limited(response):
		return t.asked(response, attempt), nil
	case code >= 500 && code != http.StatusNotImplemented:
		return t.again(r, fmt.Errorf("it answers %s", terminal.Line(response.Status)), t.asked(response, attempt), attempt)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return 0, t.refused(r, response)
	case code == http.StatusNotFound && t.o.Hidden != "" && strings.Contains(said(response), t.o.Hidden):
		return 0, t.refused(r, response)
	}
	return 0, nil
}

// again is for a request of which nobody knows what became of it: a read is made
// again, and a write is for those to look up who know what it was.
func (t *transport) again(r *http.Request, err error, pause time.Duration, attempt int) (time.Duration, error) {
	if !reads(r) {
		return 0, &LostError{Err: err}
	}
	if attempt == repeats {
		return 0, &forge.UnavailableError{Host: t.Host(), Err: err}
	}
	return pause, nil
}

// refused is the error for an answer that wants other credentials.
func (t *transport) refused(r *http.Request, response *http.Response) error {
	status := terminal.Line(t.without(response.Status))
	problem := fmt.Sprintf("%s %s: %s", r.Method, terminal.Line(r.URL.Path), status)
	if words := said(response); words != "" && words != status {
		problem += ": " + words
	}
	if t.o.Credentials == "" {
		problem = "there is no token: " + problem
	}
	return &refusal{code: response.StatusCode, error: &forge.AuthError{Host: t.Host(), Problem: terminal.Line(problem), Hint: t.o.Hint}}
}

// refusal is a *forge.AuthError with the status code that it is made of.
type refusal struct {
	code int
	error
}

func (r *refusal) Unwrap() error { return r.error }

// Refused reports whether an error, within Do, is that the credentials are good but
// not for this.
func Refused(err error) bool {
	refused := (*refusal)(nil)
	return errors.As(err, &refused) && refused.code == http.StatusForbidden
}

// without leaves the credentials out of what a server says: some show what they were
// sent.
func (t *transport) without(text string) string {
	token := t.o.Credentials
	if _, after, ok := strings.Cut(token, " "); ok {
		token = after
	}
	if token == "" {
		return text
	}
	return strings.ReplaceAll(text, token, "[token]")
}

// said is what an answer says, which stays to be read.
func said(response *http.Response) string {
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

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// limited reports whether the server has done nothing because of too many requests.
// Some say so with 403, which is a refusal without these headers.
func limited(response *http.Response) bool {
	h := response.Header
	return response.StatusCode == http.StatusTooManyRequests ||
		response.StatusCode == http.StatusForbidden && (h.Get("Retry-After") != "" ||
			h.Get("RateLimit-Remaining") == "0" || h.Get("X-RateLimit-Remaining") == "0")
}

// asked is how long the server asks to wait, more than zero: by Retry-After (RFC 9110,
// 10.2.3), or by RateLimit-Reset, which is a time for GitLab
// (https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/) and
// seconds for others.
func (t *transport) asked(response *http.Response, attempt int) time.Duration {
	now, h := t.o.Now(), response.Header
	for _, name := range []string{"Retry-After", "RateLimit-Reset", "X-RateLimit-Reset"} {
		value := strings.TrimSpace(h.Get(name))
		if at, err := http.ParseTime(value); err == nil {
			return within(at.Sub(now))
		}
		seconds, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil || seconds < 0:
		case seconds > 1e9: // a time: as seconds, they would be thirty years
			return within(time.Unix(min(seconds, 1e12), 0).Sub(now))
		default:
			return within(time.Duration(seconds) * time.Second)
		}
	}
	return first << min(attempt, 10)
}

func within(d time.Duration) time.Duration { return min(max(d, time.Second), longest) }
