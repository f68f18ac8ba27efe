package ansible_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// deb builds a Debian package with a program, its configuration and its unit, and
// returns the file.
func deb(t *testing.T, name, version string) string {
	t.Helper()
	dir := t.TempDir()
	for file, text := range map[string]string{
		"DEBIAN/control":                              fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: Tests <tests@example.test>\nDescription: A package of the tests\n", name, version),
		"DEBIAN/conffiles":                            "/etc/" + name + ".conf\n",
		"etc/" + name + ".conf":                       "packaged " + version + "\n",
		"usr/bin/" + name:                             "#!/bin/sh\necho " + version + "\n",
		"usr/lib/systemd/system/" + name + ".service": "[Service]\nExecStart=/usr/bin/" + name + "\n\n[Install]\nWantedBy=multi-user.target\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(file, "usr/bin") {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), fmt.Sprintf("%s_%s_all.deb", name, version))
	if text, err := exec.Command("dpkg-deb", "--root-owner-group", "--build", dir, out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// digestOf returns a file's digest as schema.#Digest has it.
func digestOf(t *testing.T, file string) string {
	t.Helper()
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(readFile(t, file))))
}

// publish replaces the packages in the machine's own package sources.
func (m *machine) publish(debs ...string) {
	m.Helper()
	var index strings.Builder
	for _, file := range debs {
		control, err := exec.Command("dpkg-deb", "--field", file).Output()
		if err != nil {
			m.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			m.Fatal(err)
		}
		fmt.Fprintf(&index, "%sFilename: ./%s\nSize: %d\nSHA256: %s\n\n", control, filepath.Base(file), info.Size(), strings.TrimPrefix(digestOf(m.T, file), "sha256:"))
		asRoot(m, "install", "-D", "--mode=644", file, m.root+"/srv/packages/"+filepath.Base(file))
	}
	m.write("/srv/packages/Packages", index.String(), 0o644)
}
