package httpclient

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/internal/address"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Secrets are the passwords and tokens of requests, which a server may repeat in its answers. The
// zero value has no secrets. Any number of goroutines may use it.
type Secrets struct {
	mu    sync.Mutex
	words []string
}

// shortest is the length of the shortest password that is removed. A shorter one may be a part of
// ordinary words.
const shortest = 4

// Add adds passwords and tokens that no text may have.
func (s *Secrets) Add(words ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, word := range words {
		if len(word) >= shortest && !slices.Contains(s.words, word) {
			s.words = append(s.words, word)
		}
	}
}

// query is a URL up to its path, and the query or fragment after it.
var query = lazyregexp.New(`(https?://[^\s"'?#]*)[?#][^\s"']*`)

// Clean returns a text as one line without passwords, the user names next to them, and the
// queries of URLs. After a redirect, a query may contain a signature.
func (s *Secrets) Clean(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = credential.Hide(text)
	text = query.ReplaceAllString(text, "$1")
	for _, word := range s.words {
		text = strings.ReplaceAll(text, word, "***")
		text = strings.ReplaceAll(text, url.QueryEscape(word), "***")
	}
	return strings.TrimSpace(terminal.Line(text))
}

// Problem returns the text of an error, clean, and without the URLs that net/http adds.
func (s *Secrets) Problem(err error) string {
	if proxy := (*ProxyError)(nil); errors.As(err, &proxy) {
		return s.Clean(proxy.Error())
	}
	if address := (*url.Error)(nil); errors.As(err, &address) {
		host := ""
		if u, parseErr := url.Parse(address.URL); parseErr == nil {
			host = u.Host + ": "
		}
		return s.Clean(host + address.Err.Error())
	}
	return s.Clean(err.Error())
}

// CleanError returns an error with the text of Problem. errors.Is works as for err. errors.As finds
// only the types whose text is clean: the types of this package, and *address.LocalError.
func (s *Secrets) CleanError(err error) error { return &cleanError{err, s} }

type cleanError struct {
	err     error
	secrets *Secrets
}

func (c *cleanError) Error() string { return c.secrets.Problem(c.err) }

func (c *cleanError) Is(target error) bool { return errors.Is(c.err, target) }

func (c *cleanError) As(target any) bool {
	switch target.(type) {
	case **TooLongError, **ProxyError, **address.LocalError:
		return errors.As(c.err, target)
	}
	return false
}
