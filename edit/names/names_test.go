package names

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/edit/syntax"
)

// mark is the cursor of a test.
const mark = "‸"

// TestNames reads each platform of testdata. Its files have marks, numbered in the order of
// files and places. The comment has the questions, and the answers for each mark are below "--
// want --". KALYPSO_UPDATE=1 writes the answers again.
func TestNames(t *testing.T) {
	tests, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	for _, name := range tests {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			x, cursors := indexOf(a)
			var got strings.Builder
			for i, c := range cursors {
				fmt.Fprintf(&got, "%d:\n", i+1)
				for question := range strings.FieldsSeq(strings.SplitN(string(a.Comment), "\n", 2)[0]) {
					answer(t, &got, x, c, question)
				}
			}
			want := len(a.Files) - 1
			if os.Getenv("KALYPSO_UPDATE") != "" {
				a.Files[want].Data = []byte(got.String())
				if err := os.WriteFile(name, txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if string(a.Files[want].Data) != got.String() {
				t.Errorf("got:\n%s\nwant:\n%s", got.String(), a.Files[want].Data)
			}
		})
	}
}

// indexOf returns the index of an archive's files without their marks, and the places of the
// marks.
func indexOf(a *txtar.Archive) (*Index, []Place) {
	var files []File
	var cursors []Place
	for _, f := range a.Files {
		if f.Name == "want" {
			continue
		}
		text := f.Data
		for {
			before, after, found := bytes.Cut(text, []byte(mark))
			if !found {
				break
			}
			cursors = append(cursors, Place{f.Name, len(before), len(before)})
			text = slices.Concat(before, after)
		}
		files = append(files, File{f.Name, text})
	}
	return New(files, nil), cursors
}

func answer(t *testing.T, w *strings.Builder, x *Index, at Place, question string) {
	text := func(p Place) string {
		f := x.byPath[p.Path]
		return fmt.Sprintf("%s %q", f.where(&syntax.Word{Start: p.Start}), f.Text[p.Start:p.End])
	}
	question, argument, _ := strings.Cut(question, "=")
	switch question {
	case "complete":
		for _, c := range x.Complete(at.Path, at.Start) {
			fmt.Fprintf(w, "%s %s (%s) %s -> %q\n", c.Kind, c.Label, c.Detail, text(c.Place), c.Text)
		}
	case "definition":
		for _, p := range x.Definition(at.Path, at.Start) {
			fmt.Fprintf(w, "definition %s\n", text(p))
		}
	case "references":
		for _, p := range x.References(at.Path, at.Start, false) {
			fmt.Fprintf(w, "reference %s\n", text(p))
		}
	case "hover":
		if h, ok := x.Hover(t.Context(), at.Path, at.Start, nil); ok {
			fmt.Fprintf(w, "hover %s\n\t%s\n", text(h.Place), strings.Join(h.Lines, "\n\t"))
		}
	case "rename":
		edits, err := x.Rename(at.Path, at.Start, argument)
		if err != nil {
			fmt.Fprintf(w, "rename to %s: %v\n", argument, err)
		}
		for _, e := range edits {
			fmt.Fprintf(w, "rename %s -> %q\n", text(e.Place), e.Text)
		}
	}
}
