package promotion

import (
	"fmt"
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

// clip cuts a text to a number of characters; 0 is no limit.
func clip(text string, most int) string {
	runes := []rune(text)
	if most == 0 || len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// markdown is a text of others that means nothing to a forge: neither people nor other
// requests are named by it, and it is no HTML. It may stand in a cell of a table.
func markdown(text string) string { return plainly.Replace(terminal.Line(text)) }

// plainly writes what means something in Markdown so that it does not, and breaks what
// forges make links of, which they tell those whom or what the links are about.
var plainly = strings.NewReplacer(
	"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "|", "\\|", "~", "\\~", "<", "&lt;", ">", "&gt;",
	"&", "&amp;\u200b", "#", "#\u200b", "@", "@\u200b", "!", "!\u200b", "://", ":\u200b//", "GH-", "GH\u200b-", "gh-", "gh\u200b-",
)

// code is a text of others in a span of code in a cell of a table, where nothing but the
// span's end and the cell's means something.
func code(text string) string {
	return "`" + strings.NewReplacer("|", "\\|", "`", "'").Replace(terminal.Line(text)) + "`"
}

// list names some of many.
func list(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
