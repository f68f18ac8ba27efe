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
	// payload is what a signature is of, and signature the armoured signature.
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

// header returns the only header of a name: of two, readers could use either, so neither
// counts. It is "" for none.
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

// by returns the person of a header, as "Name <email>", and the time.
func (o object) by(name string) (string, time.Time, error) {
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

// namespace is that of git's signatures.
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

// encode returns a commit, signed where there is a signer.
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
