package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The first tree of a new platform takes less than ten seconds of CPU time, for both processes
// together and with empty caches. CPU time does not grow on a busy machine, because it does not
// include waiting for a processor.
func TestFirstTreeCost(t *testing.T) {
	home := t.TempDir()
	var took time.Duration
	for _, args := range [][]string{{"init", "shop"}, {"build", "-C", "shop", "--to", "../out"}} {
		cmd := exec.CommandContext(t.Context(), "kalypso", args...)
		cmd.Dir, cmd.Env = home, append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME=", "CUE_CACHE_DIR=", "KALYPSO_CACHE_DIR=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("kalypso %v: %v\n%s", args, err, out)
		}
		took += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if _, err := os.Stat(filepath.Join(home, "out", "dev", "cloud", "kustomization.yaml")); err != nil {
		t.Error(err)
	}
	if took >= 10*time.Second {
		t.Errorf("the first tree took %v of processors", took)
	}
	t.Logf("%v of processors", took)
}
