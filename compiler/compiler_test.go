package compiler_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// platforms returns the folders of the repository's platforms.
func platforms(t *testing.T) []string {
	t.Helper()
	modules, err := filepath.Glob("../examples/*/cue.mod")
	if err != nil || len(modules) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	out := []string{"../testdata/platform"}
	for _, m := range modules {
		out = append(out, filepath.Dir(m))
	}
	return out
}

// sound returns the environments of a platform that have no errors; nil means all. In the other
// environments of examples/tenants, a team tries to exceed its permissions.
func sound(platform string) []string {
	if filepath.Base(platform) == "tenants" {
		return []string{"dev"}
	}
	return nil
}

// outputOf returns the whole result of a build: the files of its trees, by path, and the
// diagnostics, without positions.
func outputOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	b, err := compiler.Compile(context.Background(), compiler.Request{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range b.Environments {
		if e.Tree == nil {
			t.Fatalf("environment %s has no tree: %v", e.Name, b.Diagnostics)
		}
		for _, ct := range e.Tree.ClusterTypes {
			content, err := ct.Content(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, folder := range content.Folders {
				out[e.Name+"/"+ct.Name+"/"+folder.Info.DeploymentTarget+"/"] = fmt.Sprintf("%+v %s", folder.Info, folder.Values)
			}
		}
		files, err := e.Tree.Files(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			out[e.Name+"/"+f.Path] = string(f.Data)
		}
	}
	said := map[string]int{}
	for _, d := range b.Diagnostics {
		said[fmt.Sprintf("%s %s %s %v", d.Code, d.Path, d.Message, d.Assignments)]++
	}
	out["diagnostics"] = fmt.Sprint(said)
	return out
}

func sameOutput(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if got[p] != want[p] {
			t.Errorf("%s differs:\n%s\nwant:\n%s", p, got[p], want[p])
		}
	}
	for p := range got {
		if _, there := want[p]; !there {
			t.Errorf("%s should not be there", p)
		}
	}
}

// TestOrderDoesNotMatter builds every platform again with its files renamed, the declarations in
// them shuffled at every level, and another GOMAXPROCS.
func TestOrderDoesNotMatter(t *testing.T) { orderDoesNotMatter(t, 7) }

func TestSlowOrderDoesNotMatter(t *testing.T) {
	isolated.Slow(t, "it builds each platform four times")
	orderDoesNotMatter(t, 1, 2, 7)
}

// orderDoesNotMatter builds platforms with the given numbers of processors.
func orderDoesNotMatter(t *testing.T, procs ...int) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, platform := range platforms(t) {
		t.Run(filepath.Base(platform), func(t *testing.T) {
			want := outputOf(t, platform)
			for _, procs := range procs {
				dir := t.TempDir()
				shuffle(t, r, platform, dir)
				before := runtime.GOMAXPROCS(procs)
				got := outputOf(t, dir)
				runtime.GOMAXPROCS(before)
				sameOutput(t, got, want)
			}
		})
	}
}

// shuffle copies a platform, with its files and declarations in another order.
func shuffle(t *testing.T, r *rand.Rand, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o777)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(rel, ".cue") && !strings.HasPrefix(rel, "cue.mod") {
			if data, err = shuffled(r, data); err != nil {
				return err
			}
			target = filepath.Join(filepath.Dir(target), fmt.Sprintf("%c%d.cue", 'a'+r.IntN(26), r.IntN(1e9)))
		}
		return os.WriteFile(target, data, 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// shuffled returns a file with the declarations of every struct in another order.
func shuffled(r *rand.Rand, data []byte) ([]byte, error) {
	f, err := parser.ParseFile("", data) // without comments, because they would not move along
	if err != nil {
		return nil, err
	}
	first := slices.IndexFunc(f.Decls, func(d ast.Decl) bool {
		switch d.(type) {
		case *ast.Package, *ast.ImportDecl, *ast.Attribute, *ast.CommentGroup:
			return false
		}
		return true
	})
	swap := func(decls []ast.Decl) {
		r.Shuffle(len(decls), func(i, j int) { decls[i], decls[j] = decls[j], decls[i] })
	}
	if first >= 0 {
		swap(f.Decls[first:])
	}
	ast.Walk(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructLit); ok {
			swap(s.Elts)
		}
		return true
	}, nil)
	return format.Node(f)
}

// edits are independent edits of the test platform. Each can be combined with any of the others.
var edits = map[string]string{
	"more": `clusterTypes: tiny: {labels: {region: "east", size: "tiny"}, reconciler: "flux", configFormat: "json"}
		configs: tiny: {match: size: "tiny", values: TINY: %d}`,
	"load":    `workloads: shop: deploymentTargets: load: {environment: "dev", manifests: oci: {url: "oci://registry.example/shop", tag: "v%d"}}`,
	"number":  `configs: number: {match: {}, values: {NUMBER: %d, deep: {a: [1, {b: "x"}], c: null}}}`,
	"some":    `configs: some: {match: size: "small", values: SOME: %d}`,
	"format":  `clusterTypes: small: configFormat: "yaml"`,
	"service": "clusterTypes: large: namespaceService: \"far\"\nnamespaceServices: far: {pattern: \"far-\\(#assignment.deploymentTarget)\", #assignment: _, quota: pods: %d}",
	"deny":    `schedulingPolicies: deny: {deny: true, deploymentTargets: name: "test", clusterTypes: labels: size: "small"}`,
	"pin":     `schedulingPolicies: pin: {deploymentTargets: name: "test", clusterTypes: {}, pin: version: "9.%d.0"}`,
	"default": `configs: level: {match: {}, layer: 2, defaults: LOG_LEVEL: "warn"}`,
}

// mistakes are mistakes in an environment. Each keeps a part of the previous output.
var mistakes = map[string]string{
	"conflict":   `configs: conflict: {match: {}, values: REGION: "Nowhere"}`,
	"contract":   `configSchemas: missing: {match: size: "small", schema: MISSING: string}`,
	"syntax":     `configs: {`,
	"reference":  `configs: lost: {match: {}, values: A: nowhere}`,
	"policy":     `schedulingPolicies: sick: {deploymentTargets: {}, clusterTypes: lables: a: "b"}`,
	"reconciler": `clusterTypes: small: reconciler: "nothing"`,
	"sick":       `clusterTypes: large: lables: {}`,
}

// TestIncrementalEqualsFromScratch edits a platform, and builds it over the previous output and
// into an empty folder. Both results must be the same, even if there were mistakes in between.
func TestIncrementalEqualsFromScratch(t *testing.T) { incrementalEqualsFromScratch(t) }

func TestSlowIncrementalEqualsFromScratch(t *testing.T) {
	isolated.Slow(t, "it goes on with more edits")
	incrementalEqualsFromScratch(t)
}

func incrementalEqualsFromScratch(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	platform, over := t.TempDir(), t.TempDir()
	if err := os.CopyFS(platform, os.DirFS("../testdata/platform")); err != nil {
		t.Fatal(err)
	}
	build := func(to string) []diag.Diagnostic {
		b, _, err := compiler.Write(context.Background(), compiler.Request{Dir: platform}, compiler.Output{Dir: to})
		if err != nil {
			t.Fatal(err)
		}
		return b.Diagnostics
	}
	toggle := func(name, text string, on bool) {
		path := filepath.Join(platform, "environments", "dev", name+".cue")
		if !on {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			return
		}
		if strings.Contains(text, "%d") {
			text = fmt.Sprintf(text, 1+r.IntN(3))
		}
		if err := os.WriteFile(path, []byte("package platform\n"+text+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	build(over)
	for step := range howMany(t, 8, 25, 25) {
		for _, name := range slices.Sorted(maps.Keys(edits)) {
			if r.IntN(3) == 0 {
				toggle(name, edits[name], r.IntN(2) == 0)
			}
		}
		if r.IntN(3) == 0 {
			names := slices.Sorted(maps.Keys(mistakes))
			name := names[r.IntN(len(names))]
			toggle(name, mistakes[name], true)
			before := files(t, over)
			if ds := build(over); !diag.Errors(ds) {
				t.Fatalf("step %d: %s is no mistake: %v", step, name, ds)
			}
			noneLost(t, name, before, files(t, over))
			toggle(name, "", false)
		}
		if ds := build(over); diag.Errors(ds) {
			t.Fatalf("step %d: %v", step, ds)
		}
		scratch := t.TempDir()
		build(scratch)
		sameOutput(t, files(t, over), files(t, scratch))
		if t.Failed() {
			t.Fatalf("after step %d", step)
		}
	}
}

// noneLost checks that a mistake does not remove the folder of an assignment that the earlier
// edits may have left. If a folder is removed, all of it is.
func noneLost(t *testing.T, mistake string, before, after map[string]string) {
	t.Helper()
	for p := range after {
		if dir, name := filepath.Split(p); name == "reconciler.yaml" {
			for _, other := range []string{"kustomization.yaml", "namespace.yaml", "platform-config.yaml"} {
				if after[dir+other] == "" {
					t.Errorf("%s: %s is without %s", mistake, dir, other)
				}
			}
		}
	}
	for p := range before {
		whole := mistake == "syntax" || mistake == "reference" || mistake == "policy"
		if whole && strings.HasPrefix(p, "dev/") && after[p] == "" {
			t.Errorf("%s: %s is lost", mistake, p)
		}
	}
}

// files reads the files in a folder, except kalypso's private files. The content of an executable
// file starts with executableMark.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "lock" || entry.Name() == "index" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		info, err := entry.Info()
		if err == nil && tree.IsExecutable(info, false) {
			data = append([]byte(executableMark), data...)
		}
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
