package plain

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/kalypso-io/kalypso/internal/git"
)

// object is a commit or a tag, which is not trusted.
type object struct {
	headers [][2]string // in their order, continuation lines joined by newlines
	message string
	// payload is the signed text, and signature the armoured signature.
	payload, signature []byte
}

const beginSSH = "-----BEGIN SSH SIGNATURE-----"

// parseCommit parses a commit. Its signature is a header, and covers the commit without it
// (https://git-scm.com/docs/gitformat-signature).
func parseCommit(data []byte) object {
	o := object{}
	header, message, _ := strings.Cut(string(data), "\n\n")
	o.headers, o.message = parseHeaders(header), message
	var payload bytes.Buffer
	inside := false
	for line := range strings.SplitSeq(header, "\n") {
		if signature, ok := strings.CutPrefix(line, "gpgsig "); ok && o.signature == nil {
			inside, o.signature = true, []byte(signature+"\n")
			continue
		}
		if rest, ok := strings.CutPrefix(line, " "); ok && inside {
			o.signature = append(o.signature, rest+"\n"...)
			continue
		}
		inside = false
		payload.WriteString(line + "\n")
	}
	payload.WriteString("\n" + message)
	o.payload = payload.Bytes()
	return o
}

// parseTag parses an annotated tag. Its signature is at its end, and covers everything
// before it: it begins at the last line that could begin one, as for git.
func parseTag(data []byte) object {
	o := object{payload: data}
	for at := 0; at < len(data); {
		line, _, _ := bytes.Cut(data[at:], []byte("\n"))
		if bytes.HasPrefix(line, []byte("-----BEGIN ")) && (bytes.HasSuffix(line,
			[]byte(" SIGNATURE-----")) || bytes.HasSuffix(line, []byte(" MESSAGE-----"))) {
			o.payload, o.signature = data[:at], data[at:]
		}
		at += len(line) + 1
	}
	header, message, _ := strings.Cut(string(o.payload), "\n\n")
	o.headers, o.message = parseHeaders(header), message
	return o
}

func parseHeaders(text string) (headers [][2]string) {
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, " "); ok && len(headers) > 0 {
			headers[len(headers)-1][1] += "\n" + rest
			continue
		}
		name, value, _ := strings.Cut(line, " ")
		headers = append(headers, [2]string{name, value})
	}
	return headers
}

// header returns the only header with a name. If there are two, readers could use either, so
// neither counts. It returns "" if no header counts.
func (o object) header(name string) string {
	found, value := 0, ""
	for _, h := range o.headers {
		if h[0] == name {
			found, value = found+1, h[1]
		}
	}
	if found != 1 {
		return ""
	}
	return value
}

// person returns the person of a header, as "Name <email>", and the time.
func (o object) person(name string) (string, time.Time, error) {
	by, at, ok := parsePerson(o.header(name))
	if !ok {
		return "", time.Time{}, fmt.Errorf("it does not say who the %s is, and when", name)
	}
	return by, at, nil
}

// parsePerson parses Name <email> SECONDS OFFSET.
func parsePerson(value string) (string, time.Time, bool) {
	open, end := strings.LastIndex(value, "<"), strings.LastIndex(value, ">")
	if open < 0 || end < open {
		return "", time.Time{}, false
	}
	seconds, _, _ := strings.Cut(strings.TrimSpace(value[end+1:]), " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || at < 0 || at > 1<<40 {
		return "", time.Time{}, false
	}
	return person(strings.TrimSpace(value[:open]), value[open+1:end]), time.Unix(at, 0).UTC(), true
}

// person returns a name and an address. It has a space, which no principal has, so that no
// committer can take the name of a signer.
func person(name, email string) string { return name + " <" + email + ">" }

// namespace is the namespace of git's signatures.
const namespace = "git"

var errUnsigned = errors.New("it is not signed with SSH")

// key returns the key of an object's signature, if that is valid.
func (o object) key() (ssh.PublicKey, error) {
	if !bytes.HasPrefix(o.signature, []byte(beginSSH)) {
		return nil, errUnsigned
	}
	signature, err := sshsig.Unarmor(o.signature)
	if err != nil {
		return nil, fmt.Errorf("its signature: %w", err)
	}
	if err := sshsig.Verify(bytes.NewReader(o.payload), signature, signature.PublicKey,
		signature.HashAlgorithm, namespace); err != nil {
		return nil, fmt.Errorf("its signature: %w", err)
	}
	return signature.PublicKey, nil
}

// encode returns a commit, signed if there is a signer.
func (f *Forge) encode(c git.Commit) ([]byte, error) {
	if f.o.Signer == nil {
		return c.Encode(), nil
	}
	return c.Signed(func(content []byte) (string, error) {
		signature, err := sshsig.Sign(bytes.NewReader(content), f.o.Signer, sshsig.HashSHA512, namespace)
		if err != nil {
			return "", fmt.Errorf("sign the note: %w", err)
		}
		return string(sshsig.Armor(signature)), nil
	})
}

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
	// If a key has several principals, only the first one counts. Otherwise each would count as
	// another approver.
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

// principal returns the principal of a key at a time.
func (all signers) principal(key ssh.PublicKey, at time.Time) (string, bool) {
	wire := key.Marshal()
	for _, s := range all {
		if bytes.Equal(s.key, wire) && (s.after.IsZero() || !at.Before(s.after)) &&
			(s.before.IsZero() || !at.After(s.before)) {
			return s.principal, true
		}
	}
	return "", false
}
