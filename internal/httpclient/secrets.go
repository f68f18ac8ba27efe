package httpclient

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/internal/credential"

	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Secrets are the passwords and tokens that were used: a server may repeat them.
// Its zero value has none. Any number of goroutines may use it.
type Secrets struct {
	mu    sync.Mutex
	words []string
}

// shortest is how long a password must be to be looked for: shorter ones are in
// words of any text.
const shortest = 4

// Add adds words that no text may have.
func (s *Secrets) Add(words ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, word := range words {
		if len(word) >= shortest && !slices.Contains(s.words, word) {
			s.words = append(s.words, word)
		}
	}
}

// query is what follows the path of an address.
var query = regexp.MustCompile(`(https?://[^\s"'?#]*)[?#][^\s"']*`)

// Clean returns a text as one line without passwords, user names beside them, and
// the queries of addresses: those after a redirect may be signed.
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

// Problem is what an error says, clean, and without the addresses that net/http
// adds.
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

// Cleaned is an error that says what Problem does. errors.Is finds what it found
// before; errors.As finds the types of this package alone, since the text of others
// is not clean.
func (s *Secrets) Cleaned(err error) error { return &cleaned{err, s} }

type cleaned struct {
	err     error
	secrets *Secrets
}

func (c *cleaned) Error() string { return c.secrets.Problem(c.err) }

func (c *cleaned) Is(target error) bool { return errors.Is(c.err, target) }

func (c *cleaned) As(target any) bool {
	switch target.(type) {
	case **TooLongError, **ProxyError:
		return errors.As(c.err, target)
	}
	return false
}
