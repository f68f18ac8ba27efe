package evaluate

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/incremental"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/testing/generate"
)

// memory is a cache.
type memory struct {
	sync.Mutex
	of         map[[32]byte][]byte
	hits, puts int
}

func newMemory() *memory { return &memory{of: map[[32]byte][]byte{}} }

func (m *memory) Get(key [32]byte) ([]byte, bool) {
	m.Lock()
	defer m.Unlock()
	data, ok := m.of[key]
	if ok {
		m.hits++
	}
	return data, ok
}

func (m *memory) Put(key [32]byte, data []byte) {
	m.Lock()
	defer m.Unlock()
	m.puts++
	m.of[key] = data
}

// answer is the complete result of an evaluation.
type answer struct {
	model     *model.Environment
	positions map[model.Ref][]model.Position
	ds        []diag.Diagnostic
	base, own model.Digest
	stats     incremental.Stats
}

// ask evaluates an environment in one piece if how is "whole", and each unit separately if it
// is "each". Otherwise it evaluates as Environment does.
func ask(t *testing.T, p *source.Platform, name string, how string, c memo.Cache) answer {
	t.Helper()
	if !p.HasBase() || !p.Loadable(name) {
		return answer{}
	}
	e := incremental.New(p, name, c)
	e.AsOne = how == "whole"
	if how == "each" {
		e.Least = 1
	}
	pkg, ds, err := evaluateEnvironment(context.Background(), e, []model.Declaration{{Name: "dev"}, {Name: "prod"}, {Name: "stage"}, {Name: "plant"}}, Options{Cache: c})
	if err != nil {
		t.Fatal(err)
	}
	a := answer{model: pkg.Model, base: pkg.Base, own: pkg.Own, stats: pkg.Stats}
	if a.model != nil {
		a.positions = a.model.Positions.All()
		diag.Resolve(ds, a.model.Positions)
		a.model.Positions = nil
		withoutFunctionDigests(a.model)
	}
	for i := range ds {
		for j := range ds[i].Sites {
			ds[i].Sites[j].Ref = model.Ref{}
		}
	}
	a.ds = diag.Sort(ds)
	return a
}

// withoutFunctionDigests removes the digests that depend on the unit of evaluation: the digests
// of functions of the assignment.
func withoutFunctionDigests(m *model.Environment) {
	for i := range m.Configs {
		if m.Configs[i].Facts != nil {
			m.Configs[i].Digest = ""
		}
	}
	for i := range m.NamespaceServices {
		if m.NamespaceServices[i].Facts != nil {
			m.NamespaceServices[i].Digest = ""
		}
	}
	for i := range m.Reconcilers {
		if m.Reconcilers[i].Facts != nil {
			m.Reconcilers[i].Digest = ""
		}
	}
}

// same reports the differences between two answers.
func same(t *testing.T, what string, got, want answer) {
	t.Helper()
	// Encode distinguishes nil from empty, but not the representations of a Value in memory.
	if !bytes.Equal(model.Encode(got.model), model.Encode(want.model)) {
		t.Errorf("%s: the models differ:\n%+v\n%+v", what, got.model, want.model)
	}
	if !reflect.DeepEqual(got.ds, want.ds) {
		t.Errorf("%s: the diagnostics differ:\n%+v\n%+v", what, got.ds, want.ds)
	}
	if got.base != want.base || got.own != want.own {
		t.Errorf("%s: the digests differ", what)
	}
	for _, ref := range slices.Concat(slices.Collect(maps.Keys(got.positions)), slices.Collect(maps.Keys(want.positions))) {
		if !slices.Equal(got.positions[ref], want.positions[ref]) {
			t.Errorf("%s: %s is at %v, and at %v", what, ref, got.positions[ref], want.positions[ref])
			return
		}
	}
}

// compareWays evaluates an environment in every way, compares the answers, and returns the
// statistics of the units.
func compareWays(t *testing.T, p *source.Platform, name string) incremental.Stats {
	t.Helper()
	want := ask(t, p, name, "whole", nil)
	c := newMemory()
	each := ask(t, p, name, "each", nil)
	same(t, "each unit alone", each, want)
	same(t, "as it comes", ask(t, p, name, "", c), want)
	puts := c.puts
	warm := ask(t, p, name, "", c)
	same(t, "from the cache", warm, want)
	if want.model != nil && (warm.stats.Evaluated > 0 || c.puts > puts) {
		t.Errorf("evaluated again: %+v", warm.stats)
	}
	return each.stats
}

// nasty are packages of at least two files, with the number of units that kalypso evaluates,
// not counting the unit of the empty file. With or without errors, no other result may reveal
// the units. The number is 0 if the package is unreadable.
var nasty = map[string]struct {
	files map[string]string
	parts int
}{
	"entities in files of their own": {map[string]string{
		"a.cue": `configs: a: {match: {}, values: A: 1}`,
		"b.cue": `configs: b: {match: {}, values: B: 1}`,
		"c.cue": `clusterTypes: c: reconciler: "flux"` + "\n" + `reconcilers: own: flux: {}`}, 4},
	"an entity in two files": {map[string]string{
		"a.cue": `configs: a: {match: {}, values: A: 1}`,
		"b.cue": `configs: {a: values: B: 1, b: match: {}}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"a reference into another file's entity": {map[string]string{
		"a.cue": `configs: a: {match: {}, values: A: 1}`,
		"b.cue": `configs: b: {match: {}, values: B: configs.a.values.A}`}, 1},
	"a hidden field of another file": {map[string]string{
		"a.cue": `_x: 5`,
		"b.cue": `configs: b: {match: {}, values: B: _x}`,
		"c.cue": `configs: c: {match: {}, values: C: _x}`}, 3},
	"a hidden field made of a collection": {map[string]string{
		"a.cue": `_names: [for k, v in configs {k}]`,
		"b.cue": `configs: b: {match: {}, values: B: "x"}`,
		"c.cue": `configs: c: {match: {}, values: C: _names}`}, 1},
	"entities made of a hidden field": {map[string]string{
		"a.cue": "_teams: {x: 1, y: 2}\nconfigs: {for k, v in _teams {\"\\(k)\": {match: {}, values: TEAM: v}}}",
		"b.cue": `configs: b: {match: {}, values: B: "x"}`}, 2},
	"entities made of a collection": {map[string]string{
		"a.cue": "configs: {for k, v in clusterTypes {\"\\(k)\": {match: clusterType: k, values: T: k}}}",
		"b.cue": `clusterTypes: b: reconciler: "flux"`}, 1},
	"a made entity that a file adds to": {map[string]string{
		"a.cue": "_teams: [\"x\", \"y\"]\nconfigs: {for k in _teams {\"\\(k)\": {match: {}, values: TEAM: k}}}",
		"b.cue": `configs: x: values: MORE: 1`,
		"c.cue": `configs: z: match: {}`}, 3},
	"a pattern": {map[string]string{
		"a.cue": `configs: [Name=string]: {layer: 3, values: NAME: Name}`,
		"b.cue": `configs: b: {match: {}, values: B: "x"}`,
		"c.cue": `configs: c: {match: {}, values: C: "x"}`}, 3},
	"a pattern that conflicts": {map[string]string{
		"a.cue": `configs: [string]: layer: 3`,
		"b.cue": `configs: b: {match: {}, layer: 4, values: B: "x"}`,
		"c.cue": `configs: c: {match: {}, layer: 5, values: C: "x"}`}, 3},
	"a mistake in a pattern": {map[string]string{
		"a.cue": `configs: [string]: layr: 3`,
		"b.cue": `configs: b: {match: {}, values: B: "x"}`,
		"c.cue": `configs: c: {match: {}, values: C: "x"}`}, 1},
	"a sibling": {map[string]string{
		"a.cue": `configs: {a: {match: {}, values: A: 1}, b: {match: {}, values: B: a.values.A}}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"a sibling in a shared file that another completes": {map[string]string{
		"a.cue": `_x: 1` + "\n" + `configs: {a: {match: {}, values: A: int}, b: {match: {}, values: B: a.values.A}}`,
		"b.cue": `configs: a: values: A: 7`}, 1},
	"an entity of a shared file that another completes": {map[string]string{
		"a.cue": `_x: 1` + "\n" + `clusterTypes: {a: labels: x: "1", b: reconciler: "flux"}`,
		"b.cue": `clusterTypes: a: reconciler: "flux"`}, 2},
	"a let of a collection": {map[string]string{
		"a.cue": `configs: {let T = {match: {}}, a: T & {values: A: 1}}`,
		"b.cue": `configs: b: match: {}`}, 2},
	"a let at the top": {map[string]string{
		"a.cue": "let c = configs\n_n: len(c)",
		"b.cue": `configs: b: match: {}`}, 1},
	"an alias of a collection": {map[string]string{
		"a.cue": "C=configs: a: match: {}\nconfigs: d: {match: {}, values: D: C.b.values.B}",
		"b.cue": `configs: b: {match: {}, values: B: 1}`}, 1},
	"an alias of a collection's value": {map[string]string{
		"a.cue": "configs: C={a: {match: {}, values: A: C.b.values.B}}",
		"b.cue": `configs: b: {match: {}, values: B: 1}`}, 1},
	"an alias of an entity": {map[string]string{
		"a.cue": "_x: 1\nconfigs: {A=a: {match: {}, values: A: int}, b: {match: {}, values: B: A.values.A}}",
		"b.cue": `configs: a: values: A: 7`}, 0},
	"a field named like a collection": {map[string]string{
		"a.cue": `configs: a: {match: {}, values: {configs: 1, b: configs}}`,
		"b.cue": `configs: b: {match: {}, values: configs: x: 1}`}, 1},
	"a key named like a collection": {map[string]string{
		"a.cue": `configs: a: {match: {}, values: configs: 1}`,
		"b.cue": `configs: b: {match: {}, values: _x.configs}`,
		"c.cue": `_x: configs: y: 1`}, 3},
	"a variable named like a collection": {map[string]string{
		"a.cue": `configs: a: {match: {}, values: X: [for configs in [1, 2] {configs}]}`,
		"b.cue": `configs: b: match: {}`}, 1},
	"a collection in an interpolation": {map[string]string{
		"a.cue": `configs: a: {match: {}, values: X: "\(configs.b.values.B)"}`,
		"b.cue": `configs: b: {match: {}, values: B: 1}`}, 1},
	"a limit on a collection": {map[string]string{
		"a.cue": "import \"struct\"\nconfigs: struct.MaxFields(1)",
		"b.cue": `configs: b: match: {}`,
		"c.cue": `configs: c: match: {}`}, 1},
	"an embedding at the top": {map[string]string{
		"a.cue": "#all: {configs: a: match: {}, ...}\n#all",
		"b.cue": `configs: b: match: {}`}, 1},
	"an embedding in a collection": {map[string]string{
		"a.cue": "_all: {[string]: layer: 7}\nconfigs: _all",
		"b.cue": `configs: b: match: {}`,
		"c.cue": `configs: {_all, c: match: {}}`}, 1},
	"a guarded collection": {map[string]string{
		"a.cue": "_on: true\nif _on {configs: a: match: {}}",
		"b.cue": `configs: b: match: {}`}, 1},
	"a guarded entity": {map[string]string{
		"a.cue": "_on: true\nconfigs: {if _on {a: match: {}}}",
		"b.cue": `configs: b: match: {}`}, 2},
	"a guard without a value": {map[string]string{
		"a.cue": "_on: bool\nconfigs: {if _on {a: match: {}}}",
		"b.cue": `configs: b: match: {}`}, 1},
	"a guard on another entity": {map[string]string{
		"a.cue": "_x: 1\nconfigs: {if b.values.B == 1 {a: match: {}}, b: {match: {}, values: B: int}}",
		"b.cue": `configs: b: values: B: 1`}, 1},
	"a required entity": {map[string]string{
		"a.cue": `configs: b!: match: {}`,
		"b.cue": `configs: b: values: B: 1`}, 1},
	"a dynamic entity": {map[string]string{
		"a.cue": "_n: \"x\"\nconfigs: (_n): match: {}",
		"b.cue": `configs: b: match: {}`}, 2},
	"a definition": {map[string]string{
		"a.cue": "#T: {match: {}, values: {REGION: string, ...}, ...}",
		"b.cue": `configs: b: #T & {values: REGION: "x"}`,
		"c.cue": `configs: c: #T & {values: REGION: "y"}`}, 3},
	"a helper package": {map[string]string{
		"../../lib/lib.cue": "package lib\n\n#T: {match: {}, values: REGION: \"lib\", ...}",
		"b.cue":             "import \"test.example/platform/lib\"\nconfigs: b: lib.#T",
		"c.cue":             `configs: c: match: {}`}, 3},
	"the base as a package": {map[string]string{
		"b.cue": "import base \"test.example/platform:platform\"\nconfigs: b: {match: {}, values: N: [for k, v in base.reconcilers {k}]}",
		"c.cue": `reconcilers: c: flux: {}`}, 1},
	"an embedded file": {map[string]string{
		"b.json": `{"X": 1}`,
		"b.cue":  "@extern(embed)\npackage platform\nconfigs: b: {match: {}, values: _ @embed(file=b.json)}",
		"c.cue":  `configs: c: match: {}`}, 3},
	"a function of the assignment": {map[string]string{
		"b.cue": `configs: b: {#assignment: _, match: {}, values: W: #assignment.clusterType}`,
		"c.cue": `namespaceServices: c: {#assignment: _, pattern: "\(#assignment.workload)-x"}`,
		"d.cue": `configs: d: match: {}`}, 4},
	"a shared #assignment": {map[string]string{
		"a.cue": "import \"kalypso.io/schema\"\n#assignment: schema.#Assignment\n_w: #assignment.clusterType",
		"b.cue": `configs: b: {match: {}, values: W: _w}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"references that lead nowhere": {map[string]string{
		"b.cue": `clusterTypes: b: {reconciler: "flx", namespaceService: "none"}`,
		"c.cue": `clusterTypes: c: reconciler: "flux"`,
		"d.cue": `clusters: {d: clusterType: "c", e: clusterType: "x"}`}, 4},
	"full names that are the same": {map[string]string{
		"b.cue": `workloads: "a-b": {workspace: "w", deploymentTargets: c: {environment: "dev", manifests: git: {repo: "https://a/b", branch: "main"}}}`,
		"c.cue": `workloads: a: {workspace: "w", deploymentTargets: "b-c": {environment: "dev", manifests: git: {repo: "https://a/b", branch: "main"}}}`}, 3},
	"a target of no environment": {map[string]string{
		"../../b.cue": `workloads: b: {workspace: "w", deploymentTargets: c: {environment: "devv", manifests: git: {repo: "https://a/b", branch: "main"}}}`,
		"c.cue":       `configs: c: match: {}`}, 3},
	"an environment of this folder": {map[string]string{
		"b.cue": `environments: b: {}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"the default namespace service": {map[string]string{
		"b.cue": `namespaceServices: default: pod: labels: {a: "b"}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"an unknown field in one of several": {map[string]string{
		"b.cue": `configs: b: {match: {}, layr: 1}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"a file that does not compile": {map[string]string{
		"b.cue": `configs: b: {match: {}, values: X: nope}`,
		"c.cue": `configs: c: match: {}`}, 0},
	"an unused import": {map[string]string{
		"b.cue": "import \"strings\"\nconfigs: b: match: {}",
		"c.cue": `configs: c: match: {}`}, 0},
	"a file that does not parse": {map[string]string{
		"b.cue": `configs: b: {`,
		"c.cue": `configs: c: match: {}`}, 0},
	"a bad name": {map[string]string{
		"b.cue": `configs: Bad: match: {}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"an unknown collection": {map[string]string{
		"b.cue": `config: b: match: {}`,
		"c.cue": `configs: c: match: {}`}, 1},
	"a registration": {map[string]string{
		"b.cue": `registrations: b: {}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"a contract": {map[string]string{
		"a.cue": "#C: {LEVEL: *\"info\" | \"debug\", PORT!: int & >0, opt?: [...string]}",
		"b.cue": `configSchemas: b: {match: {}, schema: #C}`,
		"c.cue": `configSchemas: c: {match: {}, schema: {#C, MORE: string}}`}, 3},
	"open leaves": {map[string]string{
		"a.cue": "#Level: *\"info\" | \"debug\"",
		"b.cue": `configs: b: {match: {}, values: {L: #Level, N: int & >1, S: {...}}}`,
		"c.cue": `configs: c: {match: x: "a" | =~"^b", defaults: {L: "x"}}`}, 3},
	"values that refer to open ones": {map[string]string{
		"b.cue": `configs: b: {match: {}, values: {L: string, M: "\(L)-x"}}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"a conflict between two files": {map[string]string{
		"a.cue": `configs: b: {match: {}, values: X: 1}`,
		"b.cue": `configs: b: {match: {}, values: X: 2}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"a collection within its own struct": {map[string]string{
		"b.cue": `schedulingPolicies: p: {deploymentTargets: {}, clusterTypes: labels: x: "1", except: clusterTypes: name: "c"}`,
		"c.cue": `clusterTypes: c: {reconciler: "flux", labels: x: "1"}`}, 3},
	"a collection that nobody declares": {map[string]string{
		"../../platform.cue": "package platform\n\nimport \"kalypso.io/schema\"\n\nenvironments: schema.#Environments\nenvironments: dev: {}\n",
		"a.cue":              `configs: a: {name: "a", match: {}}`,
		"b.cue":              `configs: b: {name: "b", match: {}}`,
		"c.cue":              `configs: c: match: {}`}, 1},
	"a broken assertion": {map[string]string{
		"a.cue": "_assert: 1 & 2",
		"b.cue": `configs: b: match: {}`}, 1},
	"the error of CUE": {map[string]string{
		"a.cue": "_|_",
		"b.cue": `configs: b: match: {}`}, 1},
	"the error of CUE in an entity": {map[string]string{
		"a.cue": "configs: a: {match: {}, values: X: _|_}",
		"b.cue": `configs: b: match: {}`}, 1},
	"an attribute of a file": {map[string]string{
		"a.cue": "@if(prod)\npackage platform\nconfigs: a: match: {}",
		"b.cue": `configs: b: match: {}`}, 1},
	"mistakes that are alike": {map[string]string{
		"b.cue": `configs: b: {match: {}, layr: 1}`,
		"c.cue": `configs: c: {match: {}, layr: 1}`}, 3},
	"mistakes of one template": {map[string]string{
		"a.cue": "#T: {match: {}, layer: \"x\", ...}",
		"b.cue": `configs: b: #T`,
		"c.cue": `configs: c: #T`}, 3},
	"a mistake of a template, and one more": {map[string]string{
		"a.cue": "#T: {match: {}, values: {A: int, B: 1 & 2}, ...}",
		"b.cue": `configs: b: #T`,
		"c.cue": `configs: c: {match: {}, values: X: nowhere & 3, #nowhere: 1}`}, 0},
	"a target in another environment's folder": {map[string]string{
		"b.cue": `workloads: b: {workspace: "w", deploymentTargets: c: {environment: "prod", manifests: git: {repo: "https://a/b", branch: "main"}}}`,
		"c.cue": `configs: c: match: {}`}, 3},
	"mistakes of every kind": {map[string]string{
		"b.cue": `workloads: b: {workspace: "w", labels: workload: "x", deploymentTargets: c: {environment: "dev"}}`,
		"c.cue": `configs: c: {match: {}, values: '1'}`,
		"d.cue": `clusters: d: {clusterType: "c", values: A: 1}`,
		"e.cue": `clusterTypes: c: {reconciler: "flux", configFormat: "xml"}`,
		"f.cue": `schedulingPolicies: p: {deploymentTargets: {}, clusterTypes: [string]: "x"}`,
		"g.cue": `configSchemas: s: {match: {}, schema: {A: 1 & 2}}`,
		"h.cue": `reconcilers: r: {flux: {}, argocd: {}}`}, 8},
	"an embed without effect": {map[string]string{
		"b.json": `{"X": 1}`,
		"b.cue":  "configs: b: {match: {}, values: {} @embed(file=b.json)}",
		"c.cue":  `configs: c: match: {}`}, 1},
}

func TestUnitsAreTheWhole(t *testing.T) {
	for name, c := range nasty {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"environments/dev/empty.cue": "package platform\n"}
			for name, text := range c.files {
				if strings.HasSuffix(name, ".cue") && !strings.Contains(text, "package ") {
					text = "package platform\n\n" + text + "\n"
				}
				files[filepath.Join("environments/dev", name)] = text
			}
			stats := compareWays(t, open(t, files), "dev")
			// The empty file is a leaf.
			want := c.parts
			if want > 1 {
				want++
			}
			if stats.Units != want {
				t.Errorf("%d parts (%s), want %d", stats.Units, stats.Whole, want)
			}
		})
	}
}

// platforms returns the folders of the platforms in this repository.
func platforms(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"../../testdata/platform", "../../examples/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		out = append(out, found...)
	}
	return out
}

func TestPlatformsInUnits(t *testing.T) {
	for _, dir := range platforms(t) {
		p, _, err := source.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		declarations, _, err := Declarations(context.Background(), p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range declarations {
			t.Run(filepath.Base(dir)+" "+s.Name, func(t *testing.T) {
				if stats := compareWays(t, p, s.Name); stats.Units < 2 {
					t.Errorf("in one piece: %s", stats.Whole)
				}
			})
		}
	}
}

func TestGeneratedInUnits(t *testing.T) {
	dir := t.TempDir()
	if _, err := generate.Write(dir, 7, generate.ForAssignments(400)); err != nil {
		t.Fatal(err)
	}
	p, ds, err := source.Open(dir)
	if err != nil || len(ds) > 0 {
		t.Fatal(err, ds)
	}
	if stats := compareWays(t, p, "dev"); stats.Units < 3 {
		t.Errorf("%+v", stats)
	}
}

// TestEditsInUnits edits random entities in random files at random, including edits that break
// them. The cached results of one state must not affect the results of another.
func TestEditsInUnits(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 5))
	statements := []func(i int) string{
		func(i int) string {
			return fmt.Sprintf("configs: c%d: {match: {}, values: K%d: %d}", i%5, i, draw.IntN(3))
		},
		func(i int) string { return fmt.Sprintf("configs: c%d: values: SAME: %d", i%5, draw.IntN(2)) },
		func(i int) string {
			return fmt.Sprintf("clusterTypes: t%d: {reconciler: \"flux\", labels: a: _label}", i%4)
		},
		func(i int) string { return fmt.Sprintf("clusters: k%d: clusterType: \"t%d\"", i%4, draw.IntN(4)) },
		func(i int) string {
			return fmt.Sprintf("configs: {d%d: {match: {}, values: A: 1}, e%d: {match: {}, values: B: d%d.values.A}}", i%3, i%3, i%3)
		},
		func(i int) string { return fmt.Sprintf("configs: [string]: values: P%d: 1", draw.IntN(2)) },
		func(i int) string {
			return fmt.Sprintf("configs: {for n in _names {\"\\(n)\": {match: {}, values: F: %d}}}", draw.IntN(2))
		},
		func(i int) string { return fmt.Sprintf("configs: n1: {match: {}, values: G%d: 1}", i) },
		func(i int) string { return fmt.Sprintf("_x%d: %d", i, i) },
		func(i int) string { return "configs: x: {match: {}, values: C: configs.c1.values.SAME}" },
		func(i int) string { return "configs: y: {match: {}, layr: 1}" },
		func(i int) string { return "// A comment." },
	}
	files := map[string]string{"environments/dev/shared.cue": "package platform\n\n_label: \"l\"\n_names: [\"n1\", \"n2\"]\n"}
	root := open(t, files).Root
	c := newMemory()
	parts := 0
	for step := range 25 {
		name := fmt.Sprintf("environments/dev/f%d.cue", draw.IntN(6))
		text := "package platform\n"
		for range draw.IntN(4) {
			n := len(statements)
			if draw.IntN(3) > 0 {
				n = 5
			}
			text += statements[draw.IntN(n)](draw.IntN(20)) + "\n"
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		p, _, err := source.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		got := ask(t, p, "dev", []string{"", "each"}[step%2], c)
		same(t, fmt.Sprintf("step %d, %s", step, name), got, ask(t, p, "dev", "whole", nil))
		if got.stats.Units > 1 {
			parts++
		}
		if t.Failed() {
			_ = filepath.WalkDir(filepath.Join(root, "environments"), func(name string, d fs.DirEntry, _ error) error {
				if data, err := os.ReadFile(name); err == nil {
					t.Logf("%s:\n%s", name, data)
				}
				return nil
			})
			return
		}
	}
	if parts < 5 {
		t.Errorf("only %d states were evaluated in parts", parts)
	}
}
