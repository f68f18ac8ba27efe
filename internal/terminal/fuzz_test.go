package terminal

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzLine checks that any text of a server becomes one line of visible characters.
func FuzzLine(f *testing.F) {
	f.Add("remote: \x1b[31mgo away\x1b[0m\r\n")
	f.Add("\u202egnp.exe\u2028\x9b2J\xff")
	f.Add(strings.Repeat("ü", longest+1))
	f.Fuzz(func(t *testing.T, text string) {
		line := Line(text)
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || len([]rune(line)) > longest+3 {
			t.Errorf("%q is %q", text, line)
		}
	})
}
