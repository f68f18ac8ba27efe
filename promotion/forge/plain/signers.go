package plain

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// signers are the entries of an allowed signers file, in its order: ssh-keygen(1), ALLOWED
// SIGNERS.
type signers []signer

type signer struct {
	principal     string
	key           []byte // in the format of the wire
	after, before time.Time
}

// parseSigners parses a file of allowed signers. Lines for other namespaces than git's are
// left out, and so are certificate authorities, because certificates are not supported: it
// allows less than ssh-keygen, never more.
func parseSigners(file []byte) (signers, error) {
	var all signers
	number := 0
	for line := range strings.SplitSeq(string(file), "\n") {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s, ok, err := parseSigner(line)
		if err != nil {
			return nil, fmt.Errorf("allowed_signers, line %d: %w", number, err)
		}
		if ok {
			all = append(all, s)
		}
	}
	return all, nil
}

func parseSigner(line string) (s signer, ok bool, err error) {
	at := strings.IndexAny(line, " \t")
	if at < 0 || strings.ContainsAny(line[:at], "\"<>") {
		return s, false, fmt.Errorf("it is not PRINCIPALS [OPTIONS] KEYTYPE KEY")
	}
	// Of several principals of one key, the first one stands for all: otherwise each would
	// count as another approver.
	s.principal, _, _ = strings.Cut(line[:at], ",")
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line[at:]))
	if err != nil || len(rest) > 0 || s.principal == "" {
		return s, false, fmt.Errorf("it has no key that can be read")
	}
	s.key, ok = key.Marshal(), true
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "cert-authority":
			ok = false
		case "namespaces":
			ok = ok && allows(value)
		case "valid-after":
			s.after, err = parseTime(value)
		case "valid-before":
			s.before, err = parseTime(value)
		default:
			err = fmt.Errorf("the option %q is not known", name)
		}
		if err != nil {
			return s, false, err
		}
	}
	if !s.after.IsZero() && !s.before.IsZero() && !s.after.Before(s.before) {
		return s, false, fmt.Errorf("valid-before is not after valid-after")
	}
	return s, ok, nil
}

// allows reports whether a list of patterns has git's namespace. A negated pattern refuses,
// wherever it is: ssh_config(5), PATTERNS.
func allows(list string) bool {
	found := false
	for pattern := range strings.SplitSeq(list, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if matches(pattern, namespace) {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}

// matches reports whether a text matches a pattern with * and ?.
func matches(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return matches(pattern[1:], text) || text != "" && matches(pattern, text[1:])
	case text != "" && (pattern[0] == '?' || pattern[0] == text[0]):
		return matches(pattern[1:], text[1:])
	}
	return false
}

// parseTime parses YYYYMMDD[HHMM[SS]][Z]: without the Z, it is local time.
func parseTime(text string) (time.Time, error) {
	zone := time.Local
	digits, utc := strings.CutSuffix(text, "Z")
	if utc {
		zone = time.UTC
	}
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if len(digits) == len(layout) {
			if at, err := time.ParseInLocation(layout, digits, zone); err == nil {
				return at, nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time: YYYYMMDD[HHMM[SS]][Z]", text)
}

// of returns the principal of a key at a time.
func (all signers) of(key ssh.PublicKey, at time.Time) (string, bool) {
	wire := key.Marshal()
	for _, s := range all {
		if bytes.Equal(s.key, wire) && (s.after.IsZero() || !at.Before(s.after)) &&
			(s.before.IsZero() || !at.After(s.before)) {
			return s.principal, true
		}
	}
	return "", false
}
