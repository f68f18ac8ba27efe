package backendtest

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// CheckKustomizations compares every kustomization.yaml of a tree with the output of `kustomize
// build` without any option. It writes the files to a disk, because kustomize in memory accepts a
// base that contains the kustomization.
func CheckKustomizations(t testing.TB, files map[string][]byte) {
	t.Helper()
	var dirs []string
	root := ""
	for name, data := range files {
		if path.Base(name) == "kustomization.yaml" {
			dirs = append(dirs, path.Dir(name))
		}
		if root == "" {
			root = t.TempDir()
		}
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		if _, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
			filepath.Join(root, filepath.FromSlash(dir))); err != nil {
			t.Errorf("kustomize build %s: %v", dir, err)
		}
	}
}
