// Package message reads and writes texts of commits and change requests: first lines, trailers,
// and sanitized texts of others.
package message

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/internal/terminal"
)

// FirstLine returns the first line of a text, safe to print.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return terminal.Line(line)
}

// Trailers of commits that a person decided on. Such commits have the reason and the name of the
// person in addition to the other trailers.
const (
	ReasonTrailer   = "Kalypso-Reason"
	ByTrailer       = "Promoted-By"
	SkipTrailer     = "Kalypso-Skip-Gates"        // the gates that were passed over
	NamedTrailer    = "Kalypso-Named"             // the base commit, if it was promoted by name
	EndsTrailer     = "Kalypso-Ends-Hold"         // who set the hold that it ends, and why
	RejectedTrailer = "Kalypso-Contains-Rejected" // rejected commits that it contains
)

// Trailer returns the value of a trailer of a commit's message, or "".
func Trailer(text, name string) string {
	value, within := "", false
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+": "); ok {
			value, within = strings.TrimSpace(rest), true
		} else if within = within && strings.HasPrefix(line, " "); within {
			value += "\n" + strings.TrimSpace(line)
		}
	}
	return value
}

// Fold returns a text as the value of a trailer: all lines but the first begin with a
// space, as in git-interpret-trailers(1). Empty lines are left out.
func Fold(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(terminal.Line(strings.TrimSpace(line))); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n ")
}

// Body returns a commit's message below its first line.
func Body(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return strings.TrimLeft(rest, "\n")
}

// Clip cuts a text to a number of characters; 0 is not a limit.
func Clip(text string, most int) string {
	runes := []rune(text)
	if most == 0 || len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// Count returns a number of things, whose plural ends in s.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Markdown returns a foreign text so that a forge does not interpret it. The result mentions
// neither people nor other requests, and is not HTML. It can be used in a cell of a table.
func Markdown(text string) string { return plainly.Replace(terminal.Line(text)) }

// plainly escapes Markdown, and breaks texts that forges turn into links or notifications.
var plainly = strings.NewReplacer(
	"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "|", "\\|", "~", "\\~",
	"<", "&lt;", ">", "&gt;",
	"&", "&amp;\u200b", "#", "#\u200b", "@", "@\u200b", "!", "!\u200b", "://", ":\u200b//", "GH-",
	"GH\u200b-", "gh-", "gh\u200b-",
)

// Code returns a text of others as a span of code for a cell of a table.
func Code(text string) string {
	return "`" + strings.NewReplacer("|", "\\|", "`", "'").Replace(terminal.Line(text)) + "`"
}

// List returns the first of some names, separated by commas, and the number of other names.
func List(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
