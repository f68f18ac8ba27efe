package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestCaskHasAllManPages checks that the Homebrew cask, which accepts no pattern, names each man
// page.
func TestCaskHasAllManPages(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "kalypso", "man", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, page := range pages {
		pages[i] = "man/" + filepath.Base(page)
	}
	var release struct {
		Casks []struct{ Manpages []string } `yaml:"homebrew_casks"`
	}
	text, err := os.ReadFile(filepath.Join(repository, ".goreleaser.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &release)
	}
	if err != nil || len(release.Casks) != 1 {
		t.Fatal(err, release)
	}
	if listed := release.Casks[0].Manpages; !slices.Equal(listed, pages) {
		t.Errorf("homebrew_casks.manpages of .goreleaser.yaml are\n%q\nand not\n%q", listed, pages)
	}
}
