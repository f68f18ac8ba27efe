package diag

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// excerptOf returns the excerpt of a line, as text. In the line, | is before the column.
func excerptOf(t *testing.T, file, marked string, secret bool) string {
	t.Helper()
	before, after, _ := strings.Cut(marked, "|")
	p := model.Position{File: file, Line: 7, Column: len(before) + 1}
	d := New(WrongValue, "m").In(p, "")
	d.Excerpt = NewExcerpt(before+after, p, secret)
	var b bytes.Buffer
	if err := WriteText(&b, []Diagnostic{d}, nil); err != nil {
		t.Fatal(err)
	}
	_, excerpt, _ := strings.Cut(b.String(), "\n  "+place(p)+"\n")
	return excerpt
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("x", 90)
	for _, test := range []struct{ name, file, line, before, below string }{
		{"a word", "a.cue", "\t|lables: region: \"east\"\r", "\tlables: region: \"east\"", "\t^^^^^^"},
		{"a string", "a.cue", `a: |"b \" c" // d`, `a: "b \" c" // d`, "   ^^^^^^^^"},
		{"a string without an end", "a.cue", `a: |"b c`, `a: "b c`, "   ^^^^"},
		{"a sign", "a.cue", `a: |{b: 1}`, `a: {b: 1}`, "   ^"},
		{"a tab inside", "a.cue", "\ta:\t|b", "\ta: b", "\t   ^"},
		{"wide", "a.cue", `"日本": |日本`, `"日本": 日本`, "        ^^^^"},
		{"combining", "a.cue", "e\u0301: |e\u0301", "e\u0301: e\u0301", "   ^"},
		{"the end of the line", "a.cue", "a: [1|\n", "a: [1", "     ^"},
		{"beyond it", "a.cue", "\n|", "", ""},
		{"an empty line", "a.cue", "|", "", ""},
		{"a place within a character", "a.cue", "\xc3|\xa9", "", ""},
		{"no text", "a.cue", "|a\xff", "", ""},
		{"hostile", "a.cue", "a: |\"\x1b[2J\u202eb\"", "a: \" [2J b\"", "   ^^^^^^^^"},
		{"long before", "a.cue", long + " |a:" + long, "…" + long[:31] + " a:" + long[:64] + "…", strings.Repeat(" ", 33) + "^"},
		{"long after", "a.cue", "|a " + long + long, "a " + long + "xxxxxxx…", "^"},
		{"long itself", "a.cue", "|" + long + long, long + "xxxxxxxxx…", strings.Repeat("^", 100)},
		{"longer than lines are", "a.cue", "|a: \"" + strings.Repeat(long, 50) + "\"", "", ""},
		{"a secret", "a.cue", `db: {DB_PASSWORD: |"hunter2", user: "me"}`, `db: {DB_PASSWORD: "***", user: "me"}`, "                  ^^^^^"},
		{"a secret elsewhere", "a.cue", `db: {DB_PASSWORD: "hunter2", |user: "me"}`, `db: {DB_PASSWORD: "***", user: "me"}`, "                         ^^^^"},
		{"a secret without an end", "a.cue", `token: |"hunter2 and`, `token: "***"`, "       ^^^^^"},
		{"a quoted name", "a.cue", `"api-token": |"x"`, `"api-token": "***"`, "             ^^^^^"},
		{"what looks like one", "a.cue", `|a: "ghp_0123456789012345678901234567890123456789"`, `a: "***"`, "^"},
		{"a URL", "a.cue", `|a: "https://me:hunter2@example.com"`, `a: "***"`, "^"},
		{"a URL in a comment", "a.cue", `|a: 1 // https://me:hunter2@example.com`, `a: 1 // https://example.com`, "^"},
		{"a fragment", "a.cue", `url: |"https://example.com/a#hunter2"`, `url: "***"`, "     ^^^^^"},
		{"ssh", "a.cue", `repo: |"git:hunter2@example.com:a"`, `repo: "***"`, "      ^^^^^"},
		{"a URL in YAML", "a.yaml", `repo: |https://example.com/a?hunter2`, "", ""},
		{"YAML", "a.yaml", "password: |hunter2!:x y", "", ""},
		{"JSON", "a.json", `  "password": |"hunter2",`, "", ""},
		{"YAML without", "a.yaml", "region: |east", "region: east", "        ^^^^"},
	} {
		want := ""
		if test.before != "" {
			want = "   7 | " + test.before + "\n     | " + test.below + "\n"
		}
		if got := excerptOf(t, test.file, test.line, false); got != want {
			t.Errorf("%s:\n%swant\n%s", test.name, got, want)
		}
	}
	if got := excerptOf(t, "a.cue", `|"hunter2"`, true); strings.Contains(got, "hunter2") {
		t.Errorf("a value of a secret's name on a line above is shown: %s", got)
	}
}

// FuzzExcerpt checks that the output is short lines of visible characters, whatever the
// line is.
func FuzzExcerpt(f *testing.F) {
	f.Add("a", 2)
	f.Add("\t\ta: \"b\" // \x1b", 4)
	f.Add(strings.Repeat("日\t", 99), 100)
	f.Fuzz(func(t *testing.T, line string, column int) {
		e := NewExcerpt(line, model.Position{File: "a.cue", Line: 1, Column: column}, false)
		indent, carets := e.carets()
		all := e.Before + e.At + e.After
		if strings.ContainsAny(all, "\n\r\x1b") || !utf8.ValidString(all) || width(all) > maxLine+8 || len(indent)+len(carets) > maxLine+8 {
			t.Errorf("%q is %q", line, e)
		}
	})
}
