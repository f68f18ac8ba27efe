package kalypso_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// piece is a row of a recipe in docs/architecture.md, with an existing example of it.
type piece struct {
	file string // as the page has it
	fails
	path    string   // the file of the example, or a folder; "" for file
	removed []string // regular expressions of the texts of the piece; none for the whole file
}

// fails is the last column of a recipe. If test is "", the compiler rejects the package.
type fails struct {
	test, dir string
	// only is the subtest that is run, if the test takes long.
	only string
	// reads reports whether the test reads the piece when it runs. Else the piece is compiled
	// into the test.
	reads bool
}

func compiling(dir string) fails         { return fails{dir: dir} }
func compiled(test, dir string) fails    { return fails{test: test, dir: dir} }
func reading(test, dir string) fails     { return fails{test: test, dir: dir, reads: true} }
func (f fails) narrowed(to string) fails { f.only = to; return f }

// recipes are the recipes of docs/architecture.md by heading, with their rows in order.
var recipes = map[string][]piece{
	"A backend": {
		{"backends/NAME/NAME.go", compiling("backends/cue"), "backends/cue/cue.go", []string{`func \(cue\) Accounts\((.*\n)+?}\n`}},
		{"schema/reconciler.cue", reading("TestModuleIsValid", "."), "", []string{`(?m)^#CUE: \{\n(.*\n)+?}\n`}},
		{"schema/reconciler.cue", reading("TestAll", "backends"), "", []string{`\tcue\?: #CUE\n`}},
		{"schema/reconciler.cue", reading("TestAll", "backends"), "", []string{`, cue\b`}},
		{"backends/all/all.go", compiled("TestAll", "backends"), "", []string{`.*backends/cue"\n`, `.*cue\.New.*\n`}},
		{"backends/samples_test.go", compiled("TestAll", "backends"), "", []string{`.*backends/cue"\n`, `.*cue\.New.*\n`}},
		{"backends/NAME/testdata", reading("TestFiles", "backends"), "backends/cue/testdata", nil},
		{"testdata/script/k1107-one-of.txtar", reading("TestScript", "cmd/kalypso").narrowed("k1107-one-of"), "", []string{`, cue\b`}},
		{"testdata/script/init.txtar", reading("TestScript", "cmd/kalypso").narrowed("init"), "", []string{`, cue'`}},
		{"docs/reconcilers/NAME.md", reading("TestFiles", "backends"), "docs/reconcilers/cue.md", nil},
		{"docs/reconcilers/README.md", reading("TestFiles", "backends"), "", []string{"\\| \\[`cue`.*\n"}},
		{"docs/reconcilers/README.md", reading("TestTable", "backends"), "", []string{"`cue` \\|\n"}},
		{"docs/architecture.md", reading("TestOrder", "."), "", []string{", `backends/cue`"}},
		{"docs/language.md", reading("TestReference", "cmd/kalypso"), "", []string{`(?m)^.*#cue\).*\n`}},
	},
	"A field of the language": {
		{"schema/*.cue", compiled("TestModelIsInSchema", "compiler/evaluate/shape"), "schema/workload.cue", []string{`\trestartOnConfigChange.*\n`}},
		{"compiler/model/model.go", compiling("compiler/engine"), "", []string{`\tRestartOnConfigChange bool\n`}},
		{"backends/backend.go", compiling("compiler/engine"), "", []string{`\tRestart bool\n`, `(?s)// NoRestart.*?\n}\n`}},
		{"compiler/engine/emit.go", reading("TestAssignmentIsComplete", "compiler/engine"), "", []string{`\tRestart: .*\n`}},
		{"backends/kubernetes, or the backends", compiled("TestRestart", "backends"), "backends/kubernetes/manifests.go", []string{`(?s)\tif a.Render && a.Restart .*?\n\t}\n`}},
		{"docs/language.md", reading("TestReference", "cmd/kalypso"), "", []string{"(?m)^.*`restartOnConfigChange`.*\n"}},
	},
	"A gate": {
		{"schema/promotion.cue", compiled("TestPromotion", "compiler/evaluate"), "", []string{`\twindows\?: .*\n`}},
		{"schema/promotion.cue", compiled("TestSchemaIsInTable", "promotion/gate"), "", []string{` \| "windows"`}},
		{"compiler/model/promotion.go", compiling("compiler/evaluate/internal/check"), "", []string{`\tWindows .*\n`}},
		{"compiler/evaluate/export/promotion.go", compiled("TestPromotion", "compiler/evaluate"), "", []string{`\tWindows: .*\n`}},
		{"promotion/gate/NAME.go", compiling("promotion/gate"), "promotion/gate/windows.go", nil},
		{"promotion/gate/kind.go", compiled("TestModelIsInTable", "promotion/gate"), "", []string{`\t{"windows".*\n`}},
		{"compiler/query/graph.go", compiled("TestGateTexts", "compiler/query"), "", []string{`(?s)\tfor _, w := range g.Windows .*?\n\t}\n`}},
		{"docs/promotion.md", reading("TestPageHasGates", "promotion/gate"), "", []string{"\\| `windows` .*\n"}},
		{"docs/language.md", reading("TestReference", "cmd/kalypso"), "", []string{"(?m)^.*`windows`.*\n"}},
	},
	"A diagnostic": {
		{"compiler/diag/catalogue.go", compiling("compiler/diag"), "", []string{`\tOwnChangesSoak .*\n`}},
		{"compiler/diag/catalogue.go", compiled("TestCodes", "compiler/diag"), "", []string{`(?s)\t{OwnChangesSoak, .*?"},\n`}},
		{"the package that knows the fact", compiled("TestScript", "cmd/kalypso").narrowed("k1921-own-changes-soak"),
			"compiler/evaluate/internal/check/policy.go", []string{`x\.Report(\(diag\.New\(diag\.OwnChangesSoak)`}},
		{"testdata/script/kNNNN-words.txtar", reading("TestEveryCodeHasAScript", "cmd/kalypso"), "testdata/script/k1921-own-changes-soak.txtar", nil},
		{"docs/diagnostics.md", reading("TestReference", "cmd/kalypso"), "", []string{`### K1921.*\n`}},
	},
	"A page": {
		{"view/view.go", compiling("view"), "", []string{`\tPolicies\(ctx .*\n`}},
		{"view/page.go", compiled("TestHostile", "view"), "", []string{`(?s)\tcase is\(segments, "policies", 1\):.*?\n(\tcase)`}},
		{"view/templates/NAME.html", compiled("TestHostile", "view"), "view/templates/policies.html", []string{`(?s)\{\{define "policies"\}\}.*?(\n\{\{define|$)`}},
		{"view/templates/lists.html, or another template", compiled("TestAllPages", "view"), "view/templates/lists.html", []string{`.*to "policies" .*\n`}},
		{"view/file.go", compiled("TestAllPages", "view"), "", []string{`, path\("policies", e.Name\)`}},
		{"view/platform", compiling("view/platform"), "view/platform/entities.go", []string{`(?s)func \(p \*Platform\) Policies\(.*?\n}\n`}},
		{"view/view_test.go", compiling("view"), "", []string{`(?s)func \(s hostile\) Policies\(.*?\n}\n`}},
		{"view/view_test.go", compiled("TestAllPages", "view"), "", []string{`"/policies/x", `}},
	},
	"A table or list": {
		{"compiler/query/entities.go", compiling("compiler/query/tables"), "", []string{`(?s)func Reconcilers\(.*?\n}\n`}},
		{"compiler/query/tables/entities.go", compiling("compiler/query/tables"), "", []string{`(?s)func Reconcilers\(.*?\n}\n`}},
		{"compiler/query/tables/table.go", compiled("TestAll", "compiler/query/tables"), "", []string{`&Reconcilers\(\).Table, `}},
		{"cmd/kalypso/get.go", compiled("TestCollectionsAreListed", "cmd/kalypso"), "", []string{`(?s)\t\tnewListing\(tables.Reconcilers\(\).*?\n\t\t}, byClusterType\),\n`}},
		{"docs/query.md", reading("TestReference", "cmd/kalypso"), "", []string{`### reconcilers\n`}},
		{"docs/cli.md", reading("TestReference", "cmd/kalypso"), "", []string{`### kalypso get reconcilers\n`}},
	},
}

// TestRecipes compares the tables of docs/architecture.md with recipes.
func TestRecipes(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## Recipes\n")
	text, _, _ = strings.Cut(text, "\n## ")
	found := map[string][]string{}
	for _, section := range strings.Split(text, "\n### ")[1:] {
		heading, _, _ := strings.Cut(section, "\n")
		for _, row := range regexp.MustCompile(`(?m)^\| \d+ \| (.+?) \| .+ \| (.+) \|$`).FindAllStringSubmatch(section, -1) {
			found[heading] = append(found[heading], strings.ReplaceAll(row[1]+": "+row[2], "`", ""))
		}
	}
	for heading, pieces := range recipes {
		var want []string
		for _, p := range pieces {
			row := p.file + ": the compiler"
			if p.test != "" {
				row = p.file + ": " + p.test + " in " + p.dir
			}
			want = append(want, row)
		}
		if !slices.Equal(found[heading], want) {
			t.Errorf("the table of %q in docs/architecture.md has the rows\n%s\nand want\n%s", heading,
				strings.Join(found[heading], "\n"), strings.Join(want, "\n"))
		}
		delete(found, heading)
	}
	if len(found) > 0 {
		t.Errorf("docs/architecture.md has recipes without pieces: %v", found)
	}
}

// TestSlowRecipes removes each piece of recipes, and expects that the compiler or the test
// fails. Compiled pieces are removed in an overlay of go. Pieces that a test reads are removed in
// a copy of the repository's files, in which a test program compiled from the repository runs.
func TestSlowRecipes(t *testing.T) {
	isolated.Slow(t, "it compiles dozens of packages with a file changed")
	w := &kitchen{T: t, copy: filepath.Join(t.TempDir(), "copy"), programs: t.TempDir(), passed: map[fails]bool{}}
	files, err := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(files), "\x00"), "\x00") {
		if err := copyFile(name, filepath.Join(w.copy, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	for _, heading := range slices.Sorted(maps.Keys(recipes)) {
		for i, p := range recipes[heading] {
			t.Run(fmt.Sprintf("%s/%d", heading, i+1), func(t *testing.T) {
				if p.path == "" {
					p.path = p.file
				}
				switch {
				case p.test == "":
					w.compiler(t, p)
				case p.reads:
					w.reading(t, p)
				default:
					w.compiled(t, p)
				}
			})
		}
	}
	t.Logf("the commands took %s of processor time", w.took.Round(time.Second))
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

// kitchen tries the recipes.
type kitchen struct {
	*testing.T
	copy     string // the copy of the repository
	programs string // the folder of the test programs, by package
	passed   map[fails]bool
	took     time.Duration
}

// without returns the file of a piece without the piece.
func (p *piece) without(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range p.removed {
		r := regexp.MustCompile(pattern)
		if !r.Match(text) {
			t.Fatalf("%s has no text %s", p.path, pattern)
		}
		text = r.ReplaceAll(text, []byte("$1"))
	}
	return text
}

// overlay returns the flag of go commands that removes a piece.
func (w *kitchen) overlay(t *testing.T, p piece) string {
	t.Helper()
	file, err := filepath.Abs(p.path)
	if err != nil {
		t.Fatal(err)
	}
	other := ""
	if len(p.removed) > 0 {
		other = filepath.Join(t.TempDir(), filepath.Base(p.path))
		if err := os.WriteFile(other, p.without(t), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {file: other}})
	if err != nil {
		t.Fatal(err)
	}
	flag := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(flag, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + flag
}

// run runs a command in a folder, and returns its output and whether it succeeded.
func (w *kitchen) run(t *testing.T, dir string, command ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	w.took += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return string(out), err == nil
}

// compiler expects that the package does not compile.
func (w *kitchen) compiler(t *testing.T, p piece) {
	command := []string{"go", "build"}
	if strings.HasSuffix(p.path, "_test.go") {
		command = []string{"go", "test", "-vet=off", "-c", "-o", os.DevNull}
	}
	out, ok := w.run(t, ".", append(command, w.overlay(t, p), "./"+p.dir)...)
	if ok || !regexp.MustCompile(`(?m)^\S+\.go:\d+:\d+: `).MatchString(out) {
		t.Errorf("%s compiles without the piece in %s:\n%s", p.dir, p.path, out)
	}
}

// pattern is the flag -run of the test.
func (f fails) pattern() string {
	if f.only != "" {
		return "^" + f.test + "$/^" + f.only + "$"
	}
	return "^" + f.test + "$"
}

// compiled expects that the test fails if the piece is not compiled into it.
func (w *kitchen) compiled(t *testing.T, p piece) {
	out, ok := w.run(t, ".", "go", "test", "-vet=off", "-ldflags=-s -w", w.overlay(t, p), "-run="+p.pattern(), "./"+p.dir)
	p.check(t, out, ok)
}

// check fails unless a test program ran, and the test failed.
func (p *piece) check(t *testing.T, out string, ok bool) {
	t.Helper()
	if ok || !strings.Contains(out, "--- FAIL: "+p.test) {
		t.Errorf("%s in %s does not fail without the piece in %s:\n%s", p.test, p.dir, p.path, out)
	}
}

// reading expects that the test fails if it does not find the piece in the copy of the
// repository, and passes if it finds it.
func (w *kitchen) reading(t *testing.T, p piece) {
	program := filepath.Join(w.programs, strings.ReplaceAll(p.dir, "/", "-")+".test.exe")
	if _, err := os.Stat(program); err != nil {
		if out, ok := w.run(t, ".", "go", "test", "-vet=off", "-ldflags=-s -w", "-c", "-o", program, "./"+p.dir); !ok {
			t.Fatal(out)
		}
	}
	test := func() (string, bool) {
		return w.run(t, filepath.Join(w.copy, p.dir), program, "-test.run="+p.pattern())
	}
	if !w.passed[p.fails] {
		if out, ok := test(); !ok {
			t.Fatalf("%s in %s fails in a copy of the repository:\n%s", p.test, p.dir, out)
		}
		w.passed[p.fails] = true
	}
	file := filepath.Join(w.copy, p.path)
	if err := os.Rename(file, file+".kept"); err != nil {
		t.Fatal(err)
	}
	if len(p.removed) > 0 {
		if err := os.WriteFile(file, p.without(t), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	out, ok := test()
	p.check(t, out, ok)
	if err := errors.Join(os.RemoveAll(file), os.Rename(file+".kept", file)); err != nil {
		t.Fatal(err)
	}
}
