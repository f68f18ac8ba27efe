package evaluate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// TestBrokenCache checks that unreadable results of a cache count as missing.
func TestBrokenCache(t *testing.T) {
	p := open(t, map[string]string{
		"environments/dev/a.cue": "package platform\n\nconfigs: a: {match: {}, values: A: 1}\n",
		"environments/dev/b.cue": "package platform\n\nconfigs: b: {match: {}, values: B: 1}\n",
	})
	want := ask(t, p, "dev", "whole", nil)
	for name, breaks := range map[string]func([]byte) []byte{
		"cut short": func(b []byte) []byte { return b[:len(b)/2] },
		"empty":     func([]byte) []byte { return nil },
		"too long":  func(b []byte) []byte { return append(b[:len(b):len(b)], 1) },
	} {
		c := newMemory()
		same(t, name+", cold", ask(t, p, "dev", "", c), want)
		for key, data := range c.of {
			c.of[key] = breaks(data)
		}
		got := ask(t, p, "dev", "", c)
		same(t, name, got, want)
		if got.stats.Evaluated != got.stats.Units {
			t.Errorf("%s: %+v", name, got.stats)
		}
	}
}

// TestForgottenPositions checks that positions that a cache has dropped are computed again.
func TestForgottenPositions(t *testing.T) {
	p := open(t, map[string]string{
		"environments/dev/a.cue": "package platform\n\nconfigs: a: {match: {}, values: A: 1}\n",
		"environments/dev/b.cue": "package platform\n\nconfigs: b: {match: {}, values: B: 1}\n",
	})
	c := newMemory()
	want := ask(t, p, "dev", "", c)
	for key := range c.of {
		delete(c.of, sha256.Sum256(append([]byte("positions "), key[:]...)))
	}
	got := ask(t, p, "dev", "", c)
	same(t, "positions", got, want)
	if got.stats.Evaluated > 0 || len(got.positions) == 0 {
		t.Errorf("%+v", got.stats)
	}
}

// digestsOf returns the digests of a platform's entities, by collection and name.
func digestsOf(m *model.Environment) map[string]model.Digest {
	out := map[string]model.Digest{}
	for _, e := range m.ClusterTypes {
		out["clusterTypes."+e.Name] = e.Digest
	}
	for _, e := range m.Clusters {
		out["clusters."+e.Name] = e.Digest
	}
	for _, e := range m.Workloads {
		out["workloads."+e.Name] = e.Digest
		if e.Requires != nil {
			out["workloads."+e.Name+".requires"] = e.Requires.Digest
		}
		for _, t := range e.Targets {
			out["targets."+t.FullName] = t.Digest
		}
	}
	for _, e := range m.SchedulingPolicies {
		out["schedulingPolicies."+e.Name] = e.Digest
	}
	for _, e := range m.Configs {
		out["configs."+e.Name] = e.Digest
	}
	for _, e := range m.ConfigSchemas {
		out["configSchemas."+e.Name] = e.Digest
	}
	for _, e := range m.NamespaceServices {
		out["namespaceServices."+e.Name] = e.Digest
	}
	for _, e := range m.Reconcilers {
		out["reconcilers."+e.Name] = e.Digest
	}
	return out
}

// TestDigests checks that a digest changes if and only if the content of its entity changes.
func TestDigests(t *testing.T) {
	const file = `package platform

clusterTypes: c: {reconciler: "flux", labels: zone: "a"}
clusters: k: clusterType: "c"
workloads: w: {
	workspace: "team"
	requires: {
		LEVEL: "info" |
			"debug"
		PORT!: int
	}
	deploymentTargets: t: {environment: "dev", manifests: git: {repo: "https://git.example/a", branch: "main"}}
}
schedulingPolicies: p: {deploymentTargets: workspace: "team", clusterTypes: labels: zone: "a"}
configs: {
	a: {match: zone: "a", values: {A: 1, S: {x: "1"}}}
	f: {#assignment: _, match: {}, values: F: #assignment.clusterType}
}
configSchemas: s: {match: {}, schema: {A?: int}}
namespaceServices: n: quota: pods: "3"
`
	evaluated := func(text string) map[string]model.Digest {
		p := open(t, map[string]string{"environments/dev/a.cue": text, "environments/dev/b.cue": "package platform\n\nconfigs: b: match: {}\n"})
		pkg, ds := environment(t, p)
		if len(ds) > 0 {
			t.Fatal(ds)
		}
		return digestsOf(pkg.Model)
	}
	before := evaluated(file)
	for ref, digest := range before {
		if digest == "" {
			t.Errorf("%s has no digest", ref)
		}
	}
	for name, c := range map[string]struct{ from, to, changes string }{
		"nothing":                {"clusterTypes", "clusterTypes", ""},
		"lines and comments":     {"package platform\n", "// A comment.\npackage platform\n\n// Another one.\n\n", "configs.f"},
		"comments inside":        {"workspace: \"team\"\n", "// Whose it is.\n\tworkspace: \"team\" // the team's\n", "configs.f"},
		"comments in a contract": {"LEVEL: \"info\" |\n", "// How much.\n\t\tLEVEL: \"info\" | // or more\n", "configs.f"},
		"a value":                {"A: 1", "A: 2", "configs.a configs.f"},
		"a match":                {"match: zone: \"a\"", "match: zone: \"b\"", "configs.f"},
		"a label":                {"labels: zone: \"a\"}", "labels: zone: \"b\"}", "clusterTypes.c configs.f"},
		"a contract":             {"\"debug\"", "\"trace\"", "configs.f workloads.w workloads.w.requires"},
		"a branch":               {"main", "next", "configs.f targets.w-t workloads.w"},
		"a quota":                {"\"3\"", "\"4\"", "configs.f namespaceServices.n"},
	} {
		var changed []string
		after := evaluated(strings.Replace(file, c.from, c.to, 1))
		for _, ref := range slices.Sorted(maps.Keys(before)) {
			if before[ref] != after[ref] {
				changed = append(changed, ref)
			}
		}
		if got := strings.Join(changed, " "); got != c.changes {
			t.Errorf("%s changes %q, want %q", name, got, c.changes)
		}
	}
}

// TestStagesInUnits checks that the environments of the base are the same in units, and from
// the cache.
func TestStagesInUnits(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // the stages; invalid ones have !
	}{
		"declared in another file":  {"environments: stage: after: [\"dev\"]", "dev stage"},
		"none in it":                {"configs: c: match: {}", "dev"},
		"a mistake elsewhere":       {"configs: c: {match: {}, layr: 1}", "dev"},
		"a mistake in them":         {"environments: stage: aftr: [\"dev\"]", "dev stage!"},
		"a file that is unreadable": {"configs: c: {match: {}, values: X: nope}", ""},
	} {
		root := open(t, map[string]string{"more.cue": "package platform\n\n" + c.text + "\n", "other.cue": "package platform\n\nconfigs: o: match: {}\n"}).Root
		memory := newMemory()
		var codes string
		for i, how := range []memo.Cache{nil, memory, memory} {
			p, _, err := source.Open(root)
			if err != nil {
				t.Fatal(err)
			}
			declarations, ds, err := Declarations(context.Background(), p, Options{Cache: how})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range declarations {
				if s.Invalid {
					s.Name += "!"
				}
				names = append(names, s.Name)
			}
			var found string
			for _, d := range ds {
				found += string(d.Code) + d.Message + " "
			}
			if i == 0 {
				codes = found
			}
			if got := strings.Join(names, " "); got != c.want || found != codes {
				t.Errorf("%s: got %q %q, want %q %q", name, got, found, c.want, codes)
			}
		}
	}
}

// TestOneFileChanges checks that only the unit of a changed file is evaluated again.
func TestOneFileChanges(t *testing.T) {
	files := map[string]string{"environments/dev/shared.cue": "package platform\n\n_x: 1\n"}
	for _, name := range []string{"a", "b", "c"} {
		files["environments/dev/"+name+".cue"] = "package platform\n\nconfigs: " + name + ": {match: {}, values: X: _x}\n"
	}
	root := open(t, files).Root
	c := newMemory()
	for _, step := range []struct {
		name, text string
		evaluated  int
	}{
		{"environments/dev/shared.cue", "package platform\n\n_x: 1\n", 4},
		{"environments/dev/b.cue", "package platform\n\nconfigs: b: {match: {}, values: X: 3}\n", 1},
		{"environments/dev/b.cue", "package platform\n\nconfigs: b: {match: {}, values: X: 3}\n", 0},
		{"environments/dev/d.cue", "package platform\n\nconfigs: d: match: {}\n", 1},
		{"environments/dev/b.cue", "package platform\n\nconfigs: b: {match: {}, values: X: _x}\n", 0},
		{"environments/dev/shared.cue", "package platform\n\n_x: 2\n", 5},
		{"environments/dev/README.md", "x", 0},
	} {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(step.name)), []byte(step.text), 0o666); err != nil {
			t.Fatal(err)
		}
		p, _, err := source.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		got := ask(t, p, "dev", "", c)
		same(t, step.name, got, ask(t, p, "dev", "whole", nil))
		if got.stats.Evaluated != step.evaluated {
			t.Errorf("%s: %+v, want %d to be evaluated", step.name, got.stats, step.evaluated)
		}
	}
}

// TestMadeEntitiesComeAndGo checks the cache for shared files whose entities depend on other
// declarations. It must not reuse a result from before such a declaration was added or removed.
func TestMadeEntitiesComeAndGo(t *testing.T) {
	const made = "package platform\n\nconfigs: {for n in [\"a\", \"b\"] {(n): {match: {}, values: X: 1}}}\n"
	root := open(t, map[string]string{"environments/dev/made.cue": made, "environments/dev/z.cue": "package platform\n\nconfigs: z: match: {}\n"}).Root
	own := filepath.Join(root, "environments", "dev", "own.cue")
	c := newMemory()
	for i, text := range []string{
		"",
		"package platform\n\nnamespaceServices: default: labels: x: \"y\"\n",
		"package platform\n\nconfigs: a: values: Y: 2\n",
		"package platform\n\nconfigs: c: match: {}\n",
		"package platform\n\nconfigs: a: values: Y: 2\nnamespaceServices: default: labels: x: \"y\"\n",
		"",
		"package platform\n\nconfigs: b: values: Y: 2\n",
		"package platform\n\nconfigs: d: match: {}\n",
	} {
		err := os.Remove(own)
		if text != "" {
			err = os.WriteFile(own, []byte(text), 0o666)
		}
		if err != nil && text != "" {
			t.Fatal(err)
		}
		p, _, err := source.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprint("step ", i), ask(t, p, "dev", "", c), ask(t, p, "dev", "whole", nil))
	}
}
