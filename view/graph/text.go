package graph

import (
	"fmt"
	"slices"

	"github.com/mattn/go-runewidth"

	"github.com/kalypso-io/kalypso/internal/terminal"
)

// narrow is the same whatever the locale is.
var narrow = &runewidth.Condition{StrictEmojiNeutral: true}

// cells returns the width of text in letters of one width. A character without a width
// counts as one, so that many of them cannot be in one place.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += max(narrow.RuneWidth(r), 1)
	}
	return n
}

// cut returns text as one line, and shortens it if it is wider than most letters.
func cut(text string, most int) string {
	text = terminal.Printable(text)
	if cells(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		if n += max(narrow.RuneWidth(r), 1); n > most-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// maxLines is how many lines of details are drawn.
const maxLines = 6

// details returns the lines of details that are drawn.
func details(n Node) []string {
	if more := len(n.Detail) - maxLines; more > 0 {
		return append(slices.Clone(n.Detail[:maxLines-1]), fmt.Sprintf("and %d more", more+1))
	}
	return n.Detail
}
