package git

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Signature is the author of a commit, with the time.
type Signature struct {
	Name, Email string
	When        time.Time
}

// String returns the signature as commits and reflogs have it. Characters that would break
// the line are removed from names, as git does.
func (s Signature) String() string {
	return fmt.Sprintf("%s <%s> %d %s", clean(s.Name), clean(s.Email), s.When.Unix(),
		s.When.Format("-0700"))
}

// clean is git's strbuf_addstr_without_crud.
func clean(s string) string {
	s = strings.TrimFunc(s,
		func(r rune) bool { return r <= ' ' || strings.ContainsRune(`.,:;<>"\'`, r) })
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '<' || r == '>' || r == 0 {
			return -1
		}
		return r
	}, s)
}

// Commit is a commit to be made.
type Commit struct {
	Tree              Hash
	Parents           []Hash
	Author, Committer Signature
	Message           string
}

// Encode returns the commit's content, without a signature. The message ends in one
// newline.
func (c Commit) Encode() []byte { return c.encode("") }

// Signed returns the commit's content with a signature, which sign computes from the
// content without it; with a nil sign it has no signature. The format is
// https://git-scm.com/docs/gitformat-signature.
func (c Commit) Signed(sign func(content []byte) (string, error)) ([]byte, error) {
	if sign == nil {
		return c.Encode(), nil
	}
	signature, err := sign(c.Encode())
	return c.encode(signature), err
}

func (c Commit) encode(signature string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, p := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n", c.Author, c.Committer)
	if signature != "" {
		fmt.Fprintf(&b, "gpgsig %s\n",
			strings.ReplaceAll(strings.TrimRight(signature, "\n"), "\n", "\n "))
	}
	message := strings.TrimRight(strings.ReplaceAll(c.Message, "\x00", ""), "\n")
	fmt.Fprintf(&b, "\n%s\n", message)
	return b.Bytes()
}

// Signatures returns the author and the committer. If given lacks a name or an email address,
// Signatures looks for it as git does, in this order: in GIT_AUTHOR_* and GIT_COMMITTER_*, in the
// configurations, and in fallback. In the configurations of the repository and the user, it reads
// author.*, committer.* and user.*. The time is the first of these:
//
//   - the time of given
//   - GIT_AUTHOR_DATE and GIT_COMMITTER_DATE, as seconds and offset, RFC 3339 or RFC 2822
//   - SOURCE_DATE_EPOCH
//   - the time of fallback
func (r *Repository) Signatures(given, fallback Signature) (author, committer Signature,
	err error) {
	configs := append(userConfigs(), nil)
	copy(configs[1:], configs)
	configs[0] = r.config
	find := func(role, part string) string {
		if v := map[string]string{"name": given.Name, "email": given.Email}[part]; v != "" {
			return v
		}
		if v := os.Getenv("GIT_" + strings.ToUpper(role+"_"+part)); v != "" {
			return v
		}
		for _, section := range []string{role, "user"} {
			for _, c := range configs {
				if v, _ := option(c, section, part); v != "" {
					return v
				}
			}
		}
		return map[string]string{"name": fallback.Name, "email": fallback.Email}[part]
	}
	when := given.When
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); when.IsZero() && epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return author, committer, fmt.Errorf("SOURCE_DATE_EPOCH is %q, not seconds", epoch)
		}
		when = time.Unix(seconds, 0).UTC()
	}
	if when.IsZero() {
		when = fallback.When
	}
	sign := func(role string) (Signature, error) {
		s := Signature{Name: find(role, "name"), Email: find(role, "email"), When: when}
		name := "GIT_" + strings.ToUpper(role) + "_DATE"
		v := os.Getenv(name)
		if v == "" || !given.When.IsZero() {
			return s, nil
		}
		if s.When, err = parseDate(v); err != nil {
			return s, fmt.Errorf(
				"%s is %q, which is not a date: write 2006-01-02T15:04:05Z or @seconds +0000", name, v)
		}
		return s, nil
	}
	if author, err = sign("author"); err != nil {
		return author, committer, err
	}
	if committer, err = sign("committer"); err != nil {
		return author, committer, err
	}
	for _, s := range []Signature{author, committer} {
		if s.When.Unix() < 0 {
			return author, committer, fmt.Errorf("%s is before 1970, which git does not know", s.When)
		}
		if clean(s.Name) == "" {
			return author, committer, fmt.Errorf("%q is not a name for an author or committer", s.Name)
		}
	}
	return author, committer, nil
}

// parseDate reads the formats that git documents for its variables
// (https://git-scm.com/docs/git-commit#_date_formats).
func parseDate(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	if seconds, offset, ok := strings.Cut(strings.TrimPrefix(s, "@"), " "); ok {
		n, err := strconv.ParseInt(seconds, 10, 64)
		zone, zoneErr := time.Parse("-0700", offset)
		if err == nil && zoneErr == nil {
			return time.Unix(n, 0).In(zone.Location()), nil
		}
	}
	if n, err := strconv.ParseInt(strings.TrimPrefix(s, "@"), 10, 64); err == nil {
		return time.Unix(n, 0).UTC(), nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05 -0700",
		"2006-01-02 15:04:05",
		time.RFC1123Z, "Mon, 2 Jan 2006 15:04:05 -0700",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("no known format")
}
