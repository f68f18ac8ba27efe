package yaml

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	sigs "sigs.k8s.io/yaml"
)

// resolvers are the implicit types of YAML 1.1 as their definitions write them
// (https://yaml.org/type/), and the types of the core schema of 1.2
// (https://yaml.org/spec/1.2.2/#1032-tag-resolution). They are separate from the patterns in
// style.go on purpose: the output must agree with the standards.
var resolvers = map[string]*regexp.Regexp{
	"1.1 bool": regexp.MustCompile(`^(y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`),
	"1.1 int": regexp.MustCompile(`^([-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+` +
		`|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+)$`),
	"1.1 float": regexp.MustCompile(`^([-+]?([0-9][0-9_]*)?\.[0-9.]*([eE][-+][0-9]+)?` +
		`|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`),
	"1.1 null":  regexp.MustCompile(`^(~|null|Null|NULL|)$`),
	"1.1 merge": regexp.MustCompile(`^<<$`),
	"1.1 value": regexp.MustCompile(`^=$`),
	"1.1 timestamp": regexp.MustCompile(`^([0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]` +
		`|[0-9][0-9][0-9][0-9]-[0-9][0-9]?-[0-9][0-9]?([Tt]|[ \t]+)[0-9][0-9]?:[0-9][0-9]:[0-9][0-9](\.[0-9]*)?` +
		`([ \t]*(Z|[-+][0-9][0-9]?(:[0-9][0-9])?))?)$`),
	"1.2 int":   regexp.MustCompile(`^([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$`),
	"1.2 float": regexp.MustCompile(`^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN)$`),
}

// ambiguousStrings must be quoted, each for a reason of its own.
var ambiguousStrings = []string{
	"", "~", "null", "Null", "NULL", "y", "Y", "n", "N", "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off",
	"Off", "OFF", "true", "True", "TRUE", "false", "False", "FALSE", "=", "<<",
	"0", "7", "-7", "+1", "0123", "0o7", "0O7", "0x1F", "0X1f", "0b1", "0B1", "1_000", "_1", "0_x1F", "-_1e3", "1e_-3", "0b-1", "0o+7", "12:30:45", "1:2", "-1:30", "1:30.5",
	"1e3", "1E3", "1e+3", "1.5e-3", ".5", "5.", "1.5", "+.5", "-.5e3", ".", ".inf", "-.INF", "+.Inf", ".nan", ".NaN", "1.2.3", "..", "685_230.15",
	"2001-01-01", "2001-1-1", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10 -5", "2001-12-15 2:59:43", "2001-01-01T00:00:00Z",
	" a", "a ", " ", "- ", "-", "- a", "?", "? a", ":", ": a", "a: b", "a:", "a #b", "#a", "---", "...", "--- a", "... a",
	"!a", "&a", "*a", "@a", "`a", "%a", "|", ">", "|a", ">-", "'a'", "\"a\"", "[a]", "{a}", "{}", "[]", ",a", "]", "}",
	"a\tb", "\ta", "a\t", "a\rb", "a\u0085b", "a\u2028b", "a\u2029b", "\ufeffa", "a\ufeffb", "a\x00b", "a\x1bb", "a\x7fb", "a\u0090b", "a\ufffeb",
	"a\nb\u2028c", " a\nb", "\na", "\n", "\n\n", "a \nb", "a\nb ", "a\t\nb", "\ta\nb",
}

// plainStrings are strings that people write without quotes.
var plainStrings = []string{
	"a", "hello-world", "East US", "a:b", "mysql://host:3306/db", "a#b", "it's", `say "hi"`, `C:\dir`, "-a", "--flag", "?a", ":a",
	"a, b", "a]", "a}b", "v1.2.3", "1.2.3-rc.1", "10.0.0.0/8", "500m", "2Gi", "30s", "1h0m0s", "12:30h", "nope", "yesterday", "nullable",
	"0xyz", "1e", "e3", "=a", "<<a", "a=b", "~/dir", "./dir", "../dir", ".hidden", "Å", "日本語", "a b", "_a",
	"sha256:0123", "2001-01-01-build", "ghcr.io/a/b:1.2", "a|b", "a>b", "a&b", "a*b", "a!b", "a%b", "a@b", "deadbeef", "12ab",
}

func TestStyle(t *testing.T) {
	for _, s := range ambiguousStrings {
		checkString(t, s)
		if out := marshalled(t, s); out == s+"\n" {
			t.Errorf("%q is written plain", s)
		}
	}
	for _, s := range plainStrings {
		checkString(t, s)
		if out := marshalled(t, s); out != s+"\n" {
			t.Errorf("%q is written as %q", s, out)
		}
	}
	for s, want := range map[string]string{
		"one\ntwo":            "k: |-\n  one\n  two\n",
		"one\ntwo\n":          "k: |\n  one\n  two\n",
		"one\ntwo\n\n":        "k: \"one\\ntwo\\n\\n\"\n",
		"one\n\n  two\n":      "k: |\n  one\n\n    two\n",
		"one\n\ttwo # a: b":   "k: |-\n  one\n  \ttwo # a: b\n",
		" one\ntwo":           "k: \" one\\ntwo\"\n",
		"one \ntwo":           "k: \"one \\ntwo\"\n",
		"one\r\ntwo":          "k: \"one\\r\\ntwo\"\n",
		"yes":                 "k: \"yes\"\n",
		`"quoted"`:            "k: '\"quoted\"'\n",
		`'a' and "b": \c`:     "k: '''a'' and \"b\": \\c'\n",
		"a\tb":                "k: \"a\\tb\"\n",
		"a\u2028b":            "k: \"a\\Lb\"\n",
		"a\u0085b":            "k: \"a\\Nb\"\n",
		"---\n":               "k: |\n  ---\n",
		"# no comment\nend\n": "k: |\n  # no comment\n  end\n",
	} {
		if got := marshalled(t, Mapping{{"k", s}}); got != want {
			t.Errorf("%q is written as\n%s\nwant\n%s", s, got, want)
		}
	}
}

// FuzzString: any text is read back as it was by readers of YAML 1.1 and 1.2.
func FuzzString(f *testing.F) {
	for _, s := range append(ambiguousStrings, plainStrings...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			if _, err := Marshal(s); err == nil {
				t.Fatalf("%q is written, and is not UTF-8", s)
			}
			return
		}
		checkString(t, s)
	})
}

// alphabet has many special characters.
var alphabet = []string{
	"a", "e", "E", "0", "1", "7", "_", ".", ":", "-", "+", " ", "#", "\n", "\t", "x", "o", "b", "T", "Z", "y", "n", "=", "<",
	"~", "'", "\"", "\\", ",", "[", "]", "{", "}", "&", "*", "!", "|", ">", "%", "@", "`", "?", "\r", "\u0085", "\u2028", "\ufeff", "é", "😀",
}

// TestRandomStrings does the work of the fuzzer, on strings with many special characters, each time
// the tests run.
func TestRandomStrings(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		var s strings.Builder
		for range random.IntN(8) {
			s.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		checkString(t, s.String())
	}
}

// checkString writes a string as a document, key, value and item, and reads it back.
func checkString(t *testing.T, s string) {
	t.Helper()
	if styleOf(s) == plainStyle {
		for name, r := range resolvers {
			if r.MatchString(s) {
				t.Errorf("%q is plain, and is a %s", s, name)
			}
		}
	}
	in := map[string]any{"k": s, "l": []any{s, map[string]any{"m": s}, []any{s}}, s + "?": "key", "last": "end"}
	out := marshalled(t, in)
	if strings.ContainsRune(out, '\r') {
		t.Errorf("%q is written with a carriage return", s)
	}
	for reader, read := range map[string]func([]byte, any) error{
		"yaml.v3":          yaml.Unmarshal,
		"sigs.k8s.io/yaml": func(b []byte, v any) error { return sigs.UnmarshalStrict(b, v) },
	} {
		var got any
		if err := read([]byte(out), &got); err != nil {
			t.Errorf("%s cannot read %q: %v\n%s", reader, s, err, out)
		} else if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", any(in)) {
			t.Errorf("%s reads %q back as %#v\n%s", reader, s, got, out)
		}
	}
	var alone any
	if err := yaml.Unmarshal([]byte(marshalled(t, s)), &alone); err != nil || alone != s {
		t.Errorf("the document %q is read back as %#v, %v", s, alone, err)
	}
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	out, err := Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
