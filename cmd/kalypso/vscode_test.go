package main

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// TestSlowVSCode packages the extension for VS Code as its page describes, and checks that the
// package has everything that the extension loads.
func TestSlowVSCode(t *testing.T) {
	isolated.Slow(t, "it needs npm, and a registry")
	if _, err := exec.LookPath("npm"); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "editors", "vscode")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const from = "../../editors/vscode"
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Type().IsRegular() {
			copyFile(t, filepath.Join(from, f.Name()), filepath.Join(dir, f.Name()))
		}
	}
	copyFile(t, "../../LICENSE", filepath.Join(root, "LICENSE"))
	for _, args := range [][]string{{"ci", "--no-audit", "--no-fund"}, {"run", "package"}} {
		cmd := exec.Command("npm", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("npm %v: %v\n%s", args, err, out)
		}
	}
	z, err := zip.OpenReader(filepath.Join(dir, "kalypso.vsix"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, name := range []string{"extension.js", "package.json", "language-configuration.json", "LICENSE.txt", "node_modules/vscode-languageclient/node.js"} {
		if f, err := z.Open("extension/" + name); err != nil {
			t.Error(err)
		} else {
			f.Close()
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
