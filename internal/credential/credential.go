// Package credential finds credentials in URLs, and hides them in texts: URLs are printed,
// stored and sent to others, and a credential is for one host only.
package credential

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// In returns which part of an address is a credential, or may be one, such as "the user
// name before the host", or "". The address is a URL, or user@host:path as ssh writes it.
// For ssh a user name without a password is not a credential, because its keys are
// elsewhere.
func In(address string) string {
	scheme, rest, isURL := strings.Cut(address, "://")
	if !isURL {
		user, _, isSCP := strings.Cut(address, "@")
		if isSCP && strings.ContainsAny(user, ":%") {
			return passwordBefore
		}
		return ""
	}
	ssh := strings.EqualFold(scheme, "ssh") || strings.EqualFold(scheme, "git+ssh")
	if user := userinfo(rest); user != "" {
		switch decoded, err := url.PathUnescape(user); {
		case err != nil || strings.Contains(decoded, ":"):
			return passwordBefore
		case !ssh:
			return "the user name before the host"
		}
	}
	rest, _, hasFragment := strings.Cut(rest, "#")
	if hasFragment {
		return "the fragment"
	}
	_, query, _ := strings.Cut(rest, "?")
	for _, parameter := range strings.FieldsFunc(query, separates) {
		if name, _, _ := strings.Cut(parameter, "="); isSecret(name) {
			return "the query parameter " + name
		}
	}
	return ""
}

// userinfo returns the part before the host, with the @, or "". A password may have a
// slash, which leaves an invalid port.
func userinfo(rest string) string {
	authority, _, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		return authority[:i+1]
	}
	if m := badPort.FindString("://" + rest); m != "" {
		return m
	}
	return ""
}

func separates(r rune) bool { return r == '&' || r == ';' }

// HasQuery reports whether an address has a query.
func HasQuery(address string) bool {
	_, rest, isURL := strings.Cut(address, "://")
	return isURL && strings.Contains(rest, "?")
}

// secretParts are texts that the name of a parameter with a credential contains. secretWords are
// whole words of such a name.
var (
	secretParts = []string{"token", "passw", "secret", "credential", "signature", "apikey"}
	secretWords = []string{"auth", "authorization", "bearer", "jwt", "key", "pass", "pat", "pwd",
		"sas", "sig"}
)

// isSecret reports whether a parameter of that name has a credential.
func isSecret(name string) bool {
	if decoded, err := url.QueryUnescape(name); err == nil {
		name = decoded
	}
	name = strings.ToLower(name)
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(secretParts,
		func(part string) bool { return strings.Contains(name, part) }) ||
		slices.ContainsFunc(words, func(word string) bool { return slices.Contains(secretWords, word) })
}

// badPort and before match a possible credential before a host in a text. parameter matches a
// part of a query or a fragment.
var (
	badPort   = lazyregexp.New("://[^/?#\\s\"'`@]*:[0-9]*[^0-9/\\s\"'`@][^\\s\"'`@]*@")
	before    = lazyregexp.New("([A-Za-z][A-Za-z0-9+.-]*://)([^/?#\\s\"'`]*)@")
	parameter = lazyregexp.New("([?&;#])([^=&;?#\\s\"'`]+)=([^&;#\\s\"'`]+)")
)

// Hide returns a text without the credentials of its URLs: the part before a host is
// removed, except for user names of ssh. The value of a parameter becomes ***.
func Hide(text string) string {
	if strings.Contains(text, "://") && strings.Contains(text, "@") {
		text = before.ReplaceAllStringFunc(text, func(found string) string {
			m := before.FindStringSubmatch(found)
			if strings.HasSuffix(m[1], "ssh://") && !strings.ContainsAny(m[2], ":%") {
				return found
			}
			return m[1]
		})
		text = badPort.ReplaceAllString(text, "://")
	}
	if !strings.Contains(text, "=") {
		return text
	}
	return parameter.ReplaceAllStringFunc(text, func(found string) string {
		if m := parameter.FindStringSubmatch(found); isSecret(m[2]) {
			return m[1] + m[2] + "=***"
		}
		return found
	})
}
