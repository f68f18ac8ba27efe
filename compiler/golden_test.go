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
)

// TestExamples compares the tree of every example, whole, with the one that was
// reviewed last: of one with thousands of clusters what some of them apply, and digests of
// all else. KALYPSO_UPDATE=1 writes it anew.
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
			compareGolden(t, filepath.Join("../testdata/golden", example.Name()+".txtar"), txtar.Format(condensed(textOf(t, b))))
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

// condensed leaves most of an environment with more than a thousand files out: it has the
// first folder of entries and the folders that these name. Of the others it has a digest.
func condensed(a *txtar.Archive) *txtar.Archive {
	folderOf := func(name string) (environment, folder string) {
		parts := strings.SplitN(name, "/", 4)
		if len(parts) == 4 && parts[1] == backends.EntriesDir {
			return parts[0], path.Join(parts[1:3]...)
		}
		return parts[0], parts[1]
	}
	files, first, shown := map[string]int{}, map[string]string{}, map[string]bool{}
	for _, f := range a.Files {
		environment, folder := folderOf(f.Name)
		files[environment]++
		if _, within := strings.CutPrefix(folder, backends.EntriesDir+"/"); within && (first[environment] == "" || folder == first[environment]) {
			first[environment] = folder
			shown[path.Join(environment, folder)] = true
			for _, line := range strings.Split(string(f.Data), "\n") {
				if named, ok := strings.CutPrefix(line, "- ../../../"); ok {
					shown[path.Join(environment, named)] = true
				}
			}
		}
	}
	out := &txtar.Archive{}
	others := map[string]hash.Hash{}
	for _, f := range a.Files {
		environment, folder := folderOf(f.Name)
		if of := path.Join(environment, folder); files[environment] > 1000 && !shown[of] {
			if others[of] == nil {
				others[of] = sha256.New()
			}
			fmt.Fprintf(others[of], "%s %d\n%s", f.Name, len(f.Data), f.Data)
			continue
		}
		out.Files = append(out.Files, f)
	}
	for _, of := range slices.Sorted(maps.Keys(others)) {
		out.Comment = fmt.Appendf(out.Comment, "%x  %s\n", others[of].Sum(nil)[:10], of)
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
