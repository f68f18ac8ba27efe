package kalypso_test

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
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

// maxMethods is the number of methods that a type may declare. A type with more has several
// subjects.
const maxMethods = 45

// TestMethods counts the methods that each type of the product declares. Methods of embedded types
// do not count.
func TestMethods(t *testing.T) {
	methods := map[string]int{} // by folder and type
	for _, folder := range append(slices.Clone(steps), "internal") {
		err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			name = filepath.ToSlash(name)
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || name == "internal/testing" ||
				name == "hub/dashboards"):
				return fs.SkipDir
			case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				if f, is := d.(*ast.FuncDecl); is && f.Recv != nil {
					methods[path.Dir(name)+"."+receiverOf(f)]++
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(methods) == 0 {
		t.Fatal("there are no methods")
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if n := methods[name]; n > maxMethods {
			t.Errorf("%s has %d methods, at most %d are allowed: split the type by subject", name, n,
				maxMethods)
		}
	}
}

// receiverOf returns the name of the type of a method, without its pointer and type parameters.
func receiverOf(f *ast.FuncDecl) string {
	for e := f.Recv.List[0].Type; ; {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		}
	}
}

// maxWords is the number of words that a reader of the code may have to learn.
const maxWords = 60

// TestWords checks the words of docs/architecture.md. With the words of the language there are at
// most maxWords, and the product's Go code uses each word in an identifier or a comment.
func TestWords(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Words\n")
	section, _, _ = strings.Cut(section, "\n## ")
	language := regexp.MustCompile(`(?s)\(language\.md\) \((.*?)\)`).FindStringSubmatch(section)
	rows := regexp.MustCompile(`(?m)^\| ([a-z ,]+)(?: \(.*\))? \|`).FindAllStringSubmatch(section, -1)
	if language == nil || len(rows) < 2 {
		t.Fatal("docs/architecture.md has no words")
	}
	words := strings.Split(strings.Join(strings.Fields(language[1]), " "), ", ")
	for _, row := range rows[1:] {
		words = append(words, strings.Split(row[1], ", ")...)
	}
	if len(words) > maxWords {
		t.Errorf("docs/architecture.md has %d words; a reader has to learn at most %d", len(words), maxWords)
	}
	code := strings.Builder{}
	for _, folder := range append(steps, "internal") {
		err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "testing"):
				return fs.SkipDir
			case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			return writeNames(&code, name)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text := strings.ToLower(code.String())
	for _, word := range words {
		if !strings.Contains(text, word) && !strings.Contains(text, strings.ReplaceAll(word, " ", "")) {
			t.Errorf("no Go code uses the word %q of docs/architecture.md", word)
		}
	}
}

// writeNames writes the identifiers and the comments of a Go file. It writes a comment of several
// lines as one line.
func writeNames(w *strings.Builder, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile(file, -1, len(text)), text, nil, scanner.ScanComments)
	for {
		switch _, kind, literal := s.Scan(); kind {
		case token.EOF:
			return nil
		case token.COMMENT:
			w.WriteString(strings.TrimPrefix(literal, "//"))
		case token.IDENT:
			w.WriteString("\n" + literal + "\n")
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
