package source

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOutside(t *testing.T) {
	root := t.TempDir()
	if got := Outside(root); got != nil {
		t.Errorf("without the file: %q", got)
	}
	if err := os.Mkdir(filepath.Join(root, "cue.mod"), 0o777); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		`deps: "a.example@v0": replaceWith: "../a"`:                                            {filepath.Join(filepath.Dir(root), "a")},
		`deps: {"a.example@v0": replaceWith: "/x/a", "b.example@v0": replaceWith: "./mods/b"}`: {"/x/a", filepath.Join(root, "mods", "b")},
		`deps: "a.example@v0": replaceWith: "b.example@v0.1.0"`:                                nil,
		`deps: {`: nil,
	} {
		if err := os.WriteFile(filepath.Join(root, "cue.mod", "local-module.cue"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := Outside(root); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", text, got, want)
		}
	}
}

func TestIsEnvironmentFolder(t *testing.T) {
	for rel, want := range map[string]bool{
		"environments": true, "environments/dev": true,
		".": false, "contracts": false, "environments/dev/data": false, "x/environments": false,
	} {
		if got := IsEnvironmentFolder(rel); got != want {
			t.Errorf("%s: %t", rel, got)
		}
	}
}
