package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestExamplesAreFormatted holds the examples, and the platform of most scripts, against
// kalypso fmt. What testdata/platforms keeps is as an old release had it.
func TestExamplesAreFormatted(t *testing.T) {
	for _, dir := range []string{"examples", "testdata/platform"} {
		cmd := exec.CommandContext(t.Context(), "kalypso", "fmt", "--check", "-C", filepath.Join(repository, filepath.FromSlash(dir)))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("kalypso fmt -C %s changes these: %v\n%s", dir, err, out)
		}
	}
}
