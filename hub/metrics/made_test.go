package metrics

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// The committed dashboards match the output of their program, which is a module of its own, and
// Grafana's schema.
func TestSlowDashboardsMade(t *testing.T) {
	isolated.Slow(t, "builds a program with Grafana's library")
	made := t.TempDir()
	cmd := exec.Command("go", "run", ".", made)
	cmd.Dir, cmd.Env = dashboards, append(os.Environ(), "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd = exec.Command("go", "test", ".")
	cmd.Dir, cmd.Env = dashboards, append(os.Environ(), "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	wanted, err := filepath.Glob(filepath.Join(made, "*.json"))
	if is := committed(t); err != nil || len(wanted) == 0 || len(is) != len(wanted) {
		t.Fatalf("there are %q and %q, %v", is, wanted, err)
	}
	for _, file := range wanted {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		old, err := os.ReadFile(filepath.Join(dashboards, filepath.Base(file)))
		if err != nil || !slices.Equal(text, old) {
			t.Errorf("%s is not what go run . . makes in hub/dashboards (%v)", filepath.Base(file), err)
		}
	}
}
