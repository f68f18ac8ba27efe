package generate

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/load"

	"github.com/kalypso-io/kalypso"
)

// small sizes, of both kinds.
func small(distinct bool) Size {
	s := ForAssignments(200)
	s.DistinctTuples = distinct
	return s
}

func TestDeterministic(t *testing.T) {
	for _, distinct := range []bool{false, true} {
		a, b, c := write(t, 7, small(distinct)), write(t, 7, small(distinct)), write(t, 8, small(distinct))
		if !reflect.DeepEqual(files(t, a), files(t, b)) {
			t.Errorf("distinct %v: the same seed gave different files", distinct)
		}
		if reflect.DeepEqual(files(t, a), files(t, c)) {
			t.Errorf("distinct %v: different seeds gave the same files", distinct)
		}
	}
}

func TestCounts(t *testing.T) {
	for _, n := range []int{100, 200, 1_000, 5_000, 20_000, 100_000} {
		for _, distinct := range []bool{false, true} {
			s := ForAssignments(n)
			s.DistinctTuples = distinct
			got, err := Write(t.TempDir(), 1, s)
			if err != nil {
				t.Fatal(err)
			}
			if got != n {
				t.Errorf("ForAssignments(%d) with distinct %v made %d assignments", n, distinct, got)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	for name, change := range map[string]func(*Size){
		"more assignments than pairs":      func(s *Size) { s.Assignments = 1_000_000 },
		"fewer assignments than entities":  func(s *Size) { s.Assignments = 10 },
		"no workloads":                     func(s *Size) { s.Workloads = 0 },
		"too few configs for own ones":     func(s *Size) { s.Configs, s.DistinctTuples = 30, true },
		"a collection that CUE cannot do":  func(s *Size) { s.Configs = maxEntities + 1 },
		"a share of more than all configs": func(s *Size) { s.StructuredShare = 1.5 },
	} {
		s := small(false)
		change(&s)
		if _, err := Write(t.TempDir(), 1, s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestValid evaluates platforms with CUE, as cue vet does. Then it counts the generated entities,
// and derives assignments and conflicts from only the files.
func TestValid(t *testing.T) {
	for _, distinct := range []bool{false, true} {
		for _, seed := range []uint64{1, 2, 3} {
			t.Run(fmt.Sprintf("distinct=%v seed=%d", distinct, seed), func(t *testing.T) {
				s := small(distinct)
				v := evaluate(t, write(t, seed, s))
				for collection, want := range map[string]int{
					"clusterTypes": s.ClusterTypes, "workloads": s.Workloads, "configs": s.Configs, "configSchemas": s.ConfigSchemas,
				} {
					if got := len(entities(t, v, collection)); got != want {
						t.Errorf("%d %s, want %d", got, collection, want)
					}
				}
				pairs := schedule(t, v)
				if len(pairs) != s.Assignments {
					t.Errorf("the policies select %d pairs, want %d", len(pairs), s.Assignments)
				}
				tuples := compose(t, v, pairs)
				if distinct != (tuples == len(pairs)) {
					t.Errorf("%d tuples for %d assignments", tuples, len(pairs))
				}
			})
		}
	}
}

func write(t *testing.T, seed uint64, s Size) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := Write(dir, seed, s); err != nil {
		t.Fatal(err)
	}
	return dir
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// evaluate loads the dev environment with the module vendored.
func evaluate(t *testing.T, dir string) cue.Value {
	t.Helper()
	vendor := filepath.Join(dir, "cue.mod", "pkg", "kalypso.io")
	if err := os.CopyFS(vendor, kalypso.Module); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(vendor, "cue.mod")); err != nil {
		t.Fatal(err)
	}
	module, _, _ := strings.Cut(moduleText, "deps:")
	if err := os.WriteFile(filepath.Join(dir, "cue.mod", "module.cue"), []byte(module), 0o644); err != nil {
		t.Fatal(err)
	}
	instances := load.Instances([]string{"./environments/dev"}, &load.Config{
		Dir: dir, ModuleRoot: dir, Package: "platform",
		Env: []string{"CUE_REGISTRY=none", "CUE_CACHE_DIR=" + t.TempDir(), "HOME=/nonexistent"},
	})
	v := cuecontext.New().BuildInstance(instances[0])
	if err := v.Validate(); err != nil {
		t.Fatal(errors.Details(err, &errors.Config{Cwd: dir}))
	}
	return v
}

// entities are the entities of a collection by name.
func entities(t *testing.T, v cue.Value, path string) map[string]cue.Value {
	t.Helper()
	out := map[string]cue.Value{}
	it, err := v.LookupPath(cue.ParsePath(path)).Fields()
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		out[it.Selector().Unquoted()] = it.Value()
	}
	return out
}

// assigned is an assignment as the files have it.
type assigned struct{ deploymentTarget, clusterType string }

// schedule computes the assignments, and checks that all entities have an effect. The value of an
// assignment is its labels.
func schedule(t *testing.T, v cue.Value) map[assigned]labels {
	t.Helper()
	clusters := map[string]labels{}
	for name, c := range entities(t, v, "clusterTypes") {
		clusters[name] = labelsOf(t, c)
	}
	type fullTarget struct {
		facts  map[string]string
		labels labels
	}
	targets := map[string]fullTarget{}
	for workload, w := range entities(t, v, "workloads") {
		workspace, _ := w.LookupPath(cue.ParsePath("workspace")).String()
		for name, d := range entities(t, w, "deploymentTargets") {
			l := labelsOf(t, w)
			for k, v := range labelsOf(t, d) {
				l[k] = v
			}
			targets[workload+"-"+name] = fullTarget{map[string]string{"workload": workload, "workspace": workspace, "name": name}, l}
		}
	}

	out := map[assigned]labels{}
	used := map[string]bool{}
	for policy, p := range entities(t, v, "schedulingPolicies") {
		except := p.LookupPath(cue.ParsePath("except"))
		selected := 0
		for dt, d := range targets {
			if !selects(t, p.LookupPath(cue.ParsePath("deploymentTargets")), d.facts, d.labels) {
				continue
			}
			for ct, c := range clusters {
				facts := map[string]string{"name": ct}
				if !selects(t, p.LookupPath(cue.ParsePath("clusterTypes")), facts, c) {
					continue
				}
				if except.Exists() && selects(t, except.LookupPath(cue.ParsePath("deploymentTargets")), d.facts, d.labels) &&
					selects(t, except.LookupPath(cue.ParsePath("clusterTypes")), facts, c) {
					continue
				}
				all := labels{"clusterType": ct, "deploymentTarget": dt}
				for _, from := range []labels{d.facts, d.labels, c} {
					for k, v := range from {
						all[k] = v
					}
				}
				out[assigned{dt, ct}] = all
				used["target "+dt], used["cluster type "+ct] = true, true
				selected++
			}
		}
		if selected == 0 {
			t.Errorf("policy %s selects nothing", policy)
		}
	}
	if len(used) != len(targets)+len(clusters) {
		t.Errorf("%d of %d targets and cluster types are used", len(used), len(targets)+len(clusters))
	}
	return out
}

func labelsOf(t *testing.T, v cue.Value) labels {
	t.Helper()
	out := labels{}
	if err := v.LookupPath(cue.ParsePath("labels")).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// selects evaluates a selector: a regular field must be there, and each field
// that is there satisfies its constraint.
func selects(t *testing.T, selector cue.Value, facts, labels map[string]string) bool {
	t.Helper()
	it, err := selector.Fields(cue.Optional(true))
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		name := it.Selector().Unquoted()
		if name == "labels" {
			if !selects(t, it.Value(), labels, nil) {
				return false
			}
			continue
		}
		value, ok := facts[name]
		if !ok && it.IsOptional() {
			continue
		}
		if !ok || it.Value().Unify(cuecontext.New().Encode(value)).Validate(cue.Concrete(true)) != nil {
			return false
		}
	}
	return true
}

// compose checks that the configs of each assignment agree, that each config is
// somebody's, and returns the number of distinct sets of configs.
func compose(t *testing.T, v cue.Value, pairs map[assigned]labels) int {
	t.Helper()
	type config struct {
		match    map[string]string
		layer    int
		values   map[string]string // leaf by path; lists are leaves
		defaults map[string]string
	}
	configs := map[string]config{}
	for name, c := range entities(t, v, "configs") {
		var out config
		if err := c.LookupPath(cue.ParsePath("match")).Decode(&out.match); err != nil {
			t.Fatal(err)
		}
		if err := c.LookupPath(cue.ParsePath("layer")).Decode(&out.layer); err != nil {
			t.Fatal(err)
		}
		out.values = leaves(t, c.LookupPath(cue.ParsePath("values")), "")
		out.defaults = leaves(t, c.LookupPath(cue.ParsePath("defaults")), "")
		configs[name] = out
	}
	tuples := map[string]bool{}
	used := map[string]bool{}
	for pair, l := range pairs {
		final, defaults, tuple := map[string]string{}, map[string]string{}, map[string]bool{}
		for name, c := range configs {
			if !matches(c.match, l) {
				continue
			}
			used[name], tuple[name] = true, true
			for path, leaf := range c.values {
				if old, ok := final[path]; ok && old != leaf {
					t.Fatalf("%v: %s is %s and %s", pair, path, old, leaf)
				}
				final[path] = leaf
			}
			for path, leaf := range c.defaults {
				at := fmt.Sprint(c.layer, path)
				if old, ok := defaults[at]; ok && old != leaf {
					t.Fatalf("%v: default %s is %s and %s in layer %d", pair, path, old, leaf, c.layer)
				}
				defaults[at] = leaf
			}
		}
		for _, key := range []string{"REGION", "CLASS", "PRODUCT"} {
			if final[key] == "" {
				t.Fatalf("%v: no %s", pair, key)
			}
		}
		tuples[fmt.Sprint(tuple)] = true // maps print sorted
	}
	if len(used) != len(configs) {
		t.Errorf("%d of %d configs match an assignment", len(used), len(configs))
	}
	return len(tuples)
}

func matches(match, l map[string]string) bool {
	for k, v := range match {
		if l[k] != v {
			return false
		}
	}
	return true
}

// leaves are the final leaves of a value: lists that compose by a strategy,
// defaults and functions of the assignment are left out.
func leaves(t *testing.T, v cue.Value, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if !v.Exists() {
		return out
	}
	if v.IncompleteKind() == cue.StructKind {
		it, err := v.Fields()
		if err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			for p, leaf := range leaves(t, it.Value(), strings.TrimPrefix(path+"."+it.Selector().String(), ".")) {
				out[p] = leaf
			}
		}
		return out
	}
	_, isDefault := v.Default()
	if path == "startup" || path == "tags" || path == "sinks" || isDefault && v.Kind() == cue.BottomKind || !v.IsConcrete() {
		return out
	}
	text, err := v.MarshalJSON()
	if err != nil || !json.Valid(text) {
		t.Fatal(path, err)
	}
	out[path] = string(text)
	return out
}
