package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// surface is an output that describes the effect of a change. All surfaces count the same pairs
// of a deployment target and a cluster, which they get from the types in changeTypes.
type surface struct {
	name string
	// script runs it in the scenario of surfaces.txtar, from the platform's folder. N is the
	// number of clusters that lose the workload till, and KEPT is the number of the 40 pairs that
	// stay. ON are the clusters as a line names them. CLUSTERS is their number with its noun.
	script string
	// files use one of the types for it, directly.
	files []string
}

// before and after are the surfaces that describe the change before its commit, and after it.
var before, after = []surface{
	{"diff", `
exec kalypso diff
stdout '^- assignment dev/store/till-live on ON, with namespace dev-store-till-live$'
! stdout '^\+'
stdout '^0 added, 0 changed, N removed, KEPT unchanged.*; CLUSTERS$'`,
		[]string{"cmd/kalypso/diff.go", "compiler/difference.go", "compiler/listing.go"}},
	{"diff --stat", `
exec kalypso diff --stat
stdout '^dev/store +0 added +0 changed +N removed +KEPT unchanged +20 clusters'`, nil},
	{"diff -o json", `
exec kalypso diff -o json
stdout '(?s)"removed": \[\s+\{\s+"environment": "dev",\s+"clusterType": "store",\s+"deploymentTarget": "till-live",\s.*"count": N,'
stdout '(?s)"total": \{\s+"added": 0,\s+"removed": N,\s+"changed": 0\s+\}'`, nil},
	{"diff -o ndjson", `
exec kalypso diff -o ndjson
stdout -count=N '^\{"change":"removed","environment":"dev","clusterType":"store","deploymentTarget":"till-live","cluster":"st-\d\d",'
! stdout '"change":"(added|changed)"'`, nil},
	{"build --since", `
exec kalypso build --since HEAD
stdout '^removed +assignment +dev/store/till-live on ON$'
stdout '^0 added, 0 changed, N removed, KEPT unchanged'`,
		nil},
	{"build", `
exec kalypso build --to ../out
stdout '^- assignment dev/store/till-live on ON$'
stdout '^dev: 0 added, N removed$'`,
		[]string{"cmd/kalypso/build.go", "compiler/engine/engine.go", "compiler/engine/outlive.go", "compiler/engine/removal.go", "compiler/engine/change.go"}},
	{"view", `
exec kalypso view --to ../view.html --since HEAD
grep ': N assignments? removed, 0 added, 0 changed, KEPT unchanged, on CLUSTERS\.' ../view.html
grep '<li data-item>dev/store/till-live, with namespace dev-store-till-live on ' ../view.html`,
		[]string{"view/platform/difference.go"}},
}, []surface{
	{"promote plan", `
exec kalypso promote plan --env dev
stdout 'Assignments: 0 added, 0 changed, N removed, KEPT unchanged'
stdout '^\| \*\*removed\*\* .till-live. with namespace .dev-store-till-live. \| N \| store: '`,
		[]string{"promotion/plan/describe.go", "promotion/plan/inspect.go", "promotion/plan/prepare.go", "promotion/subject/subject.go"}},
	{"gates of a plan", `
exec kalypso promote plan --env dev -o json
stdout '"reason": "N of at most 40 assignments, 1 cluster types, N of at most 40 clusters"'
stdout '(?s)"name": "exact",\s+"state": "passed",'
stdout '(?s)"counts": \{\s+"added": 0,\s+"removed": N,\s+"changed": 0\s+\}'
stdout '(?s)"removals": \{\s+"removed": N,\s+"recorded": 40,'`,
		[]string{"promotion/gate/gate.go", "promotion/gate/planned.go"}},
	{"the change request", `
exits 6 kalypso promote --env dev
forge body 1
stdout 'Assignments: 0 added, 0 changed, N removed, KEPT unchanged'
stdout '\*\*Risk\*\*: .*\*\*N namespaces? deleted, with everything in them\*\*'
forge merge 1 squash
exec kalypso promote --env dev`, nil},
	{"audit", `
exec kalypso audit dev
stdout ' promoted +N removed, 0 added, 0 changed '
exec kalypso audit dev --csv
stdout ',"N removed, 0 added, 0 changed"$'
exec kalypso audit dev -o json
stdout '(?s)"change": \{\s+"added": 0,\s+"changed": 0,\s+"removed": N,\s+"emptied": 0\s+\}'`,
		[]string{"promotion/audit/audit.go", "promotion/audit/effects.go", "promotion/changes/changes.go", "promotion/changes/reader.go", "promotion/promotion.go"}},
	{"compare", `
exec kalypso compare dev dev --at HEAD~1 --at HEAD
stdout '^till +placement on (cluster st-07|CLUSTERS) +store +-$'
exec kalypso compare dev dev --at HEAD~1 --at HEAD -o json
stdout -count=N '"st-..",?$'`,
		[]string{"compiler/query/comparisonclusters.go"}},
	{"query", `
exec kalypso query history dev --history 1
stdout -count=1 '^\{'
stdout '"clusterType":"store","deploymentTarget":"till-live","change":"removed",.*"clusters":N,'`, nil},
	{"a hub's comment", `
exec wanted
stdout '"effect":\{"removed":N,"removedFrom":N,"added":0,"changed":0,"emptied":0\}'`,
		[]string{"hub/desired/desired.go"}},
}

// changeTypes are the packages that compute the effect of a change on clusters.
var changeTypes = []string{"compiler/compare", "compiler/effect", "promotion/changes"}

// TestSurfaces checks all surfaces with a workload that is denied on one of 20 clusters, and on
// 19 of them. Each surface reports that the workload is removed there, and no other change.
func TestSurfaces(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	scenario, err := os.ReadFile(filepath.Join(repository, "testdata", "surfaces.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	begin, files, found := strings.Cut(string(scenario), "-- ")
	if !found {
		t.Fatal("the scenario has no files")
	}
	dir := t.TempDir()
	for n, on := range map[int]string{1: "st-07", 19: `19 clusters \(st-01, st-02, st-03 and 16 more\)`} {
		var b strings.Builder
		b.WriteString(begin)
		for _, of := range []struct {
			surfaces []surface
			then     string
		}{{before, "\n# The change is committed.\nforge commit . Deny\n"}, {after, ""}} {
			for _, s := range of.surfaces {
				fmt.Fprintf(&b, "\n# %s%s\n", s.name, s.script)
			}
			b.WriteString(of.then)
		}
		text := strings.NewReplacer("CLUSTERS", plural(n, "cluster"), "KEPT", strconv.Itoa(40-n), "ON", on, "=N ", fmt.Sprintf("=%d ", n), "N", strconv.Itoa(n))
		var script strings.Builder
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "stdout ") || strings.HasPrefix(line, "grep ") {
				line = text.Replace(line)
			}
			script.WriteString(line)
		}
		script.WriteString("-- " + strings.NewReplacer("DENIED", strconv.Itoa(n)).Replace(files))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-of-20.txtar", n)), []byte(script.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, scriptParams(t, dir))
}

// TestSurfacesAreKnown checks that each file that uses one of changeTypes belongs to a surface,
// and that each file of a surface uses one. A new file therefore has to be added to the tables.
func TestSurfacesAreKnown(t *testing.T) {
	known := map[string]string{}
	for _, s := range slices.Concat(before, after) {
		for _, file := range s.files {
			known[file] = s.name
		}
	}
	types := map[string]bool{}
	for _, name := range changeTypes {
		types["github.com/kalypso-io/kalypso/"+name] = true
	}
	err := fs.WalkDir(os.DirFS("../.."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "internal/testing/") ||
			slices.Contains(changeTypes[:2], filepath.ToSlash(filepath.Dir(path))):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if _, is := known[path]; types[name] && !is {
				t.Errorf("%s uses %s, and is of no surface: add it to the table, with what it has to say", path, name)
			} else if types[name] {
				known[path] = ""
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Sorted(maps.Keys(known)) {
		if known[file] != "" {
			t.Errorf("%s of surface %q uses none of %v", file, known[file], changeTypes)
		}
	}
}
