package compiler_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/internal/testing/backendtest"
)

// shown is the example whose whole tree is reviewed.
const shown = "hello-world"

// TestExamples compares the trees of the examples with the reviewed ones. For the shown example
// it compares the whole tree, and for the others a digest of each folder. KALYPSO_UPDATE=1 writes
// them again.
func TestExamples(t *testing.T) {
	examples, err := os.ReadDir("../examples")
	if err != nil {
		t.Fatal(err)
	}
	digests := make([][]byte, len(examples))
	t.Run("each", func(t *testing.T) {
		for i, example := range examples {
			t.Run(example.Name(), func(t *testing.T) {
				t.Parallel()
				b, err := compiler.Compile(t.Context(), compiler.Request{Dir: filepath.Join("../examples", example.Name()), Environments: sound(example.Name())})
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range b.Diagnostics {
					t.Errorf("an example has nothing to say against it: %s %s", d.Code, d.Message)
				}
				a := textOf(t, b)
				backendtest.CheckKustomizations(t, filesOf(a))
				digests[i] = digestsOf(example.Name(), a)
				if example.Name() == shown {
					compareGolden(t, "../testdata/golden/"+shown+".txtar", txtar.Format(a))
				}
			})
		}
	})
	compareGolden(t, "../testdata/golden/digests", bytes.Join(digests, nil))
}

// filesOf returns the files of an archive by their names.
func filesOf(a *txtar.Archive) map[string][]byte {
	out := map[string][]byte{}
	for _, f := range a.Files {
		out[f.Name] = f.Data
	}
	return out
}

// textOf returns everything that a build emits, as one text.
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

// digestsOf returns a line for each folder of each environment, and for its entries. A line has a
// digest of the files, their number, and the name of the folder.
func digestsOf(example string, a *txtar.Archive) []byte {
	type folder struct {
		hash.Hash
		files int
	}
	folders := map[string]*folder{}
	for _, f := range a.Files {
		parts := strings.Split(f.Name, "/")
		dir := strings.Join(parts[:min(len(parts)-1, 3)], "/")
		if len(parts) > 1 && parts[1] == backends.EntriesDir {
			dir = path.Join(parts[:2]...)
		}
		if folders[dir] == nil {
			folders[dir] = &folder{Hash: sha256.New()}
		}
		folders[dir].files++
		fmt.Fprintf(folders[dir], "%s %d\n%s", f.Name, len(f.Data), f.Data)
	}
	var out []byte
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		out = fmt.Appendf(out, "%.10x %5d  %s\n", folders[dir].Sum(nil), folders[dir].files, path.Join(example, dir))
	}
	return out
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

// firstDifference shows the first different line.
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
