package lsp

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text is a text with where its lines begin. It does not change.
type text struct {
	string
	lines []int // offsets
}

func newText(s string) text {
	lines := []int{0}
	for i := range len(s) {
		if s[i] == '\n' {
			lines = append(lines, i+1)
		}
	}
	return text{s, lines}
}

// line returns a line with its end.
func (t text) line(n int) string {
	if n+1 < len(t.lines) {
		return t.string[t.lines[n]:t.lines[n+1]]
	}
	return t.string[t.lines[n]:]
}

// offset returns the offset of a position. One beyond the end of its line, or of the text, is
// that end, as the protocol has it.
func (t text) offset(p position) int {
	if p.Line < 0 {
		return 0
	}
	if p.Line >= len(t.lines) {
		return len(t.string)
	}
	line := strings.TrimRight(t.line(p.Line), "\r\n")
	units, i := 0, 0
	for i < len(line) && units < p.Character {
		r, size := utf8.DecodeRuneInString(line[i:])
		units += unitsOf(r)
		i += size
	}
	return t.lines[p.Line] + i
}

// position returns where an offset is.
func (t text) position(offset int) position {
	offset = min(max(offset, 0), len(t.string))
	line := sort.SearchInts(t.lines, offset+1) - 1
	units := 0
	for _, r := range t.string[t.lines[line]:offset] {
		units += unitsOf(r)
	}
	return position{line, units}
}

func (t text) span(start, end int) span { return span{t.position(start), t.position(end)} }

// wordEnd returns the end of the word or the string that begins at an offset; of anything else,
// of its first character.
func (t text) wordEnd(offset int) int {
	rest := t.line(t.position(offset).Line)
	rest = rest[min(offset-t.lines[t.position(offset).Line], len(rest)):]
	if strings.HasPrefix(rest, `"`) {
		if end := strings.IndexAny(rest[1:], "\"\n"); end >= 0 && rest[end+1] == '"' {
			return offset + end + 2
		}
	}
	isWord := func(r rune) bool {
		return r == '_' || r == '#' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) })
	if end < 0 {
		end = len(rest)
	}
	if end == 0 && strings.Trim(rest, "\r\n") != "" {
		_, end = utf8.DecodeRuneInString(rest)
	}
	return offset + end
}

// unitsOf returns how many UTF-16 code units a character takes.
func unitsOf(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// change returns the text after a change.
func (t text) change(c change) text {
	if c.Range == nil {
		return newText(c.Text)
	}
	start, end := t.offset(c.Range.Start), t.offset(c.Range.End)
	return newText(t.string[:start] + c.Text + t.string[max(start, end):])
}
