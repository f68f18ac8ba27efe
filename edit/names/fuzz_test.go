package names

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// FuzzIndex asks about texts that are hardly CUE. No question may fail, and places must be in
// the text.
func FuzzIndex(f *testing.F) {
	tests, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range tests {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			for i := range file.Data {
				if i%97 == 0 {
					f.Add(string(file.Data[:i]), i)
					f.Add(string(file.Data[i:]), 0)
				}
			}
		}
	}
	for _, text := range []string{"for x in ] {", "a: \"\\(b[", "clusterTypes: {x: \"", "a: [for", "[", "a~(", "x=", "configs: {\"\\(", "let", "package", "import ("} {
		f.Add(text, len(text))
	}
	f.Fuzz(func(t *testing.T, text string, offset int) {
		x := New([]File{{"base.cue", []byte(text)}, {"cue.mod/module.cue", []byte(text)}}, nil)
		check := func(places ...Place) {
			for _, p := range places {
				if p.Start < 0 || p.End < p.Start || p.End > len(text) {
					t.Fatalf("%+v is not in the text", p)
				}
			}
		}
		for _, c := range x.Complete("base.cue", offset) {
			check(c.Place)
		}
		check(x.Definition("base.cue", offset)...)
		check(x.References("base.cue", offset, true)...)
		if edits, err := x.Rename("base.cue", offset, "other"); err == nil {
			for _, e := range edits {
				check(e.Place)
			}
		}
		h, _ := x.Hover(t.Context(), "base.cue", offset, nil)
		check(h.Place)
		for _, fix := range x.pin() {
			check(fix.Edits[0].Place)
		}
	})
}

// TestExamples checks that all names of a whole platform are found and declared.
func TestExamples(t *testing.T) {
	var files []File
	err := filepath.WalkDir("../../examples/hello-world", func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".cue" {
			return err
		}
		text, err := os.ReadFile(name)
		files = append(files, File{strings.TrimPrefix(filepath.ToSlash(name), "../../examples/hello-world/"), text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	x := New(files, nil)
	for collection, want := range map[string]string{
		"environments": "dev stage", "clusterTypes": "drone large small", "reconcilers": "argocd flux",
		"configs": "east-us edge everywhere large-debug west-us whereabouts", "workloads": "hello-world observability",
		"deploymentTargets": "hello-world/functional-test hello-world/performance-test hello-world/uat-test observability/prometheus",
	} {
		if got := strings.Join(x.declared("", collection), " "); got != want {
			t.Errorf("%s: %s, want %s", collection, got, want)
		}
	}
	x.each("", func(f *file, u *use) {
		if !u.declares && u.collection != "workspaces" && len(x.meant("", u)) == 0 {
			t.Errorf("%s names %s %s, which nothing declares", f.where(&f.words[u.word]), u.collection, u.name)
		}
	})
}
