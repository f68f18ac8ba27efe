package diag

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Excerpt is the line that a position is in, in three parts: the text before the word that
// the position points to, the word, and the text after it. The parts are fit for a
// terminal, and likely secrets in them are masked. The zero Excerpt has no line.
type Excerpt struct{ Before, At, After string }

// IsZero reports whether the excerpt has no line.
func (e Excerpt) IsZero() bool { return e.At == "" }

// How much of a line an excerpt has, in columns of a terminal.
const (
	maxBefore = 64
	maxLine   = 100
)

// longest is the largest length of a line, in bytes. Nobody writes longer lines by hand,
// and finding the secrets in one for each of its diagnostics would take long.
const longest = 4096

// NewExcerpt returns the excerpt of the line of a position. secret reports that the value
// at the position may be a secret. The excerpt is zero if the line is empty, too long, not
// text, or has no such column. It is also zero if it may show a secret in a language other
// than CUE, where strings need no quotes. The column after the last one is the end of the
// line.
func NewExcerpt(line string, p model.Position, secret bool) Excerpt {
	line = strings.TrimRight(line, "\r\n")
	at := p.Column - 1
	if len(line) > longest || at < 0 || at > len(line) || strings.TrimSpace(line) == "" ||
		!utf8.ValidString(line) || at < len(line) && !utf8.RuneStart(line[at]) {
		return Excerpt{}
	}
	e := Excerpt{Before: line[:at], At: " "}
	if at < len(line) {
		e.At = word(line[at:])
		e.After = line[at+len(e.At):]
	}
	if path.Ext(p.File) != ".cue" &&
		(secret || namesSecret(line) || slices.ContainsFunc(strings.Fields(line), mayBeSecret)) {
		return Excerpt{}
	}
	return e.masked(secret).cut()
}

// cut returns the excerpt as printable text, shortened so that it fits.
func (e Excerpt) cut() Excerpt {
	indent := e.Before[:len(e.Before)-len(strings.TrimLeft(e.Before, "\t"))]
	e.Before = terminal.Printable(e.Before[len(indent):])
	if whole := 8*len(indent) + width(e.Before+terminal.Printable(e.At+e.After)); whole > maxLine &&
		width(e.Before)+8*len(indent) > maxBefore {
		e.Before, indent = "…"+columns.TruncateLeft(e.Before, width(e.Before)-maxBefore/2, ""), ""
	}
	left := maxLine - width(e.Before) - 8*len(indent)
	e.At = first(terminal.Printable(e.At), left)
	e.After = strings.TrimRight(first(terminal.Printable(e.After), left-width(e.At)), " ")
	e.Before = indent + e.Before
	return e
}

// word returns the beginning of a text: a string with its quotes, a word, or one character.
func word(text string) string {
	if quote := text[0]; quote == '"' || quote == '\'' {
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case quote:
				return text[:i+1]
			}
		}
		return text
	}
	end := strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) &&
			!strings.ContainsRune("_$#-", r)
	})
	switch {
	case end < 0:
		return text
	case end == 0:
		_, end = utf8.DecodeRuneInString(text)
	}
	return text[:end]
}

// masked returns the excerpt without strings that may be secrets: strings after a name that
// looks like the name of a secret, and strings that look like secrets themselves. secret
// reports that the name before the line belongs to a secret.
func (e Excerpt) masked(secret bool) Excerpt {
	for _, part := range []struct {
		text  *string
		after string
	}{{&e.Before, e.At + e.After}, {&e.At, e.After}, {&e.After, ""}} {
		*part.text, secret = mask(*part.text, part.after, secret)
	}
	return e
}

// mask replaces the strings in a part of a line that may be secrets. secret reports that
// the last name before the part belongs to a secret. mask returns the same about the text
// after the part.
func mask(text, after string, secret bool) (string, bool) {
	var out strings.Builder
	for text != "" {
		of := word(text)
		text = text[len(of):]
		quoted := of[0] == '"' || of[0] == '\''
		value := strings.Trim(of, `"'`)
		switch {
		case isName(text + after):
			secret = credential.Named(value)
		case quoted && (secret || mayBeSecret(value)):
			of = of[:1] + credential.Masked + of[:1]
		case credential.Looks(of):
			of = credential.Masked
		}
		out.WriteString(of)
	}
	return credential.Hide(out.String()), secret
}

// mayBeSecret reports whether a string looks like a secret, or is a URL that may have
// one.
func mayBeSecret(text string) bool {
	return credential.Looks(text) || credential.In(text) != "" || credential.HasQuery(text)
}

// isName reports whether a word is a name, by the text after it.
func isName(after string) bool { return strings.HasPrefix(strings.TrimLeft(after, "?! "), ":") }

// namesSecret reports whether a line has a name that looks like that of a secret.
func namesSecret(line string) bool {
	for line != "" {
		of := word(line)
		if line = line[len(of):]; isName(line) && credential.Named(strings.Trim(of, `"'`)) {
			return true
		}
	}
	return false
}

// columns are the columns of a terminal, in any language.
var columns = &runewidth.Condition{StrictEmojiNeutral: true}

func width(text string) int { return columns.StringWidth(text) }

// first returns the beginning of a text, with a mark at the cut.
func first(text string, most int) string { return columns.Truncate(text, max(most, 1), "…") }

// carets are the text below the line: the indentation of the text before the word, and
// a caret for each of the word's columns.
func (e Excerpt) carets() (indent, carets string) {
	indent = strings.Repeat("\t", strings.Count(e.Before, "\t"))
	return indent + strings.Repeat(" ", width(e.Before[len(indent):])),
		strings.Repeat("^", max(width(e.At), 1))
}
