package scratch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// child is the variable of a process that makes a folder, prints its path, and waits.
const child = "KALYPSO_TEST_SCRATCH"

func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		isolated.Main(m)
		return
	}
	dir, _, err := Dir("test")
	fmt.Println(dir, err)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// start starts a process, and returns the folder that it makes in a parent.
func start(t *testing.T, parent string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"=1", "TMPDIR="+parent, "TMP="+parent)
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	dir, said, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || said != "<nil>" {
		t.Fatal(line, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return cmd, dir
}

// The next process removes the leftovers of a killed one, and keeps the files of a running one.
func TestKilled(t *testing.T) {
	parent := t.TempDir()
	if err := os.Mkdir(filepath.Join(parent, "kalypso-test-older"), 0o777); err != nil {
		t.Fatal(err)
	}
	first, left := start(t, parent)
	_, live := start(t, parent)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	if _, err := os.Stat(left); err != nil {
		t.Fatal(err)
	}
	start(t, parent)
	for _, name := range []string{left, left + suffix} {
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{live, filepath.Join(live, "file"), live + suffix, filepath.Join(parent, "kalypso-test-older")} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}

func TestRemove(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, remove, err := Dir("test")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(filepath.Base(dir), "kalypso-test-") {
		t.Error(dir)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v are left", entries, err)
	}
}
