package kalypso_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// checkout returns the files of a module as git has them, or would have them. Ignored files are
// not part of a version.
func checkout(t *testing.T) []zip.File {
	t.Helper()
	names := command(t, "", "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	var out []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			out = append(out, checkedOut(name))
		}
	}
	return out
}

// checkedOut is a file of the checkout, by its name.
type checkedOut string

var _ zip.File = checkedOut("")

func (f checkedOut) Path() string                 { return string(f) }
func (f checkedOut) Lstat() (fs.FileInfo, error)  { return os.Lstat(string(f)) }
func (f checkedOut) Open() (io.ReadCloser, error) { return os.Open(string(f)) }

// publish writes a version of the checkout to a new module proxy in a folder.
func publish(t *testing.T, version module.Version) (proxy string) {
	t.Helper()
	proxy = t.TempDir()
	dir := filepath.Join(proxy, filepath.FromSlash(version.Path), "@v")
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]string{"Version": version.Version, "Time": "2026-01-02T03:04:05Z"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"list": []byte(version.Version + "\n"), version.Version + ".info": info, version.Version + ".mod": text} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.Create(filepath.Join(dir, version.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := zip.Create(archive, version, checkout(t)); err != nil {
		t.Fatalf("no module can be made of the checkout: %v", err)
	}
	return proxy
}

// TestInstallable checks that go.mod does not prevent `go install PACKAGE@VERSION`, and that all
// files are allowed in a module.
func TestInstallable(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(mod.Replace)+len(mod.Exclude) > 0 {
		t.Error("go.mod has replace or exclude, with which go installs no version of the module")
	}
	publish(t, module.Version{Path: mod.Module.Mod.Path, Version: "v0.0.1-test"})
}

// TestSlowInstall installs the checkout as people install a release.
func TestSlowInstall(t *testing.T) {
	isolated.Slow(t, "it compiles kalypso once more")
	version := module.Version{Path: "github.com/kalypso-io/kalypso", Version: fmt.Sprintf("v0.0.1-test.%d", rand.Uint32())}
	proxy, bin := publish(t, version), t.TempDir()
	// The dependencies' packages are already compiled in the user's module cache. So the test uses
	// that cache, and removes kalypso's files from it.
	cache := strings.TrimSpace(command(t, "", "go", "env", "GOMODCACHE"))
	t.Cleanup(func() { forget(t, cache, version) })
	t.Setenv("GOBIN", bin)
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(cache)+"/cache/download,"+strings.TrimSpace(command(t, "", "go", "env", "GOPROXY")))
	t.Setenv("GONOSUMDB", version.Path)
	t.Setenv("GOFLAGS", "-modcacherw")
	away := t.TempDir()
	command(t, away, "go", "install", version.Path+"/cmd/kalypso@"+version.Version)
	program := filepath.Join(bin, "kalypso")
	if got := command(t, away, program, "version"); !strings.HasPrefix(got, "kalypso  "+version.Version+"\n") {
		t.Errorf("it says\n%s", got)
	}
	platform := filepath.Join(t.TempDir(), "platform")
	if err := os.CopyFS(platform, os.DirFS("examples/hello-world")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CUE_CACHE_DIR", t.TempDir())
	t.Setenv("KALYPSO_CACHE_DIR", t.TempDir())
	command(t, platform, program, "build", "--to", "out")
	if _, err := os.Stat(filepath.Join(platform, "out/dev/drone/kustomization.yaml")); err != nil {
		t.Error(err)
	}
}

// forget removes a version from a module cache.
func forget(t *testing.T, cache string, version module.Version) {
	downloads := filepath.Join(cache, "cache", "download", filepath.FromSlash(version.Path))
	if err := os.RemoveAll(filepath.Join(cache, filepath.FromSlash(version.Path)+"@"+version.Version)); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(downloads, "@v", version.Version+".*"))
	if err != nil {
		t.Error(err)
	}
	for _, file := range append(files, filepath.Join(downloads, "@v", "list")) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

// command returns the output of a program, which has to succeed.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, &said)
	}
	return string(out)
}
