package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/lazyregexp"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// credential is the token of an HTTP gate in a server's echo of a request.
var credential = lazyregexp.New(`(?i)\b(bearer[ :="']+)[^\s"',;]+`)

// printable returns a text from outside for a reason, without a token that it repeats.
func printable(text string) string {
	return strings.TrimSpace(terminal.Line(credential.ReplaceAllString(text, "${1}***")))
}

// instant returns a time as reasons have it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Span returns a time span as users write it: 3h12m, 7d. It uses days from two days on, because
// people write 24h and 36h.
func Span(d time.Duration) string {
	if d <= 0 {
		return "0s"
	}
	var text string
	for _, unit := range []struct {
		letter string
		length time.Duration
		least  time.Duration
	}{
		{"d", 24 * time.Hour, 48 * time.Hour}, {"h", time.Hour, time.Hour},
		{"m", time.Minute, time.Minute}, {"s", time.Second, time.Second},
	} {
		if d >= unit.least || text != "" && d >= unit.length {
			text += fmt.Sprint(int64(d/unit.length), unit.letter)
			d %= unit.length
		}
	}
	if text == "" {
		return "0s"
	}
	return text
}

// elapsed returns the text of an ongoing time span. It has no seconds after the first minute.
func elapsed(d time.Duration) string {
	if d >= time.Minute {
		d = d.Truncate(time.Minute)
	}
	return Span(d)
}

// list joins texts, and only counts the ones that are too many for a line.
func list(texts []string, separator string) string {
	const most = 5
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return strings.Join(texts[:most], separator) +
		fmt.Sprintf("%sand %d more", separator, len(texts)-most)
}
