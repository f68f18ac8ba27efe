// Package commandtest runs the helm and kustomize commands of the versions in go.mod, for tests
// that compare the rendering in process with them.
package commandtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Main is a package's TestMain: it removes the commands that its tests had built.
func Main(m *testing.M) {
	code := m.Run()
	if dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

var (
	dir       string
	helm      = sync.OnceValues(func() (string, error) { return build("helm", "helm.sh/helm/v3/cmd/helm") })
	kustomize = sync.OnceValues(func() (string, error) { return build("kustomize", "sigs.k8s.io/kustomize/kustomize/v5") })
	mu        sync.Mutex
)

// environment is the environment at the start of the tests. go needs its proxies, and tests
// remove them.
var environment = os.Environ()

// build returns the path of a command, which it has built.
func build(name, pkg string) (string, error) {
	mu.Lock()
	defer mu.Unlock()
	if dir == "" {
		d, err := os.MkdirTemp("", "kalypso-commands-")
		if err != nil {
			return "", err
		}
		dir = d
	}
	file := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-o", file, pkg)
	cmd.Env = environment
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
}

// Helm returns the stdout of the helm command. If the command fails, the error contains its
// stderr.
func Helm(t testing.TB, args ...string) ([]byte, error) { return run(t, helm, args) }

// Kustomize returns the stdout of the kustomize command. If the command fails, the error contains
// its stderr.
func Kustomize(t testing.TB, args ...string) ([]byte, error) { return run(t, kustomize, args) }

func run(t testing.TB, command func() (string, error), args []string) ([]byte, error) {
	t.Helper()
	file, err := command()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(file, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=", "TZ=UTC"}
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return out, nil
}
