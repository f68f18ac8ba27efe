//go:build unix

package again

import (
	"os"
	"testing"
)

// If a process cannot be replaced, the one above it runs it again with the requested state,
// and ends as it does.
func TestRunBelow(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	script := `case $` + stateEnv + ` in {}) printf '{"oneByOne":true}' > $` + askEnv + `; exit 9 ;; '{"oneByOne":true}') exit 7 ;; esac`
	if code, err := runBelow(t.Context(), replacement{"/bin/sh", []string{"sh", "-c", script}, nil, "{}"}, os.Stdin, os.Stdout); code != 7 || err != nil {
		t.Error(code, err)
	}
	if code, err := runBelow(t.Context(), replacement{program: "/nowhere", state: "{}"}, os.Stdin, os.Stdout); err == nil {
		t.Error(code, "there is no such program")
	}
	ask := t.TempDir() + "/state"
	t.Setenv(askEnv, ask)
	if !askAgain([]string{"A=b", stateEnv + "={}"}) || askAgain(nil) {
		t.Error("asked otherwise")
	}
	if text, err := os.ReadFile(ask); string(text) != "{}" || err != nil {
		t.Errorf("%s, %v", text, err)
	}
}
