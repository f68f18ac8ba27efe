package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// realPath is git's form of a path in files that point to it.
func realPath(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	must(t, err)
	return path
}

func TestDiscover(t *testing.T) {
	isolate(t)
	at := realPath(t, t.TempDir())
	git := func(args ...string) {
		t.Helper()
		run(t, "", "git", append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=A", "-c", "user.email=a@b", "-C", at}, args...)...)
	}
	if _, err := Discover(at); !errors.Is(err, ErrNoRepository) {
		t.Errorf("without a repository: %v", err)
	}
	git("init", "-q", "-b", "main", "w")
	git("-C", "w", "commit", "-q", "--allow-empty", "-m", "x")
	git("-C", "w", "worktree", "add", "-q", "-b", "linked", filepath.Join(at, "w", "linked"))
	git("clone", "-q", "--bare", "w", "bare")
	git("-C", "bare", "worktree", "add", "-q", "-b", "other", filepath.Join(at, "of-bare"))
	git("-C", "w", "submodule", "add", "-q", filepath.Join(at, "bare"), "sub")
	git("init", "-q", "-b", "main", "--separate-git-dir", filepath.Join(at, "apart.git"), "apart")
	for _, dir := range []string{"w/a/b", "w/a/.git", "linked/a", "of-bare/a", "w/sub/a", "apart/a", "w/linked/a"} {
		must(t, os.MkdirAll(filepath.Join(at, dir), 0o755))
	}
	for _, c := range []struct{ dir, workTree, common string }{
		{"w", "w", "w/.git"},
		{"w/a/b", "w", "w/.git"}, // a/.git is empty
		{"w/linked/a", "w/linked", "w/.git"},
		{"of-bare/a", "of-bare", "bare"},
		{"w/sub/a", "w/sub", "w/.git/modules/sub"},
		{"apart/a", "apart", "apart.git"},
	} {
		r, err := Discover(filepath.Join(at, c.dir))
		must(t, err)
		if r.WorkTree() != filepath.Join(at, c.workTree) || r.Dir() != filepath.Join(at, c.common) {
			t.Errorf("%s is in %s of %s", c.dir, r.WorkTree(), r.Dir())
		}
		must(t, r.Close())
	}
	if r := opened(t, filepath.Join(at, "w")); r.WorkTree() != "" {
		t.Errorf("Open found work tree %s", r.WorkTree())
	}
	must(t, os.WriteFile(filepath.Join(at, "w", "linked", ".git"), []byte("gitdir: /none/such\n"), 0o644))
	for name, open := range map[string]func(string) (*Repository, error){"Discover": Discover, "Open": Open} {
		if _, err := open(filepath.Join(at, "w", "linked")); err == nil || !strings.Contains(err.Error(), "git worktree repair") {
			t.Errorf("%s of a work tree that was moved: %v", name, err)
		}
	}
	git("-C", "bare", "config", "core.repositoryformatversion", "2")
	var format *FormatError
	if _, err := Discover(filepath.Join(at, "of-bare")); !errors.As(err, &format) {
		t.Errorf("a format that is not known: %v", err)
	}
}
