package kalypso_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// steps are the folders with the steps of the pipeline, and with the commands that run them.
var steps = []string{"backends", "cmd", "compiler", "edit", "hub", "promotion", "view"}

// TestInternal compares the packages below internal/ with docs/architecture.md: no package imports
// a step, and the page has a row for each package. Test support, in internal/testing, is excluded.
func TestInternal(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(string(page), -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			rows[strings.Trim(name, "`")] = true
		}
	}
	packages := map[string]bool{}
	err = filepath.WalkDir("internal", func(name string, entry fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case name == "internal/testing" || entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		packages[path.Dir(name)] = true
		for _, step := range stepsImportedBy(t, name) {
			t.Errorf("%s imports the step %s; packages below internal/ are below all steps", name, step)
		}
		return nil
	})
	if err != nil || len(packages) == 0 {
		t.Fatal(err, packages)
	}
	for name := range packages {
		if !rows[name] {
			t.Errorf("docs/architecture.md has no row for %s", name)
		}
	}
	for name := range rows {
		if strings.HasPrefix(name, "internal/") && name != "internal/testing/..." && !packages[name] {
			t.Errorf("docs/architecture.md has a row for %s, which does not exist", name)
		}
	}
}

// TestOrder checks all packages against the tables of docs/architecture.md. Each package has a
// row. It imports only packages of rows above its own, or below internal/. A row for a folder
// named internal includes all packages below it.
func TestOrder(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for n, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(string(page), -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			rows[strings.TrimSuffix(strings.Trim(name, "`"), "/")] = n + 1
		}
	}
	rowOf := func(name string) int {
		for dir := name; dir != "."; dir = path.Dir(dir) {
			if n := rows[dir]; n > 0 && (dir == name || path.Base(dir) == "internal") {
				return n
			}
		}
		return 0
	}
	for _, step := range steps {
		err := filepath.WalkDir(step, func(name string, entry fs.DirEntry, err error) error {
			name = filepath.ToSlash(name)
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || name == "hub/dashboards"):
				return fs.SkipDir
			case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			mine := rowOf(path.Dir(name))
			if mine == 0 {
				t.Errorf("docs/architecture.md has no row for %s", path.Dir(name))
			}
			for _, imported := range stepsImportedBy(t, name) {
				if n := rowOf(imported); n > mine {
					t.Errorf("%s imports %s, which has a row below %s", name, imported, path.Dir(name))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// stepsImportedBy returns the steps that a Go file imports, in the order of its imports.
func stepsImportedBy(t *testing.T, file string) (out []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Imports {
		imported, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if name, ours := strings.CutPrefix(imported, "github.com/kalypso-io/kalypso/"); ours {
			if first, _, _ := strings.Cut(name, "/"); slices.Contains(steps, first) {
				out = append(out, name)
			}
		}
	}
	return out
}
