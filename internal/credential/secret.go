package credential

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Masked is shown in place of a secret.
const Masked = "***"

// Secret reports whether a value looks like a secret in plain text, by its name or by
// itself.
func Secret(name, text string) bool { return text != "" && (Named(name) || Looks(text)) }

// namedWords are words that make a name look like a secret's. keyWords are words that do so
// before "key".
var (
	namedWords = []string{"password", "passwd", "passphrase", "secret", "token", "credential",
		"credentials", "apikey", "privatekey", "accesskey", "secretkey"}
	keyWords = []string{"private", "api", "access", "account", "encryption", "master", "signing"}
)

// Named reports whether a name looks like the name of a secret: DB_PASSWORD, apiKey,
// AWS_SECRET_ACCESS_KEY.
func Named(name string) bool {
	of := Words(name)
	for i, word := range of {
		if slices.Contains(namedWords, word) || word == "key" && i > 0 &&
			slices.Contains(keyWords, of[i-1]) {
			return true
		}
	}
	return false
}

// Words splits a name at characters other than letters and digits, and at camel humps,
// in lower case.
func Words(name string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			continue
		}
		hump := unicode.IsUpper(r) && i > 0 &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if hump {
			flush()
		}
		word = append(word, r)
	}
	flush()
	return out
}

// known matches tokens whose form shows their service: GitHub, GitLab, Slack, AWS and Stripe, and
// JSON Web Tokens.
var known = lazyregexp.New(
	`^(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{50,}|glpat-[\w-]{20,}|xox[abpr]-[\w-]{10,}|AKIA[A-Z0-9]{16}|sk_live_\w{16,}|eyJ[\w-]{8,}\.eyJ[\w-]+\.[\w-]*)$`)

// Looks reports whether a text looks like a secret, independent of its name. Such a text is a
// private key, a URL with a password, a token of a well-known form, or random characters.
// Digests, and ids in hex, do not look like secrets.
func Looks(text string) bool {
	if len(text) < minRandom {
		return strings.Contains(text, "://") && In(text) == passwordBefore
	}
	switch {
	case strings.Contains(text, "-----BEGIN"):
		return strings.Contains(text, "PRIVATE KEY-----")
	case strings.Contains(text, "://"):
		return In(text) == passwordBefore
	}
	return known.MatchString(text) || random(text)
}

const passwordBefore = "the password before the host"

// minRandom is the minimum length of random characters, in bytes, and minEntropy their minimum
// entropy, in bits for each. The entropy of 24 random characters of base64 is about 4.3. Words,
// paths and versions have less.
const (
	minRandom  = 20
	minEntropy = 4.2
)

// random reports whether a text consists of characters at random, as generated passwords
// do.
func random(text string) bool {
	var upper, lower, digit bool
	count := map[rune]int{}
	for _, r := range text {
		switch {
		case r >= 'A' && r <= 'Z':
			upper = true
		case r >= 'a' && r <= 'z':
			lower = true
		case r >= '0' && r <= '9':
			digit = true
		case r != '+' && r != '/' && r != '=' && r != '_' && r != '!' && r != '$' && r != '%' &&
			r != '^' && r != '*' && r != '#':
			return false
		}
		count[r]++
	}
	if !upper || !lower || !digit {
		return false
	}
	entropy := 0.0
	for _, n := range count {
		p := float64(n) / float64(len(text))
		entropy -= p * math.Log2(p)
	}
	return entropy >= minEntropy
}
