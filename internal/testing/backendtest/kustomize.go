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

// CheckKustomizations holds every kustomization.yaml of a tree against what
// `kustomize build` does without any option, on a disk: one in memory takes bases
// that are around what refers to them.
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
