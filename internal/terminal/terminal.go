// Package terminal makes text that others wrote fit for people's terminals.
package terminal

import (
	"strings"
	"unicode"
)

// longest is the largest length of an error for people, in runes.
const longest = 500

// Printable is text with a space for each character that cannot be seen, such as the end of a
// line.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// Line returns text as one line without terminal control sequences.
func Line(text string) string {
	line := []rune(Printable(text))
	if len(line) > longest {
		return string(line[:longest]) + "..."
	}
	return string(line)
}
