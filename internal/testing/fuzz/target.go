package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// target is a fuzz target.
type target struct {
	dir  string // of its package, with slashes, relative to the module
	name string
	// says is the first sentence of its comment. slow is the text after "Slow:" there, the reason
	// why it tries few inputs.
	says, slow string
	rate       int // inputs in a second of one processor
}

// find returns the targets below a folder, sorted by package and then as they are in its files.
func find(root string) ([]target, error) {
	var all []target
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				all = append(all, newTarget(filepath.ToSlash(dir), f))
			}
		}
		return err
	})
	slices.SortStableFunc(all, func(a, b target) int { return strings.Compare(a.dir, b.dir) })
	return all, err
}

func newTarget(dir string, f *ast.FuncDecl) target {
	text, slow, _ := strings.Cut(f.Doc.Text(), "Slow:")
	says := strings.TrimPrefix(new(doc.Package).Synopsis(text), f.Name.Name)
	return target{dir: dir, name: f.Name.Name, says: strings.TrimLeft(says, ": "),
		slow: strings.Join(strings.Fields(slow), " ")}
}

const module = "github.com/kalypso-io/kalypso"

// importPath returns the path of the target's package, as go's cache of inputs has it.
func (t *target) importPath() string { return path.Join(module, t.dir) }

// corpusFolder returns the folder in which go keeps the inputs that reach new code.
func corpusFolder() (string, error) {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOCACHE: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "fuzz"), nil
}

// built is the folder of the package whose binary is there.
type built struct{ dir string }

// instrumented returns the flags of go test that let the fuzzer find inputs that reach new code.
// New code is code of this module, or with dependencies also code of its dependencies. Without
// them, a build uses go's cached dependencies. An input also takes a fraction of the time,
// because go looks at the counters of all instrumented code after each input.
func instrumented(dependencies bool) []string {
	if dependencies {
		return []string{"-fuzz=Fuzz"}
	}
	return []string{"-gcflags=" + module + "/...=-d=libfuzzer"} // the flag that -fuzz sets for each package
}

// build builds the tests of a package so that they can be fuzzed, unless they are.
func (b *built) build(dir, binary string, dependencies bool) error {
	if b.dir == dir {
		return nil
	}
	cmd := exec.Command("go", slices.Concat([]string{"test", "-c", "-ldflags=-w", "-o", binary},
		instrumented(dependencies), []string{"./" + dir})...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the tests of %s: %w", dir, err)
	}
	b.dir = dir
	return nil
}

var progress = regexp.MustCompile(`(?m)^fuzz: elapsed: \d+s, execs: (\d+) `)

// run runs a target, and returns the number of inputs that it has tried in a second of processor
// time. On a busy machine, a second of wall time would mean little.
func (t *target) run(binary, corpus string, each time.Duration) (int, error) {
	cmd := exec.Command(binary, "-test.run=^$", "-test.fuzz=^"+t.name+"$",
		"-test.fuzztime="+each.String(), "-test.fuzzminimizetime=1s", "-test.fuzzcachedir="+corpus)
	cmd.Dir = filepath.FromSlash(t.dir)
	out, err := cmd.CombinedOutput()
	if err != nil && !ended(string(out)) {
		return 0, fmt.Errorf("%w\n%s", err, out)
	}
	return rateOf(string(out), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
}

// ended reports whether a run failed only since its time was over, which go before 1.27 reports
// at times on a busy machine (https://go.dev/issue/75804). No input fails then.
func ended(out string) bool {
	return strings.Contains(out, "\n    context deadline exceeded\n") && !strings.Contains(out, "Failing input written")
}

// rateOf reads the output of a run. It returns the number of tried inputs per second of processor
// time.
func rateOf(out string, took time.Duration) (int, error) {
	if strings.Contains(out, "not built with coverage instrumentation") {
		return 0, errors.New("nothing shows which inputs reach new code: -d=libfuzzer has no effect on the compiler")
	}
	lines := progress.FindAllStringSubmatch(out, -1)
	if len(lines) == 0 {
		return 0, fmt.Errorf("it says nothing of how many inputs it tried:\n%s", out)
	}
	tried, _ := strconv.Atoi(lines[len(lines)-1][1])
	return int(float64(tried) / max(took.Seconds(), 0.001)), nil
}
