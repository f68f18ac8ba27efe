package evaluate

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// base declares the collections, and one reconciler.
const base = `package platform

import "kalypso.io/schema"

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
clusters:           schema.#Clusters
workloads:          schema.#Workloads
registrations:      schema.#Registrations
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
configSchemas:      schema.#ConfigSchemas
namespaceServices:  schema.#NamespaceServices
reconcilers:        schema.#Reconcilers

environments: dev: {}
reconcilers: flux: flux: {}
`

// open writes a platform with the given files in addition to the base, and opens it.
func open(t *testing.T, files map[string]string) *source.Platform {
	t.Helper()
	root := t.TempDir()
	all := map[string]string{
		"cue.mod/module.cue": "module: \"test.example/platform@v0\"\nlanguage: version: \"v0.15.0\"\n",
		"platform.cue":       base,
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p, _, err := source.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// dev evaluates a platform whose environment dev has the given declarations.
// The diagnostics are resolved.
func dev(t *testing.T, declarations string) (*Package, []diag.Diagnostic) {
	t.Helper()
	p := open(t, map[string]string{"environments/dev/dev.cue": "package platform\n\n" + declarations})
	return environment(t, p)
}

func environment(t *testing.T, p *source.Platform) (*Package, []diag.Diagnostic) {
	t.Helper()
	pkg, ds, err := Environment(context.Background(), p, "dev", nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if pkg.Model != nil {
		diag.Resolve(ds, pkg.Model.Positions)
	}
	return pkg, ds
}

// healthy is dev for declarations without mistakes.
func healthy(t *testing.T, declarations string) *Package {
	t.Helper()
	pkg, ds := dev(t, declarations)
	for _, d := range ds {
		t.Errorf("%s: %s", d.Code, d.Message)
	}
	if pkg.Model == nil {
		t.Fatal("no model")
	}
	return pkg
}
