package syntax_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/edit/syntax"
)

// TestRead lists the keys of each field with the value after them, also in incomplete text.
func TestRead(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a value":                  {"a: b: 1", "a a/b = 1"},
		"a struct":                 {"a: {b: c, d: {}}", "a = {b: c, d: {}}; a/b = c (name); a/d = {}"},
		"a list":                   {"a: [{b: 1}]", "a = [{b: 1}]; a/[]/b = 1"},
		"nothing yet":              {"a: \nb: 1", "a = (empty); b = 1"},
		"nothing yet at the end":   {"a: b: ", "a a/b = (empty)"},
		"a value on the next line": {"a:\n\tb: 1", "a a/b = 1"},
		"no closing brace":         {"a: {b: 1\nc: 2", "a = {b: 1\nc: 2; a/b = 1; a/c = 2"},
		"a brace too many":         {"a: {}}\nb: 1", "a = {}; b = 1"},
		"a pattern":                {"a: [string]: {b: 1}", "a a/* = {b: 1}; a/*/b = 1"},
		"a computed name":          {`a: "\(b)": c: 1`, "a a/* a/*/c = 1"},
		"a comprehension":          {"a: {for x in y {b: x}}", "a = {for x in y {b: x}}; a/b = x (name)"},
		"the argument of a call":   {"a: f({b: 1})", "a = f({b: 1}); */b = 1"},
	} {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, f := range syntax.Read([]byte(test.text)).Fields {
				var keys []string
				for _, k := range f.Keys {
					keys = append(keys, strings.Join(k.Path, "/"))
				}
				value := test.text[f.Value:f.End]
				switch {
				case f.Empty:
					value = "(empty)"
				case f.Name:
					value += " (name)"
				}
				fields = append(fields, fmt.Sprintf("%s = %s", strings.Join(keys, " "), value))
			}
			if got := strings.Join(fields, "; "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestUnclosed(t *testing.T) {
	for text, want := range map[string]string{
		"a: {b: [": "]}", "a: {b: (1]": ")}", `a: {b: "\(c[` + "\n": "}", "a: {}}": "", `a: "\(b)c(` + "\nd: {": "}",
	} {
		if got := syntax.Read([]byte(text)).Unclosed(); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
