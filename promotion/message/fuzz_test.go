package message

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzTexts: texts of others stay one line, one trailer, and without an effect.
func FuzzTexts(f *testing.F) {
	f.Add("Promote to prod\n\nKalypso-Base: 0a0a\nReviewed-by: A\n B\n", 20)
	f.Add("a\r\n \u2028b `x` | @all #1 \x1b[31m", 1)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, text string, most int) {
		for _, line := range []string{FirstLine(text), Markdown(text), Code(text)} {
			if strings.ContainsFunc(strings.ReplaceAll(line, "\u200b", ""), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q", line)
			}
		}
		folded := Fold(text)
		if got := Trailer("X: "+folded+"\nY: z\n", "X"); folded != "" && got != strings.ReplaceAll(folded, "\n ", "\n") {
			t.Errorf("%q is read as %q", folded, got)
		}
		if most > 0 && len([]rune(Clip(text, most))) > most {
			t.Errorf("%d characters of %q", most, text)
		}
		Body(text)
	})
}
