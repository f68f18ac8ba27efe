package compiler_test

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler"
)

// TestExamples compares the tree of every example, whole, with the one that was
// reviewed last. KALYPSO_UPDATE=1 writes it anew.
func TestExamples(t *testing.T) {
	examples, err := os.ReadDir("../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		t.Run(example.Name(), func(t *testing.T) {
			b, err := compiler.Compile(t.Context(), compiler.Request{Dir: filepath.Join("../examples", example.Name()), Environments: sound(example.Name())})
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range b.Diagnostics {
				t.Errorf("an example has nothing to say against it: %s %s", d.Code, d.Message)
			}
			compareGolden(t, filepath.Join("../testdata/golden", example.Name()+".txtar"), txtar.Format(textOf(t, b)))
		})
	}
}

// textOf is everything that a build emits, in one text.
func textOf(t *testing.T, b *compiler.Build) *txtar.Archive {
	t.Helper()
	a := &txtar.Archive{}
	for _, e := range b.Environments {
		files, err := e.Tree.Files(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := path.Join(e.Name, f.Path)
			if f.Executable {
				name += " (executable)"
			}
			a.Files = append(a.Files, txtar.File{Name: name, Data: f.Data})
		}
	}
	return a
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	if os.Getenv("KALYPSO_UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the output differs from %s; look at it with KALYPSO_UPDATE=1 and git diff:\n%s", name, firstDifference(got, want))
	}
}

// firstDifference shows the first line that differs.
func firstDifference(got, want []byte) string {
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range g {
		if i >= len(w) || !bytes.Equal(g[i], w[i]) {
			line := "(nothing)"
			if i < len(w) {
				line = string(w[i])
			}
			return "got  " + string(g[i]) + "\nwant " + line
		}
	}
	return "lines are missing at the end"
}
