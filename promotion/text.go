package promotion

import (
	"strings"

	"github.com/kalypso-io/kalypso/internal/terminal"
)

// firstLine is the subject of a commit, which may be anything, for people.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return terminal.Line(line)
}

// trailerOf returns the value of a trailer of a commit's message; "" for none.
func trailerOf(message, name string) string {
	value, within := "", false
	for line := range strings.Lines(message) {
		if rest, ok := strings.CutPrefix(line, name+": "); ok {
			value, within = strings.TrimSpace(rest), true
		} else if within = within && strings.HasPrefix(line, " "); within {
			value += "\n" + strings.TrimSpace(line)
		}
	}
	return value
}

// folded is a text as the value of a trailer: all lines but the first begin with a space,
// as git-interpret-trailers(1) has them. Lines without text are left out.
func folded(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(terminal.Line(strings.TrimSpace(line))); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n ")
}

// withoutTitle is a commit's message below its first line.
func withoutTitle(message string) string {
	_, rest, _ := strings.Cut(message, "\n")
	return strings.TrimLeft(rest, "\n")
}
