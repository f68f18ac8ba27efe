package crdtest_test

import (
	"bytes"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/internal/testing/crdtest"
)

// TestPublished compiles the repository's platforms and checks every YAML file of every tree that
// is for Kubernetes.
func TestPublished(t *testing.T) {
	for name, files := range platforms(t) {
		t.Run(name, func(t *testing.T) {
			for _, file := range slices.Sorted(maps.Keys(files)) {
				if n, err := crdtest.Check(files[file]); n == 0 || err != nil {
					t.Errorf("%s: %d objects, %v", file, n, err)
				}
			}
		})
	}
}

// A field that no consumer knows must not pass, whichever file it is in.
func TestPublishedFindsAWrongField(t *testing.T) {
	broken := map[string]bool{}
	for _, files := range platforms(t) {
		for file, data := range files {
			wrong := append(bytes.TrimRight(slices.Clone(data), "\n"), "\nwrong: field\n"...)
			if _, err := crdtest.Check(wrong); err == nil {
				t.Errorf("%s passes with a wrong field", file)
			}
			broken[path.Base(file)] = true
		}
	}
	for _, file := range []string{"kustomization.yaml", "namespace.yaml", "platform-config.yaml", "reconciler.yaml"} {
		if !broken[file] {
			t.Errorf("no platform has a %s", file)
		}
	}
}

// platforms returns the YAML files of each platform's trees, by path, except the files of cluster
// types that are not for Kubernetes.
func platforms(t *testing.T) map[string]map[string][]byte {
	t.Helper()
	dirs, err := filepath.Glob("../../../examples/*/cue.mod")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	dirs = append(dirs, "../../../testdata/platform/cue.mod")
	out := map[string]map[string][]byte{}
	for _, dir := range dirs {
		dir = filepath.Dir(dir)
		r := compiler.Request{Dir: dir}
		if filepath.Base(dir) == "tenants" { // its other environment has errors on purpose
			r.Environments = []string{"dev"}
		}
		b, err := compiler.Compile(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if b.Failed() {
			t.Fatalf("%s has errors: %v", dir, b.Diagnostics)
		}
		files := map[string][]byte{}
		for _, e := range b.Environments {
			all, err := e.Tree.Files(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			kubernetes := map[string]bool{} // the cluster types that kustomize can read
			for _, f := range all {
				if path.Base(f.Path) == "kustomization.yaml" {
					kubernetes[path.Dir(f.Path)] = true
				}
			}
			// Fleet's own file and Zarf's are not objects. Package fleet compares the one with
			// the CRD of Bundle, and package zarf the other against Zarf's schema.
			for _, f := range all {
				clusterType, _, _ := strings.Cut(f.Path, "/")
				if kubernetes[clusterType] && path.Ext(f.Path) == ".yaml" && !slices.Contains([]string{"fleet.yaml", "zarf.yaml"}, path.Base(f.Path)) {
					files[path.Join(e.Name, f.Path)] = f.Data
				}
			}
		}
		out[filepath.Base(dir)] = files
	}
	return out
}
