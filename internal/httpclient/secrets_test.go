package httpclient

import (
	"strings"
	"testing"
)

func TestSecrets(t *testing.T) {
	var s Secrets
	s.Add("p@ss/word", "abc", "")
	for text, want := range map[string]string{
		"get https://user:p@ss/word@example.com/a?b=c#d: no":  "get https://",
		"https://user:secret@example.com/a":                   "https://example.com/a",
		"https://example.com/a?X-Amz-Signature=0123 and more": "https://example.com/a and more",
		`Get "https://example.com/a#token=x": refused`:        `Get "https://example.com/a": refused`,
		"you said p@ss/word, and p%40ss%2Fword":               "you said ***, and ***",
		"abc is in words":                                     "abc is in words",
		"\x1b[31mred\nand two lines\u202e":                    "[31mred and two lines",
		"ssh://git@example.com/a":                             "ssh://git@example.com/a",
	} {
		got := s.Clean(text)
		if !strings.HasPrefix(got, want) || strings.Contains(got, "p@ss/word") {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
