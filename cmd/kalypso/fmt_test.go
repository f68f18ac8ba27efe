package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestExamplesAreFormatted checks that kalypso fmt does not change the examples and the platform
// of most scripts. The platforms in testdata/platforms stay as an old release wrote them.
func TestExamplesAreFormatted(t *testing.T) {
	for _, dir := range []string{"examples", "testdata/platform"} {
		cmd := exec.CommandContext(t.Context(), "kalypso", "fmt", "--check", "-C", filepath.Join(repository, filepath.FromSlash(dir)))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("kalypso fmt -C %s changes these: %v\n%s", dir, err, out)
		}
	}
}
