package compiler_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/source"
)

const overlaidPlatform = `
-- cue.mod/module.cue --
module: "overlay.example/platform@v0"
language: version: "v0.15.0"
deps: "kalypso.io@v0": v: "v0.1.0"
-- base.cue --
package platform

import (
	"kalypso.io/schema"
	"overlay.example/platform/helper"
)

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
workloads:          schema.#Workloads
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
reconcilers:        schema.#Reconcilers

environments: {dev: {}, prod: after: ["dev"]}
reconcilers: flux: flux: {}
clusterTypes: edge: reconciler: "flux"
workloads: shop: {
	workspace: "sales"
	deploymentTargets: web: {environment: "dev", labels: tier: "web", manifests: git: {repo: "https://git.example/shop", branch: "main", path: "."}}
}
schedulingPolicies: all: {deploymentTargets: {}, clusterTypes: {}}
configs: common: {match: {}, values: {colour: helper.colour}}
-- helper/helper.cue --
package helper

colour: "red"
-- environments/dev/dev.cue --
@extern(embed)

package platform

configs: file: {match: {}, values: _ @embed(file="values.json")}
-- environments/dev/values.json --
{"size": 1}
`

// TestOverlay builds a platform with text over its files, and the platform that has this text in
// its files. Both must give the same result, whichever of them a cache saw first.
func TestOverlay(t *testing.T) {
	for name, over := range map[string]source.Overlay{
		"a value":                 {"base.cue": []byte("package platform\n\nimport \"kalypso.io/schema\"\n\nenvironments: schema.#Environments & {dev: {}}\n")},
		"an imported file":        {"helper/helper.cue": []byte("package helper\n\ncolour: \"blue\"\n")},
		"an embedded file":        {"environments/dev/values.json": []byte(`{"size": 2}`)},
		"a syntax error":          {"helper/helper.cue": []byte("package helper\n\ncolour: {\n")},
		"a schema error":          {"environments/dev/dev.cue": []byte("package platform\n\nclusterTypes: edge: lables: a: \"b\"\n")},
		"a new file":              {"more.cue": []byte("package platform\n\nconfigs: more: {match: {}, values: shape: \"round\"}\n")},
		"a new environment":       {"environments/prod/prod.cue": []byte("package platform\n\nconfigs: prod: {match: {}, values: colour: \"blue\"}\n")},
		"a stray folder":          {"environments/test/test.cue": []byte("package platform\n")},
		"a new helper":            {"base2.cue": []byte("package platform\n\nimport \"overlay.example/platform/deep/other\"\n\nconfigs: other: {match: {}, values: other.values}\n"), "deep/other/other.cue": []byte("package other\n\nvalues: shape: \"square\"\n")},
		"a new embedded":          {"environments/dev/dev.cue": []byte("@extern(embed)\n\npackage platform\n\nconfigs: file: {match: {}, values: all: _ @embed(glob=more/*.json)}\n"), "environments/dev/more/a.json": []byte(`{"a": 1}`)},
		"a missing embedded":      {"environments/dev/dev.cue": []byte("@extern(embed)\n\npackage platform\n\nconfigs: file: {match: {}, values: _ @embed(file=\"none.json\")}\n")},
		"YAML that nobody embeds": {"environments/dev/values.yaml": []byte("a: 1\n")},
		"no pin":                  {"cue.mod/module.cue": []byte("module: \"overlay.example/platform@v0\"\nlanguage: version: \"v0.15.0\"\n")},
		"a newer schema":          {"cue.mod/module.cue": []byte("module: \"overlay.example/platform@v0\"\nlanguage: version: \"v0.15.0\"\ndeps: \"kalypso.io@v0\": v: \"v0.999.0\"\n")},
		"a bad module file":       {"cue.mod/module.cue": []byte("module: 7\n")},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := t.TempDir(), t.TempDir()
			for _, dir := range []string{before, after} {
				if err := writeArchive(dir, txtar.Parse([]byte(overlaidPlatform))); err != nil {
					t.Fatal(err)
				}
			}
			written := &txtar.Archive{}
			for file, text := range over {
				written.Files = append(written.Files, txtar.File{Name: file, Data: text})
			}
			if err := writeArchive(after, written); err != nil {
				t.Fatal(err)
			}
			plain := built(t, compiler.Request{Dir: before})
			want := built(t, compiler.Request{Dir: after})
			if want == plain {
				t.Fatal("the text changes nothing")
			}
			c, err := cache.Open(cache.Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for range 2 {
				if got := built(t, compiler.Request{Dir: before, Overlay: over, Cache: c}); got != want {
					t.Errorf("with the text over the files:\n%s\nwith the text in them:\n%s", got, want)
				}
				if got := built(t, compiler.Request{Dir: before, Cache: c}); got != plain {
					t.Errorf("what lay over the files was remembered:\n%s\nwant:\n%s", got, plain)
				}
			}
		})
	}
}

// built returns the diagnostics and the emitted files of a build.
func built(t *testing.T, r compiler.Request) string {
	t.Helper()
	b, err := compiler.Compile(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	out := ""
	for _, d := range b.Diagnostics {
		out += fmt.Sprintf("%+v\n", d)
	}
	if len(b.Environments) > 0 && b.Environments[0].Tree == nil {
		return out
	}
	return out + string(txtar.Format(textOf(t, b)))
}

func writeArchive(dir string, a *txtar.Archive) error {
	for _, f := range a.Files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
