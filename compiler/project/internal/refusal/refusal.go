// Package refusal has the errors of the renderers. A renderer reports the reason why it
// does not render a source as an error for the user, with a code and a hint. The error
// becomes a diagnostic when the assignments that need the source are known.
package refusal

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
)

// Error is the reason why a source is not rendered.
type Error struct {
	Code    diag.Code
	Message string // one line, without a full stop
	Hint    string // how to fix it, or ""
}

// New returns an Error. Its text may have many lines and any length, because messages of
// Helm quote whole templates. The Error has it on one line.
func New(code diag.Code, hint, format string, args ...any) *Error {
	return &Error{code, oneLine(fmt.Sprintf(format, args...)), hint}
}

func (e *Error) Error() string { return e.Message }

// maxMessage is the largest number of bytes of a message that is kept. The two ends of a
// message matter most: its start shows the place, and its end shows the problem.
const maxMessage = 1200

func oneLine(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	s = strings.ToValidUTF8(strings.Join(lines, "; "), "�")
	s = strings.ReplaceAll(s, ":; ", ": ")
	s = strings.TrimRight(s, ".; ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage/2], "") + " … " +
			strings.ToValidUTF8(s[len(s)-maxMessage/2:], "")
	}
	return s
}
