package evaluate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// applicationOf evaluates an application with the files of an archive, and returns
// a line for each diagnostic.
func applicationOf(t *testing.T, files string) (*model.Application, []string) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(files)).Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	app, ds, err := Application(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range ds {
		line := fmt.Sprintf("%s %s", d.Code, d.Message)
		for _, s := range d.Sites {
			line += fmt.Sprintf(" @%s:%d:%d", s.Position.File, s.Position.Line, s.Position.Column)
		}
		out = append(out, line)
	}
	return app, out
}

func TestApplication(t *testing.T) {
	app, ds := applicationOf(t, `
-- kalypso.yaml --
name: hello
manifests:
  helm:
    path: ./chart
kubernetesVersion: "1.34"
-- values.yaml --
replicas: 1
-- values.cue --
import "strings"

replicas: int & <10
name: strings.MaxRunes(8)
-- environments/dev/values.yaml --
replicas: 2
-- environments/dev/test/values.yaml --
name: test
-- environments/dev/perf/.gitkeep --
-- environments/prod/values.cue --
tier: "gold"
`)
	if len(ds) > 0 {
		t.Fatalf("got %q", ds)
	}
	if app.Name != "hello" || app.Manifests.Helm.Path != "./chart" || app.KubernetesVersion != "1.34" || app.Namespace != "default" {
		t.Errorf("got %+v", app)
	}
	var got []string
	for _, target := range app.Targets {
		line := target.Environment + "/" + target.Name + " " + target.Dir
		for _, l := range target.Layers {
			line += " " + l.File
		}
		got = append(got, line)
	}
	want := []string{
		"dev/perf environments/dev/perf values.yaml environments/dev/values.yaml",
		"dev/test environments/dev/test values.yaml environments/dev/values.yaml environments/dev/test/values.yaml",
		"prod/default environments/prod values.yaml",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if c := app.Targets[2].Contract; c == nil || len(c.Fields) != 3 {
		t.Errorf("got %+v", c)
	}
	if at := app.Positions.Of(model.Ref{Collection: "values", Name: "environments/dev/values.yaml", Path: "replicas"}); len(at) != 1 || at[0].File != "environments/dev/values.yaml" || at[0].Line != 1 {
		t.Errorf("replicas is at %v", at)
	}
}

func TestApplicationErrors(t *testing.T) {
	const head = "-- kalypso.yaml --\nname: hello\nmanifests: {helm: {path: ./chart}}\n"
	for name, c := range map[string]struct {
		files string
		want  []string
	}{
		"no name":                     {"-- kalypso.yaml --\nmanifests: {helm: {path: ./chart}}\n", []string{"K1105 required field name is missing @kalypso.yaml:1:1"}},
		"misspelt":                    {"-- kalypso.yaml --\nname: x\nmanifest: {helm: {path: ./chart}}\n", []string{"K1102 unknown field manifest @kalypso.yaml:2:1"}},
		"two charts":                  {"-- kalypso.cue --\nname: \"x\"\nmanifests: helm: {path: \"a\", oci: \"oci://x/y\"}\n", []string{"K1107 exactly one of path, repo, oci is needed, and path and oci are given @kalypso.cue:2:19 @kalypso.cue:2:30"}},
		"no environments":             {head, []string{"K1901 the application has no environments @kalypso.yaml:1:1"}},
		"values no YAML":              {head + "-- environments/dev/values.yaml --\na: [\n", []string{"K1001 the file is not valid YAML: did not find expected node content @environments/dev/values.yaml:1:1"}},
		"values no struct":            {head + "-- environments/dev/values.yaml --\n- a\n", []string{"K1103 environments/dev/values.yaml is no mapping @environments/dev/values.yaml:1:1"}},
		"two documents":               {head + "-- environments/dev/values.yaml --\na: 1\n---\nb: 1\n", []string{"K1103 environments/dev/values.yaml has 2 documents @environments/dev/values.yaml:2:1"}},
		"one document with its marks": {head + "-- environments/dev/values.yaml --\n---\na: 1\n...\n", nil},
		"YAML 1.1":                    {head + "-- environments/dev/values.yaml --\na: \"no\"\nb: {c: [1, no]}\n", []string{"K1103 no is a string in YAML 1.2, and something else in YAML 1.1, which Helm reads @environments/dev/values.yaml:2:12"}},
		"a key of YAML 1.1":           {head + "-- environments/dev/values.yaml --\non: 1\n", []string{"K1103 on is a string in YAML 1.2, and something else in YAML 1.1, which Helm reads @environments/dev/values.yaml:1:1"}},
		"an octal number":             {head + "-- environments/dev/values.yaml --\nmode: 0644\n", []string{"K1103 0644 is a string in YAML 1.2, and something else in YAML 1.1, which Helm reads @environments/dev/values.yaml:1:7"}},
		"a key twice":                 {head + "-- environments/dev/values.yaml --\na: 1\na: 2\n", []string{"K1108 the key a is given twice @environments/dev/values.yaml:1:1 @environments/dev/values.yaml:2:1"}},
		"twice in a mapping":          {head + "-- environments/dev/values.yaml --\na: {b: 1, b: 1}\n", []string{"K1108 the key b is given twice @environments/dev/values.yaml:1:5 @environments/dev/values.yaml:1:11"}},
		"twice in a list":             {head + "-- environments/dev/values.yaml --\na: [{b: 1, b: 2}]\n", []string{"K1108 the key b is given twice @environments/dev/values.yaml:1:6 @environments/dev/values.yaml:1:12"}},
		"two mappings of a key":       {head + "-- environments/dev/values.yaml --\na: {b: 1}\na: {c: 2}\n", []string{"K1108 the key a is given twice @environments/dev/values.yaml:1:1 @environments/dev/values.yaml:2:1"}},
		"a key twice for JSON":        {head + "-- environments/dev/values.yaml --\n{1: a, '1': a}\n", []string{"K1108 the key 1 is given twice @environments/dev/values.yaml:1:2 @environments/dev/values.yaml:1:8"}},
		"no key twice":                {head + "-- environments/dev/values.yaml --\nnull: {a: 1}\n~: {b: 1}\n", []string{"K1108 the key null is given twice @environments/dev/values.yaml:1:1 @environments/dev/values.yaml:2:1"}},
		"a key and an alias of it":    {head + "-- environments/dev/values.yaml --\n&k a: {a: 1}\n? *k\n: {b: 1}\n", []string{"K1108 the key a is given twice @environments/dev/values.yaml:1:1 @environments/dev/values.yaml:2:3"}},
		"a merged key":                {head + "-- environments/dev/values.yaml --\na: &a {b: 1}\nc: {<<: *a, b: 2, <<: {d: 1}}\n", nil},
		"CUE":                         {head + "-- environments/dev/values.cue --\na: {\n", []string{"K1001 { is not closed @environments/dev/values.cue:1:4"}},
		"CUE in conflict":             {head + "-- values.cue --\na: 1\n-- environments/dev/values.cue --\na: 2\n", []string{"K1108 conflicting values 2 and 1 for a @environments/dev/values.cue:1:4 @values.cue:1:4"}},
		"the error of CUE":            {head + "-- environments/dev/values.cue --\na: b: _|_\n", []string{"K1103 b: it is the error _|_ @environments/dev/values.cue:1:7"}},
		"that in a comprehension":     {head + "-- environments/dev/values.cue --\nif true {a: _|_}\n", []string{"K1103 a: it is the error _|_ @environments/dev/values.cue:1:13"}},
		"that at the top":             {head + "-- values.cue --\n_|_\n-- environments/dev/values.yaml --\n-- environments/prod/values.yaml --\n", []string{"K1103 the top level: it is the error _|_ @values.cue:1:1"}},
		"a field beside a number":     {head + "-- environments/dev/values.cue --\na: 1\n5\n", []string{"K1103 the top level must be a struct, and is an int @environments/dev/values.cue:2:1"}},
		"a bad name":                  {head + "-- environments/Dev/values.yaml --\n", []string{`K1106 folder environments/Dev: "Dev" is no name @environments/Dev:1:1`}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ds := applicationOf(t, c.files); !slices.Equal(ds, c.want) {
				t.Errorf("got  %q\nwant %q", ds, c.want)
			}
		})
	}
	if _, _, err := Application(t.Context(), t.TempDir(), nil); err == nil {
		t.Error("an empty folder is an application")
	}
}
