//go:build linux && (amd64 || arm64)

package again

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// limitEnv makes the test binary the program that is guarded.
const limitEnv = "KALYPSO_TEST_LIMIT"

func TestMain(m *testing.M) {
	limit := os.Getenv(limitEnv)
	if limit == "" {
		os.Exit(m.Run())
	}
	var state string
	if err := Begin(&state); err != nil || state != "" {
		fmt.Println("again with", state, err)
		os.Exit(0)
	}
	l := map[string]Limit{"memory": {Memory: 256 << 20, State: "memory"}, "cpu": {CPU: 300 * time.Millisecond, State: "cpu"}}[limit]
	if err := Guard(l, Limit{Memory: 1 << 50, CPU: time.Hour, State: "other"}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	busy(512 << 20)
}

// busy takes memory and time on the one processor that exists, in copies that are not
// interrupted, while a collection waits for their end.
func busy(size int) {
	from := make([]byte, size)
	go runtime.GC()
	for {
		to := make([]byte, size)
		copy(to, from)
		from = to
	}
}

// Beyond a limit the program begins again, though no goroutine runs.
func TestGuard(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[string]string{"memory": "again with memory <nil>", "cpu": "again with cpu <nil>"} {
		t.Run(limit, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), limitEnv+"="+limit, "GOMAXPROCS=1")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("%q, %v, want %q\n%s", got, err, want, &stderr)
			}
		})
	}
}

// Without limits the thread ends, and with new ones it begins again.
func TestGuardEnds(t *testing.T) {
	for range 2 {
		if err := errors.Join(Guard(Limit{Memory: 1 << 50, State: "never"}), Guard()); err != nil {
			t.Fatal(err)
		}
		for runs := true; runs; runtime.Gosched() {
			guard.Lock()
			runs = guard.runs
			guard.Unlock()
		}
	}
}
