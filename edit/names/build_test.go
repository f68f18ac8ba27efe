package names_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/edit/names"
)

const platform = `
-- cue.mod/module.cue --
module: "names.example/platform@v0"
language: version: "v0.15.0"
deps: "kalypso.io@v0": v: "v0.1.0"
-- schema.cue --
package platform

import "kalypso.io/schema"

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
workloads:          schema.#Workloads
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
reconcilers:        schema.#Reconcilers
-- base.cue --
package platform

environments: {dev: {}, prod: after: ["dev"]}
reconcilers: flux: flux: {}
clusterTypes: {
	drone: {reconciler: "flux", labels: region: "east"}
	edge: {reconciler: "flux", labels: region: "west"}
}
workloads: shop: {
	workspace: "sales"
	deploymentTargets: {
		for e in ["dev", "prod"] {
			"web-\(e)": {environment: e, manifests: git: {repo: "https://git.example/shop", branch: "main", path: "."}}
		}
	}
}
schedulingPolicies: all: {deploymentTargets: {}, clusterTypes: {}}
configs: common: {
	match: {}
	values: {
		colour: "red"
		db: host: "here" // of all
	}
	layer: 1
}
configs: west: {match: region: "west", values: size: 3}
`

// platformOf writes the files of the test's platform, some of them replaced, to a folder. It
// returns the files and the build.
func platformOf(t *testing.T, replaced map[string]string) ([]names.File, *compiler.Build) {
	t.Helper()
	dir := t.TempDir()
	var files []names.File
	a := txtar.Parse([]byte(platform))
	for name, text := range replaced {
		a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	for _, f := range a.Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(g names.File) bool { return g.Path == f.Name })
		files = append(files, names.File{Path: f.Name, Text: f.Data})
	}
	return files, compile(t, compiler.Request{Dir: dir})
}

func compile(t *testing.T, r compiler.Request) *compiler.Build {
	t.Helper()
	b, err := compiler.Compile(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// TestFixes applies the first fix of a diagnostic, and compiles again.
func TestFixes(t *testing.T) {
	const module = "module: \"names.example/platform@v0\"\nlanguage: version: \"v0.15.0\"\n"
	for _, c := range []struct {
		name, file, text string
		code             diag.Code
		title, want      string // want is the resulting file
	}{
		{"a field", "more.cue", "package platform\n\nclusterTypes: drone: lables: a: \"b\"\n",
			diag.UnknownField, "Change lables to labels", "package platform\n\nclusterTypes: drone: labels: a: \"b\"\n"},
		{"a name", "more.cue", "package platform\n\nclusterTypes: {\n\tsmall: {reconciler: \"fluxx\"}\n}\n",
			diag.UnknownReference, "Change fluxx to flux", "package platform\n\nclusterTypes: {\n\tsmall: {reconciler: \"flux\"}\n}\n"},
		{"a value of an enumeration", "more.cue", "package platform\n\nclusterTypes: drone: configFormat: \"jsno\"\n",
			diag.NotAllowed, "Change jsno to json", "package platform\n\nclusterTypes: drone: configFormat: \"json\"\n"},
		{"a label that a selector asks for", "more.cue", "package platform\n\nschedulingPolicies: some: {\n\tdeploymentTargets: {}\n\tclusterTypes: {\n\t\tlabels: regoin: \"west\"\n\t}\n}\n",
			diag.SelectsNothing, "Change regoin to region", "package platform\n\nschedulingPolicies: some: {\n\tdeploymentTargets: {}\n\tclusterTypes: {\n\t\tlabels: region: \"west\"\n\t}\n}\n"},
		{"a conflict, alone", "more.cue", "package platform\n\nconfigs: another: {match: {}, layer: 1, values: colour: \"blue\"}\n",
			diag.ConflictingValues, "Move colour of another to defaults", "package platform\n\nconfigs: another: {match: {}, layer: 1, defaults: colour: \"blue\"}\n"},
		{"a conflict, in braces", "more.cue", "package platform\n\nconfigs: another: {\n\tmatch: {}\n\tlayer: 1\n\tvalues: {\n\t\tother: 1\n\t\tcolour: \"blue\"\n\t}\n}\n",
			diag.ConflictingValues, "Move colour of another to defaults", "package platform\n\nconfigs: another: {\n\tmatch: {}\n\tlayer: 1\n\tdefaults: colour: \"blue\"\n\tvalues: {\n\t\tother: 1\n\t}\n}\n"},
		{"a conflict, without braces around it", "more.cue", "package platform\n\nconfigs: another: {match: {}, layer: 1}\nconfigs: another: values: {colour: \"blue\", other: 1}\n",
			diag.ConflictingValues, "Move colour of another to defaults", "package platform\n\nconfigs: another: {match: {}, layer: 1}\nconfigs: another: defaults: colour: \"blue\"\nconfigs: another: values: {other: 1}\n"},
		{"no import", "more.cue", "package platform\n\nconfigs: another: {match: {}, values: shape: strings.ToUpper(\"round\")}\n",
			diag.Compile, "Import strings", "package platform\n\nimport \"strings\"\n\nconfigs: another: {match: {}, values: shape: strings.ToUpper(\"round\")}\n"},
		{"no pin", "cue.mod/module.cue", module, diag.UnpinnedSchema, "Pin the schema in cue.mod/module.cue", module + "deps: \"kalypso.io@v0\": v: \"v0.1.0\"\n"},
		{"no pin among others", "cue.mod/module.cue", module + "deps: {\n\t\"other.example@v0\": v: \"v0.1.0\"\n}\n",
			diag.UnpinnedSchema, "Pin the schema in cue.mod/module.cue", module + "deps: {\n\t\"kalypso.io@v0\": v: \"v0.1.0\"\n\t\"other.example@v0\": v: \"v0.1.0\"\n}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files, b := platformOf(t, map[string]string{c.file: c.text})
			at := slices.IndexFunc(b.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == c.code })
			if at < 0 {
				t.Fatalf("no %s: %+v", c.code, b.Diagnostics)
			}
			x := names.New(files, nil)
			fixes := x.Fixes(b.Diagnostics[at])
			if len(fixes) == 0 {
				t.Fatalf("no fix of %+v", b.Diagnostics[at])
			}
			if fixes[0].Title != c.title {
				t.Errorf("title %q, want %q", fixes[0].Title, c.title)
			}
			fixed := apply(t, files, fixes[0].Edits)
			if got := string(fixed[c.file]); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
			after := compile(t, compiler.Request{Dir: b.Platform.Root, Overlay: fixed})
			if slices.ContainsFunc(after.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == c.code }) {
				t.Errorf("not mended: %+v", after.Diagnostics)
			}
		})
	}
}

// apply returns the files that edits change, with their new texts.
func apply(t *testing.T, files []names.File, edits []names.Edit) source.Overlay {
	t.Helper()
	out := source.Overlay{}
	slices.SortFunc(edits, func(a, b names.Edit) int { return b.Start - a.Start })
	for _, e := range edits {
		text, changed := out[e.Path]
		if !changed {
			text = files[slices.IndexFunc(files, func(f names.File) bool { return f.Path == e.Path })].Text
		}
		out[e.Path] = slices.Concat(text[:e.Start], []byte(e.Text), text[e.End:])
	}
	return out
}

// TestRenamed renames each entity of the platform and compiles it. A remaining use of the old
// name would be an error.
func TestRenamed(t *testing.T) {
	files, b := platformOf(t, nil)
	x := names.New(files, nil)
	for _, c := range []struct{ at, to string }{{"flux: flux", "reconciler-1"}, {"drone: {", "other"}, {"shop: {", "store"}, {"all: {", "everything"}, {"west: {match", "western"}} {
		text := files[slices.IndexFunc(files, func(f names.File) bool { return f.Path == "base.cue" })].Text
		edits, err := x.Rename("base.cue", bytes.Index(text, []byte(c.at)), c.to)
		if err != nil {
			t.Fatal(err)
		}
		after := compile(t, compiler.Request{Dir: b.Platform.Root, Overlay: apply(t, files, edits)})
		if diag.Errors(after.Diagnostics) || len(after.Diagnostics) != len(b.Diagnostics) {
			t.Errorf("after renaming %s: %+v", c.at, after.Diagnostics)
		}
	}
}

func TestLenses(t *testing.T) {
	const policy = "package platform\n\nschedulingPolicies: none: {\n\tdeploymentTargets: {}\n\tclusterTypes: labels: region: \"south\"\n}\nconfigs: none: {match: region: \"south\", values: {}}\n"
	files, b := platformOf(t, map[string]string{"more.cue": policy, "environments/prod/prod.cue": "package platform\n\nclusterTypes: drone: labels: prod: \"true\"\n"})
	x, r := names.New(files, nil), &names.Results{Build: b}
	var got strings.Builder
	for _, f := range files {
		for _, l := range x.Lenses(f.Path, r) {
			fmt.Fprintf(&got, "%s %s: %s\n", f.Path, f.Text[l.Place.Start:l.Place.End], l.Title)
		}
	}
	const want = `base.cue dev: 2 assignments, 2 cluster types
base.cue prod: 2 assignments, 2 cluster types
base.cue flux: 4 assignments, 2 cluster types
base.cue drone: 2 assignments
base.cue edge: 2 assignments
base.cue shop: 4 assignments, 2 cluster types
base.cue all: 4 assignments, 2 cluster types
base.cue common: 4 assignments, 2 cluster types
base.cue west: 2 assignments, 1 cluster type
more.cue none: 0 assignments
more.cue clusterTypes: selects nothing
more.cue none: 0 assignments
more.cue match: selects nothing
environments/prod/prod.cue drone: 1 assignment
`
	if sorted(got.String()) != sorted(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
	if x.Lenses("base.cue", nil) != nil {
		t.Error("lenses without a build")
	}
}

func sorted(lines string) string {
	all := strings.Split(lines, "\n")
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestHoverValues(t *testing.T) {
	files, b := platformOf(t, map[string]string{"environments/prod/prod.cue": "package platform\n\n// On edge, where west says 3, it is an error.\nconfigs: prod: {match: {}, layer: 2, values: size: 5}\nconfigs: west: defaults: size: 4\nconfigs: common: defaults: size: 1\n"})
	x, r := names.New(files, nil), &names.Results{Build: b}
	for _, c := range []struct{ file, at, want string }{
		{"base.cue", "colour", "dev/drone/shop-web-dev and 1 more: colour = \"red\", from common (layer 1)\nprod/drone/shop-web-prod: colour = \"red\", from common (layer 1)"},
		{"base.cue", "db: host", "dev/drone/shop-web-dev and 1 more: db.host = \"here\", from common (layer 1)\nprod/drone/shop-web-prod: db.host = \"here\", from common (layer 1)"},
		{"base.cue", "shop: {", "workload shop\n4 assignments, 2 cluster types\ndeclared at base.cue:9:12"},
		{"environments/prod/prod.cue", "size: 5", "prod/drone/shop-web-prod: size = 5, from prod (layer 2), in place of 1 of common (layer 1)"},
		{"base.cue", "layer", "The layer: a value of a higher layer replaces a default of a lower one."},
	} {
		text := files[slices.IndexFunc(files, func(f names.File) bool { return f.Path == c.file })].Text
		h, ok := x.Hover(t.Context(), c.file, bytes.Index(text, []byte(c.at)), r)
		if got := strings.Join(h.Lines, "\n"); !ok || got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.at, got, c.want)
		}
	}
}
