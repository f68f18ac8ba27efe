package cache

import (
	"os"
	"os/exec"
	"testing"
)

// childEnv tells the test binary what to do as a child of a test.
const childEnv = "KALYPSO_CACHE_TEST_CHILD"

// runChild runs one test of this binary in a process of its own.
func runChild(t *testing.T, test string, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", test, err, out)
	}
}
