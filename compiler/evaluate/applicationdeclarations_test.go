package evaluate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// applicationDeclarations evaluates an application whose kalypso.cue has some declarations in
// addition to its manifests.
func applicationDeclarations(t *testing.T, file, declarations string) ([]model.Declaration, []diag.Diagnostic) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(declarations), 0o666); err != nil {
		t.Fatal(err)
	}
	stages, ds, err := ApplicationDeclarations(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stages, ds
}

// TestApplicationDeclarations checks that an application and a platform get the same results
// from the same declarations of environments, with and without errors.
func TestApplicationDeclarations(t *testing.T) {
	t.Parallel()
	for name, declarations := range map[string]string{
		"every field":        everyField,
		"nothing":            "environments: stage: {}",
		"misspelt":           `environments: stage: afer: ["dev"]`,
		"wrong":              `environments: stage: gates: rollout: min: "most"`,
		"unknown":            `environments: stage: after: ["deev"]`,
		"cycle":              `environments: {stage: after: ["prod"], prod: after: ["stage"]}`,
		"soak without after": `environments: stage: gates: soak: for: "1h"`,
		"window":             `environments: stage: gates: windows: [{from: "fri 16:00", to: "mon 08:00", tz: "Moon"}]`,
		"rings":              `environments: stage: rings: [{name: "a", select: {}}, {name: "a", select: {}, after: ["b"]}]`,
		"match nothing":      `environments: stage: advance: "match-upstream"`,
		"name":               `environments: Stage: {}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			byName, want := policiesOf(t, declarations, nil)
			got, ds := applicationDeclarations(t, "kalypso.cue", "name: \"a\"\nmanifests: kustomize: {}\nenvironments: dev: {}\n"+declarations)
			if len(got) != len(byName) {
				t.Errorf("got %d stages, and a platform has %d", len(got), len(byName))
			}
			for _, s := range got {
				if !reflect.DeepEqual(s, byName[s.Name]) {
					t.Errorf("%s is\n%+v\nand of a platform\n%+v", s.Name, s, byName[s.Name])
				}
			}
			if got, want := said(ds), said(want); !slices.Equal(got, want) {
				t.Errorf("said\n%q\nand of a platform\n%q", got, want)
			}
		})
	}
}

func said(ds []diag.Diagnostic) []string {
	var out []string
	for _, d := range ds {
		out = append(out, string(d.Code)+" "+d.Path+": "+d.Message+" "+d.Hint)
	}
	slices.Sort(out)
	return out
}

// TestApplicationWithEnvironments checks that errors in environments have positions in
// kalypso.yaml, and do not affect rendering. Other errors also concern the policies, because
// they may hide further misspelt fields.
func TestApplicationWithEnvironments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file   string
		whole  bool // the manifests are known
		stages []string
		want   []string
	}{
		"a gate": {
			"name: a\nmanifests: {kustomize: {}}\nenvironments:\n  dev:\n    gates: {soak: {for: 1h}}\n", true, []string{"dev (invalid)"},
			[]string{"K1206 a commit comes to environment dev first, and has run nowhere before @kalypso.yaml:5:13"},
		},
		"gitops": {
			"name: a\nmanifests: {kustomize: {}}\nenvironments:\n  dev:\n    gitops: {repo: 'https://example.com/a'}\n", true, []string{"dev (invalid)"},
			[]string{"K1105 required field branch is missing @kalypso.yaml:5:5"},
		},
		"no folder": {
			"name: a\nmanifests: {kustomize: {}}\nenvironments: {dev: {}, stage: {}, prod: {source: {branch: env/prod}}}\n", true, []string{"dev", "prod", "stage"},
			[]string{"K1901 environment stage has no target: there is no environments/stage @kalypso.yaml:3:25"},
		},
		"no struct": {
			"name: a\nmanifests: {kustomize: {}}\nenvironments: 3\n", true, nil,
			[]string{"K1103 environments must be a struct, and is an int @kalypso.yaml:3:15"},
		},
		"misspelt": {
			"name: a\nmanifests: {kustomize: {}}\nenviroments: {dev: {}}\n", false, []string{"dev"},
			[]string{"K1102 unknown field enviroments @kalypso.yaml:3:1"},
		},
		"only a folder": {"name: a\nmanifests: {kustomize: {}}\n", true, []string{"dev"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			folder := filepath.Join(dir, "environments", "dev")
			if err := errors.Join(os.MkdirAll(folder, 0o777), os.WriteFile(filepath.Join(folder, "values.yaml"), nil, 0o666),
				os.WriteFile(filepath.Join(dir, "kalypso.yaml"), []byte(c.file), 0o666)); err != nil {
				t.Fatal(err)
			}
			app, ds, err := Application(t.Context(), dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			if (app != nil) != c.whole {
				t.Errorf("the application is %+v", app)
			}
			var got []string
			for _, d := range ds {
				line := string(d.Code) + " " + d.Message
				for _, s := range d.Sites {
					line += fmt.Sprintf(" @%s:%d:%d", s.Position.File, s.Position.Line, s.Position.Column)
				}
				got = append(got, line)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("said %q, want %q", got, c.want)
			}
			stages, more, err := ApplicationDeclarations(t.Context(), dir, nil)
			if err != nil || diag.Errors(ds) != diag.Errors(more) {
				t.Errorf("said %q of stages, %v", said(more), err)
			}
			var names []string
			for _, s := range stages {
				if s.Invalid {
					s.Name += " (invalid)"
				}
				names = append(names, s.Name)
			}
			if !slices.Equal(names, c.stages) {
				t.Errorf("stages are %q, want %q", names, c.stages)
			}
		})
	}
}
