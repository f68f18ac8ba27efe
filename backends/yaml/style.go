package yaml

import (
	"strings"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// style is how a string is written.
type style int

const (
	plainStyle style = iota
	singleQuoted
	doubleQuoted
	literalStyle
)

// styleOf returns the style of a string in the output. It is plain if every reader reads it as that
// string, a literal block if it has lines, and quoted otherwise. People use double quotes, and
// single quotes save escapes.
func styleOf(s string) style {
	c := classOf(s)
	switch {
	case c.special:
		return doubleQuoted
	case c.lines:
		if literal(s) {
			return literalStyle
		}
		return doubleQuoted
	case c.tabs:
		return doubleQuoted
	case !c.indicators && !ambiguous(s):
		return plainStyle
	case c.escapes:
		return singleQuoted
	}
	return doubleQuoted
}

// class has the properties of a string that decide its style.
type class struct {
	special    bool // characters that YAML cannot contain without an escape, or not in every version
	lines      bool // line feeds
	tabs       bool
	escapes    bool // characters that double quotes escape
	indicators bool // characters that have a meaning of their own in a plain scalar
}

func classOf(s string) class {
	var c class
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case ordinary[b]:
		case b == '\n':
			c.lines = true
		case b == '\t':
			c.tabs = true
		case b == '"' || b == '\\':
			c.escapes = true
		case b == ':':
			c.indicators = c.indicators || i+1 == len(s) || s[i+1] == ' '
		case b == '#':
			c.indicators = c.indicators || i > 0 && s[i-1] == ' '
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			c.special = c.special || !printable(r)
			i += size - 1
		}
	}
	c.indicators = c.indicators || s == "" || s[0] == ' ' || s[len(s)-1] == ' ' || indicatorFirst(s)
	return c
}

// ordinary are the characters of ASCII that do not decide the style, except in the first
// place. Almost all characters are ordinary.
var ordinary = func() (is [256]bool) {
	for b := ' '; b <= '~'; b++ {
		is[b] = !strings.ContainsRune("\"\\:#", b)
	}
	return is
}()

// printable reports whether every reader of YAML accepts the character without an escape, in any
// place. NEL, LS and PS are line breaks only in YAML 1.1. A BOM is dropped at the start
// (https://yaml.org/spec/1.2.2/#51-character-set). kubectl and flux also escape characters of more
// than 16 bits.
func printable(r rune) bool {
	switch r {
	case 0x85, 0x2028, 0x2029, 0xFEFF:
		return false
	}
	return r >= 0x20 && r < 0x7F || r >= 0xA0 && r <= 0xD7FF || r >= 0xE000 && r <= 0xFFFD
}

// indicatorFirst reports whether a string begins as no plain scalar can
// (https://yaml.org/spec/1.2.2/#733-plain-style), or like the end of a document.
func indicatorFirst(s string) bool {
	switch s[0] {
	case '-', '?', ':':
		return len(s) == 1 || s[1] == ' ' || strings.HasPrefix(s, "---")
	}
	return strings.ContainsRune(",[]{}#&*!|>'\"%@`", rune(s[0])) || strings.HasPrefix(s, "...")
}

// literal reports whether a literal block preserves a string with lines exactly, and shows it. A
// string that begins with white space needs an indentation indicator, and readers disagree about
// it. People do not see blanks before a line's end and empty lines at the end. Editors remove them,
// and so does Helm at the end of a document.
func literal(s string) bool {
	return s[0] != ' ' && s[0] != '\t' && s[0] != '\n' &&
		!strings.HasSuffix(s, "\n\n") && !strings.HasSuffix(s, " ") && !strings.HasSuffix(s, "\t") &&
		!strings.Contains(s, " \n") && !strings.Contains(s, "\t\n")
}

// words are texts that are not strings in YAML 1.1 or 1.2, in any case. They are from
// https://yaml.org/type/{bool,null,merge,value}.html.
var words = map[string]bool{
	"": true, "~": true, "null": true, "=": true, "<<": true,
	"y": true, "yes": true, "n": true, "no": true, "true": true, "false": true, "on": true,
	"off": true,
}

// number matches the numbers and timestamps of YAML 1.1
// (https://yaml.org/type/{int,float,timestamp}.html), of the core schema of 1.2 and of the Go and
// Python readers. It matches little else: underscores in most places, prefixes in either case,
// signs behind them, and exponents without a sign.
var number = lazyregexp.New(`^(?:` + strings.Join([]string{
	`[-+]?[0-9_]+`,
	`[-+]?0[bB][-+]?[01_]+`,
	`[-+]?0[oO][-+]?[0-7_]+`,
	`[-+]?0[xX][0-9a-fA-F_]+`,
	`[-+]?[0-9_]*\.[0-9._]*(?:[eE][-+]?[0-9_]*)?`,
	`[-+]?[0-9][0-9_]*[eE][-+]?[0-9_]+`,
	`[-+]?[0-9][0-9_]*(?::[0-9]{1,2})+(?:\.[0-9_]*)?`,
	`[-+]?\.(?i:inf|nan)`,
	`[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ][-+0-9:.TtZz ]*)?`,
}, "|") + `)$`)

// ambiguous reports whether a reader would read a plain string as another type.
func ambiguous(s string) bool {
	if s == "" {
		return true
	}
	if c := s[0]; c == '+' || c == '-' || c == '.' || c >= '0' && c <= '9' || c == '_' {
		// Go's readers remove all underscores first: to them 0_x1F and -_1 are numbers.
		return number.MatchString(s) || number.MatchString(strings.ReplaceAll(s, "_", ""))
	}
	return len(s) <= len("false") && words[strings.ToLower(s)]
}
