package compiler_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/internal/starter"
)

// TestMistakes makes each mistake of testdata/mistakes in the example hello-world, or in the
// output of kalypso init if the comment of the file says so. Each mistake causes one diagnostic,
// at the file, the line and the path in the comment, with the reviewed texts. The files below
// fix/ follow the hint exactly, and must fix the platform. KALYPSO_UPDATE=1 writes the texts
// again.
func TestMistakes(t *testing.T) {
	names, err := filepath.Glob("../testdata/mistakes/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			m := readMistake(t, name)
			dir := t.TempDir()
			m.begin(t, dir)
			lay(t, dir, m.files)
			got := m.found(t, dir)
			text := textOfMistake(t, got)
			m.check(t, got, text)
			if os.Getenv("KALYPSO_UPDATE") != "" {
				m.update(t, name, []byte(text))
			} else if text != string(m.want) {
				t.Errorf("it says\n%s\nand not\n%s", text, m.want)
			}
			lay(t, dir, m.fix)
			for _, d := range m.found(t, dir) {
				t.Errorf("with the fix: %s %s %v; hint: %s", d.Code, d.Message, d.Sites, d.Hint)
			}
		})
	}
}

// mistake is a file of testdata/mistakes.
type mistake struct {
	archive    *txtar.Archive
	at, path   string
	init       bool         // whether it is made in the output of kalypso init
	files, fix []txtar.File // files without content are removed
	want       []byte
}

func readMistake(t *testing.T, name string) *mistake {
	t.Helper()
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	m := &mistake{archive: a}
	for line := range strings.Lines(string(a.Comment)) {
		switch what, rest, _ := strings.Cut(line, ":"); what {
		case "at":
			m.at = strings.TrimSpace(rest)
		case "path":
			m.path = strings.TrimSpace(rest)
		case "of":
			m.init = strings.TrimSpace(rest) == "init"
		}
	}
	for _, f := range a.Files {
		fixed, isFix := strings.CutPrefix(f.Name, "fix/")
		switch {
		case isFix:
			m.fix = append(m.fix, txtar.File{Name: fixed, Data: f.Data})
		case f.Name == "want":
			m.want = f.Data
		default:
			m.files = append(m.files, f)
		}
	}
	return m
}

// begin writes the platform for the mistake.
func (m *mistake) begin(t *testing.T, dir string) {
	t.Helper()
	if !m.init {
		if err := os.CopyFS(dir, os.DirFS("../examples/hello-world")); err != nil {
			t.Fatal(err)
		}
		return
	}
	p := starter.Platform{Repository: starter.Repository{Name: "shop", Environments: []string{"dev", "stage", "prod"}, CI: "none"}, Reconciler: starter.Reconciler{Name: "flux", Pulls: true}}
	files, err := p.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		lay(t, dir, []txtar.File{{Name: f.Path, Data: f.Data}})
	}
}

// lay writes files into a folder and overwrites its files. It removes files without content.
func lay(t *testing.T, dir string, files []txtar.File) {
	t.Helper()
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		err := os.MkdirAll(filepath.Dir(name), 0o777)
		if err == nil && len(f.Data) > 0 {
			err = os.WriteFile(name, f.Data, 0o666)
		} else if err == nil {
			err = os.Remove(name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// found returns the diagnostics of the platform. If the mistake is in the files of environment
// dev, it compiles only dev.
func (m *mistake) found(t *testing.T, dir string) []diag.Diagnostic {
	t.Helper()
	r := compiler.Request{Dir: dir, Store: t.TempDir(), Environments: []string{"dev"}}
	if slices.ContainsFunc(slices.Concat(m.files, m.fix), func(f txtar.File) bool { return !strings.HasPrefix(f.Name, "environments/dev/") }) {
		r.Environments = nil
	}
	b, err := compiler.Compile(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return b.Diagnostics
}

// check compares the diagnostics and their printed text with the comment of the mistake.
func (m *mistake) check(t *testing.T, ds []diag.Diagnostic, text string) {
	t.Helper()
	if n := len(reported.FindAllString(text, -1)); n != 1 {
		t.Errorf("there are %d diagnostics, and not one", n)
	}
	i := slices.IndexFunc(ds, func(d diag.Diagnostic) bool { return len(d.Because) == 0 })
	if i < 0 {
		return
	}
	cause, at := ds[i], ""
	if len(cause.Sites) > 0 {
		p := cause.Sites[0].Position
		at = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if at != m.at || cause.Path != m.path {
		t.Errorf("it is said of %q at %s, and not of %q at %s", cause.Path, at, m.path, m.at)
	}
	if cause.Hint == "" {
		t.Error("there is no hint")
	}
}

// reported matches the start of a printed diagnostic that is not a consequence of another one.
var reported = regexp.MustCompile(`(?m)^(error|warning)\[`)

// textOfMistake returns the diagnostics as a user sees them.
func textOfMistake(t *testing.T, ds []diag.Diagnostic) string {
	t.Helper()
	var b strings.Builder
	if err := diag.WriteText(&b, ds, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func (m *mistake) update(t *testing.T, name string, text []byte) {
	t.Helper()
	for i := range m.archive.Files {
		if m.archive.Files[i].Name == "want" {
			m.archive.Files[i].Data = text
		}
	}
	if err := os.WriteFile(name, txtar.Format(m.archive), 0o666); err != nil {
		t.Fatal(err)
	}
}
