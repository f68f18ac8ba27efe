package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// TestSlowNeovim follows docs/editors.md, and works with a platform in a real Neovim.
func TestSlowNeovim(t *testing.T) {
	isolated.Slow(t, "it needs Neovim")
	nvim, err := exec.LookPath("nvim")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/editors.md")
	if err != nil {
		t.Fatal(err)
	}
	init := regexp.MustCompile("(?s)```lua\n(.*?)```").FindSubmatch(page)
	if init == nil {
		t.Fatal("docs/editors.md has no set-up for Neovim")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	for name, data := range map[string]string{
		"config/nvim/init.lua": string(init[1]),
		"p/cart.cue":           "package platform\n\nworkloads: cart: {\n\tworkspace: \"shop\"\n\tlabels: {}\n}\n",
	} {
		write(t, filepath.Join(dir, name), data)
	}
	if err := os.CopyFS(filepath.Join(dir, "p"), os.DirFS("../../examples/hello-world")); err != nil {
		t.Fatal(err)
	}
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(test, filepath.Join(bin, "kalypso")); err != nil { // TestMain goes by the name
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/neovim.lua")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nvim, "--headless", "cart.cue", "-c", "luafile "+script, "-c", "qall!")
	cmd.Dir = filepath.Join(dir, "p")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"),
		"XDG_DATA_HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CACHE_HOME="+dir, "CUE_CACHE_DIR="+filepath.Join(dir, "cue"), "CUE_REGISTRY=none")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile("testdata/neovim.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(string(out), "\r", ""); strings.TrimSpace(got) != strings.TrimSpace(string(want)) {
		t.Errorf("Neovim says\n%s\nand not\n%s", got, want)
	}
}

func write(t *testing.T, name, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}
