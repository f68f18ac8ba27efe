package terminal

import (
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{"a b": "a b", "a\nb\x1b[2J": "a b [2J", "\u202eabc": " abc", strings.Repeat("é", 501): strings.Repeat("é", 500) + "..."} {
		if got := Line(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
