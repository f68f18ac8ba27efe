package compiler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// The source of an environment is the commit that was checked out, even if the branch has moved
// since.
func TestMovingRevision(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(text string) string {
		t.Helper()
		write("cue.mod/module.cue", "module: \"example.com/platform@v0\"\nlanguage: version: \"v0.17.0\"\n")
		write("platform.cue", "package platform\n// "+text+"\n")
		write("environments/dev/dev.cue", "package platform\n")
		git("add", "--all")
		git("commit", "--quiet", "--message", text)
		return git("rev-parse", "HEAD")
	}
	git("init", "--quiet", "--initial-branch", "main")
	first := commit("first")
	r := Request{Dir: dir, Revision: "main"}
	base, err := checkOutBase(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer base.remove() //nolint:errcheck // a temporary folder is left
	if second := commit("second"); second == first {
		t.Fatal("the branch has not moved")
	}
	got, err := checkOut(t.Context(), r, []model.Declaration{{Name: "dev"}}, base)
	if err != nil {
		t.Fatal(err)
	}
	if of := got.sources["dev"].Base; string(of) != first {
		t.Errorf("dev is compiled from %s, and said to be from %s", first, of)
	}
}
