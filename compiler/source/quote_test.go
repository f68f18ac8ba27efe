package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// TestQuote: only lines of files that were read are quoted.
func TestQuote(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("cue.mod/module.cue", "module: \"platform.example/p@v0\"\nlanguage: version: \"v0.17.0\"\n")
	write("a.cue", "@extern(embed)\npackage platform\nx: _ @embed(file=b.yaml)\n")
	write("b.yaml", "region:\n  east: here\npassword: |\n  hunter2\n")
	write("huge.cue", "package platform\n//"+strings.Repeat("x", maxQuoted)+"\ny: 1\n")
	write("string.cue", "package platform\nz: \"\"\"\n\thunter2\n\t\"\"\"\ntoken:\n\t\"hunter2\"\n")
	write("changed.cue", "package platform\nw: 1\n")
	write("unread.txt", "one\ntwo\n")
	p, _, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Sources("", nil); err != nil {
		t.Fatal(err)
	}
	write("changed.cue", "package platform\nw: \"hunter2\"\n")
	for _, test := range []struct {
		file         string
		line, column int
		want         string
	}{
		{"a.cue", 3, 1, "x: _ @embed(file=b.yaml)"},
		{"a.cue", 1, 1, ""}, // stands for the file
		{"a.cue", 9, 1, ""},
		{"b.yaml", 2, 3, "  east: here"},
		{"b.yaml", 4, 3, ""},
		{"huge.cue", 3, 1, ""},
		{"string.cue", 3, 2, ""},
		{"string.cue", 6, 2, "\t\"***\""},
		{"changed.cue", 2, 4, ""},
		{"unread.txt", 2, 1, ""},
		{"../outside", 2, 1, ""},
	} {
		ds := []diag.Diagnostic{diag.New(diag.WrongValue, "m").In(model.Position{File: test.file, Line: test.line, Column: test.column}, "")}
		p.Quote(ds)
		if e := ds[0].Excerpt; e.Before+e.At+e.After != test.want {
			t.Errorf("%s:%d: %q, want %q", test.file, test.line, e, test.want)
		}
	}
}
