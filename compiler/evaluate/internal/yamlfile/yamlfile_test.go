package yamlfile

import (
	"fmt"
	"strings"
	"testing"
)

// lines returns n lines of a format with the number of the line.
func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestUnboundedYAML checks that kalypso rejects files that would keep CUE busy, or end it. Most
// of these files are small, and all of them took seconds, minutes or the process.
func TestUnboundedYAML(t *testing.T) {
	bomb := "a0: &a0 {x: 1}\n"
	for i := range 40 {
		bomb += fmt.Sprintf("a%d: &a%[1]d {<<: [*a%[2]d, *a%[2]d]}\n", i+1, i)
	}
	for _, c := range []struct{ name, text, want string }{
		{"merged into itself", "a: &a\n  <<: *a\n", "K3017 reading the file would take too long: anchor a contains itself @f.yaml:2:7"},
		{"merged again and again", bomb, "K3017 reading the file would take too long: its aliases write out more than 50000 values @f.yaml:1:1"},
		{"keys after a merge", "<<: {}\n" + lines(10_000, "k%d: 1\n"), "K3017 reading the file would take too long: the mappings with a merge key, <<, have too many keys @f.yaml:1:1"},
		{"brackets that are not found", "a: &a [it's]\nb:\n" + strings.Repeat("- *a\n", 20_000), "K3017 reading the file would take too long: its aliases refer to lists or mappings in brackets too often @f.yaml:1:1"},
		{"keys", lines(32_000, "k%d: 1\n"), "K3017 reading the file would take too long: a list or mapping has too many entries @f.yaml:1:1"},
		{"documents", strings.Repeat("---\n", 32_000), "K3017 reading the file would take too long: a list or mapping has too many entries @f.yaml:1:1"},
		{"lists", lines(300, "k%d: ["+strings.Repeat("1,", 1000)+"]\n"), "K3017 reading the file would take too long: it has more than 250000 entries @f.yaml:1:1"},
		{"16 MiB of elements", strings.Repeat("-\n", 8<<20), "K3017 reading the file would take too long: it has more than 250000 entries @f.yaml:1:1"},
		{"deep", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "K3017 reading the file would take too long: nests deeper than 1000 levels @f.yaml:1:1002"},
		{"deep values", lines(200, "k%d: "+strings.Repeat("[", 900)+strings.Repeat("]", 900)+"\n"), "K3017 reading the file would take too long: its values nest too deep @f.yaml:1:1"},
		{"deeper", strings.Repeat("[", 100_000), "K1001 the file is not valid YAML: exceeded max depth of 10000 @f.yaml:1:1"},
		{"directives", lines(10_000, "%%TAG !a%d! b\n") + "--- c\n", "K3017 reading the file would take too long: there are more than 100 %TAG directives @f.yaml:101:1"},
		{"digits", "a: 1\nb: !!int " + strings.Repeat("9", 1_000_000) + "\n", "K3017 reading the file would take too long: a number has more than 1000 digits @f.yaml:2:4"},
		{"decimals", "a: 0." + strings.Repeat("9", 1_000_000) + "\n", "K3017 reading the file would take too long: a number has more than 1000 digits @f.yaml:1:4"},
		{"an integer of more than 64 bits", "a: [18446744073709551615, 18446744073709551616]\n", "K1103 the number 18446744073709551616 is too large: an integer has 64 bits @f.yaml:1:27"},
		{"infinity", "a: 1\nb: -.inf\n", "K1103 -.inf is no number that JSON has @f.yaml:2:4"},
		{"carriage return", "a: 1\rb: 2\n", "K1001 the file has a line break of another kind, U+000D @f.yaml:1:5"},
		{"carriage return at the end", "a: 1\r\nb: 2\r", "K1001 the file has a line break of another kind, U+000D @f.yaml:2:5"},
		{"line separator", "a: 1\nb: \"x\u2028y\"\n", "K1001 the file has a line break of another kind, U+2028 @f.yaml:2:6"},
		{"UTF-16", "\xff\xfea\x00", "K1001 the file is UTF-16 @f.yaml:1:1"},
	} {
		_, d := Read("f.yaml", "/tmp/f.yaml", []byte(c.text))
		if d == nil {
			t.Errorf("%s is read", c.name)
			continue
		}
		at := d.Sites[0].Position
		if got := fmt.Sprintf("%s %s @%s:%d:%d", d.Code, d.Message, at.File, at.Line, at.Column); got != c.want || d.Hint == "" {
			t.Errorf("%s\ngot  %s (%s)\nwant %s", c.name, got, d.Hint, c.want)
		}
	}
}

// TestBoundedYAML checks that the bounds allow typical files of users.
func TestBoundedYAML(t *testing.T) {
	for name, text := range map[string]string{
		"anchors":     "base: &base {image: x, env: &env [a, b]}\n" + lines(200, "app%d:\n  <<: *base\n  more: *env\n  replicas: 2\n"),
		"comments":    strings.Repeat("# ---- , [\n", 100_000) + "a: 1\n",
		"text":        "a: |\n" + strings.Repeat("  It is: one - two, three? [four]\n", 10_000),
		"a long line": "a: \"" + strings.Repeat("x ", 1_000_000) + "\"\n",
		"keys":        lines(10_000, "k%d: 1\n"),
		"numbers":     "a: 1e1000000000\nb: 0xffffffffffffffffffffffffffffffffffffffff\n",
		"CRLF":        "a: 1\r\nb: |\r\n  x\r\n",
	} {
		if _, d := Read("f.yaml", "/tmp/f.yaml", []byte(text)); d != nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
