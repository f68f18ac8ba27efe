package source

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/git"
)

// run runs git in a folder, without the user's configuration, and returns its
// output.
func run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_AUTHOR_DATE=2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(out.String())
}

// commit writes files into a work tree and commits all there is.
func commit(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
}

// repo makes a repository with a platform in the folder p, and a history with a
// branch, a merge and tags.
func repo(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, "init", "-q")
	commit(t, dir, map[string]string{"README": "beside the platform"})
	run(t, dir, "tag", "before")
	if err := os.MkdirAll(filepath.Join(dir, "p", "environments", "dev"), 0o777); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"p/inside.cue": "a.cue", "p/outside": "../README", "p/nowhere": "/none/such", "p/environments/dir": "dev"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, dir, map[string]string{"p/cue.mod/module.cue": moduleText, "p/a.cue": "package platform\n", "p/environments/dev/a.cue": "package platform\nx: 1\n", "p/Ünï cödé": "x", "p/bin": "#!/bin/sh\n", "p/empty": ""})
	run(t, dir, "update-index", "--chmod=+x", "p/bin")
	run(t, dir, "commit", "-q", "-m", "executable")
	if err := os.Chmod(filepath.Join(dir, "p", "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "tag", "-a", "-m", "x", "v1")
	run(t, dir, "branch", "topic/deep")
	for i := range 12 {
		commit(t, dir, map[string]string{"p/a.cue": fmt.Sprintf("package platform\ny: %d\n%s", i, strings.Repeat("// long\n", 200))})
	}
	run(t, dir, "branch", "dead")
	run(t, dir, "branch", "a")
	run(t, dir, "checkout", "-q", "topic/deep")
	commit(t, dir, map[string]string{"p/environments/dev/b.cue": "package platform\n"})
	run(t, dir, "checkout", "-q", "main")
	run(t, dir, "merge", "-q", "--no-ff", "-m", "merge", "topic/deep")
	return dir
}

// archived are the modes and contents of the folder's files at a revision, by git.
func archived(t *testing.T, dir, rev, folder string) map[string]string {
	t.Helper()
	cmd := exec.Command("git", "-c", "tar.umask=0022", "archive", rev+":"+folder)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(out)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[h.Name] = fmt.Sprintf("%v %s", h.FileInfo().Mode()&0o100 != 0, b)
		case tar.TypeSymlink:
			files[h.Name] = "-> " + h.Linkname
		}
	}
}

// written is the content of a folder on disk.
func written(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(at)
			files[rel] = "-> " + to
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(at)
		files[rel] = fmt.Sprintf("%v %s", info.Mode()&0o100 != 0, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// check compares the files of Checkout with git's, and checks that nothing else
// changes.
func check(t *testing.T, dir, folder, rev string) {
	t.Helper()
	before := written(t, dir)
	platform, remove, err := Checkout(t.Context(), filepath.Join(dir, folder), rev)
	if err != nil {
		t.Errorf("%s: %v", rev, err)
		return
	}
	if got, want := written(t, platform), archived(t, dir, rev, folder); !maps.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", rev, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	if _, _, err := Open(platform); err != nil && folder != "" {
		t.Errorf("%s: %v", rev, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(platform); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: the folder is still there", rev)
	}
	if !maps.Equal(before, written(t, dir)) {
		t.Errorf("%s: the repository has changed", rev)
	}
}

func TestCheckoutRevisions(t *testing.T) {
	dir := repo(t)
	head := run(t, dir, "rev-parse", "HEAD")
	run(t, dir, "remote", "add", "origin", ".")
	run(t, dir, "fetch", "-q", "origin")
	if err := os.Remove(filepath.Join(dir, "p", "nowhere")); err != nil { // Open follows links
		t.Fatal(err)
	}
	commit(t, dir, nil)
	revs := []string{"HEAD", "@~1", "topic/deep", "v1", "HEAD~1^2", "HEAD~4", "origin/main", "a", "dead", head, head[:7], "v1-14-g" + head[:8]}
	for _, packed := range []bool{false, true} {
		if packed {
			run(t, dir, "pack-refs", "--all")
			run(t, dir, "repack", "-q", "-a", "-d")
		}
		for _, rev := range revs {
			check(t, dir, "p", rev)
		}
	}
}

func TestCheckoutRepositories(t *testing.T) {
	dir := repo(t)
	run(t, dir, "rm", "-q", "p/nowhere")
	commit(t, dir, nil)
	temp := filepath.Dir(dir)
	in := func(name string) string { return filepath.Join(temp, filepath.Base(dir)+name) }
	t.Cleanup(func() {
		for _, name := range []string{"-tree", "-shared", "-nested", "-bare", "-bare-tree", "-sparse", "-shallow", "-partial", "-moved"} {
			if err := os.RemoveAll(in(name)); err != nil {
				t.Error(err)
			}
		}
	})
	run(t, dir, "worktree", "add", "-q", "--detach", in("-tree"), "topic/deep")
	run(t, dir, "clone", "-q", "--shared", dir, in("-shared"))
	run(t, dir, "clone", "-q", "--shared", in("-shared"), in("-nested"))
	relative, err := filepath.Rel(filepath.Join(in("-shared"), ".git", "objects"), filepath.Join(dir, ".git", "objects"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(in("-shared"), ".git", "objects", "info", "alternates"), []byte("# comment\n"+relative+"\n/none/such\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "clone", "-q", "--bare", dir, in("-bare"))
	run(t, in("-bare"), "gc", "-q")
	run(t, in("-bare"), "worktree", "add", "-q", in("-bare-tree"), "main")
	run(t, dir, "clone", "-q", "--no-local", dir, in("-sparse"))
	run(t, in("-sparse"), "sparse-checkout", "set", "p")
	for _, name := range []string{"", "-tree", "-shared", "-nested", "-bare-tree", "-sparse"} {
		t.Run("repository"+name, func(t *testing.T) {
			for _, rev := range []string{"HEAD", "HEAD~1", "v1", run(t, dir, "rev-parse", "v1")[:10]} {
				if rev != "v1" { // a link of it leads nowhere
					check(t, in(name), "p", rev)
				}
			}
		})
	}
	t.Run("from a folder below", func(t *testing.T) {
		platform, remove, err := Checkout(t.Context(), filepath.Join(dir, "p", "environments", "dev"), "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(platform, "cue.mod", "module.cue")); err != nil {
			t.Error(err)
		}
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	t.Run("shallow", func(t *testing.T) {
		run(t, dir, "clone", "-q", "--depth=1", "file://"+dir, in("-shallow"))
		check(t, in("-shallow"), "p", "HEAD")
		fails(t, filepath.Join(in("-shallow"), "p"), "HEAD~1", "git fetch --unshallow")
		fails(t, filepath.Join(in("-shallow"), "p"), run(t, dir, "rev-parse", "HEAD~3"), "git fetch --unshallow")
		fails(t, filepath.Join(in("-shallow"), "p"), "v1", "git fetch --unshallow --tags")
	})
	t.Run("partial", func(t *testing.T) {
		run(t, dir, "config", "uploadpack.allowFilter", "true")
		run(t, dir, "clone", "-q", "--filter=blob:none", "file://"+dir, in("-partial"))
		check(t, in("-partial"), "p", "HEAD")
		fails(t, filepath.Join(in("-partial"), "p"), "HEAD~6", "is not in the partial clone; let git fetch it (git worktree add --detach DIR REVISION does) and name that folder")
	})
	t.Run("a work tree that was moved", func(t *testing.T) {
		run(t, dir, "worktree", "add", "-q", "--detach", in("-moved"))
		if err := os.WriteFile(filepath.Join(in("-moved"), ".git"), []byte("gitdir: /none/such\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		fails(t, filepath.Join(in("-moved"), "p"), "HEAD", "git worktree repair")
	})
}

// fails checks that Checkout fails, with a text, and leaves no folder behind.
func fails(t *testing.T, dir, rev, text string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	platform, remove, err := Checkout(t.Context(), dir, rev)
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got error %v, want one with %q", rev, err, text)
	}
	if platform != "" || remove != nil {
		t.Errorf("%s: something comes with the error", rev)
	}
	if left := written(t, os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("%s: left behind: %v", rev, left)
	}
}

func TestCheckoutFails(t *testing.T) {
	dir := repo(t)
	p := filepath.Join(dir, "p")
	for rev, text := range map[string]string{
		"HEAD:p":                           "not a form of revision",
		"nothing-like-it":                  "there are: a, before, dead, main, topic/deep, v1",
		"HEAD~99":                          "is the first one",
		"before":                           "there is no platform in p",
		strings.Repeat("0", 40):            "git fsck",
		run(t, dir, "rev-parse", "HEAD:p"): "is a tree and not a commit",
	} {
		fails(t, p, rev, text)
	}
	t.Run("no repository", func(t *testing.T) {
		fails(t, write(t, map[string]string{}), "HEAD", "not in a git repository")
	})
	t.Run("no commits", func(t *testing.T) {
		empty := write(t, map[string]string{})
		run(t, empty, "init", "-q")
		fails(t, empty, "HEAD", "no commits yet")
	})
	t.Run("no platform", func(t *testing.T) {
		var none *NotAPlatformError
		if _, _, err := Checkout(t.Context(), t.TempDir(), "HEAD"); !errors.As(err, &none) {
			t.Error(err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := Checkout(ctx, p, "HEAD"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("submodules", func(t *testing.T) {
		other := repo(t)
		run(t, dir, "submodule", "--quiet", "add", other, "beside")
		commit(t, dir, nil)
		check(t, dir, "p", "v1~0")
		run(t, dir, "submodule", "--quiet", "add", other, "p/sub")
		commit(t, dir, nil)
		check(t, dir, "p", "v1~0")
		at, remove, err := Checkout(t.Context(), p, "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		defer remove()
		if inside, err := os.ReadDir(filepath.Join(at, "sub")); err != nil || len(inside) > 0 {
			t.Errorf("the submodule has %v, %v", inside, err)
		}
		run(t, dir, "submodule", "--quiet", "add", other, "p/environments/sub")
		commit(t, dir, nil)
		fails(t, p, "HEAD", "environments/sub is a git submodule")
	})
	for format, text := range map[string]string{"objectFormat sha256": "it is a SHA-256 repository", "refStorage reftable": "refStorage is reftable", "somethingNew true": "extensions.somethingNew"} {
		t.Run(format, func(t *testing.T) {
			key, value, _ := strings.Cut(format, " ")
			config := filepath.Join(dir, ".git", "config")
			old, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			run(t, dir, "config", "core.repositoryformatversion", "1")
			run(t, dir, "config", "extensions."+key, value)
			fails(t, p, "HEAD", text)
			if err := os.WriteFile(config, old, 0o666); err != nil {
				t.Fatal(err)
			}
		})
	}
	run(t, dir, "config", "core.repositoryformatversion", "2")
	fails(t, p, "HEAD", "version 2; check the revision out")
}

// hostile stores a commit of a tree that git itself would not make.
func hostile(t *testing.T, dir string, entries ...git.Entry) {
	t.Helper()
	r, err := git.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pack := r.NewPack()
	store := func(kind git.Kind, content []byte) git.Hash {
		id, err := pack.Add(kind, content)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	tree := func(entries []git.Entry) git.Hash {
		var b []byte
		for _, e := range entries { // in their order, which may be wrong
			b = fmt.Appendf(b, "%s %s\x00", e.Mode, e.Name)
			b = append(b, e.ID[:]...)
		}
		return store(git.TreeKind, b)
	}
	blob := store(git.BlobKind, []byte("hostile"))
	link := store(git.BlobKind, []byte(".."))
	module := tree([]git.Entry{{Name: "module.cue", Mode: git.FileMode, ID: blob}})
	all := []git.Entry{{Name: "cue.mod", Mode: git.FolderMode, ID: module}}
	for _, e := range entries {
		switch e.Mode {
		case git.LinkMode:
			e.ID = link
		case git.FolderMode, "040000":
			e.ID = tree([]git.Entry{{Name: "hostile", Mode: git.FileMode, ID: blob}})
		default:
			e.ID = blob
		}
		all = append(all, e)
	}
	c := store(git.CommitKind, []byte("tree "+tree(all).String()+"\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n"))
	if err := pack.Finish(); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "update-ref", "refs/heads/hostile", c.String())
}

func TestCheckoutHostile(t *testing.T) {
	dir := write(t, map[string]string{})
	run(t, dir, "init", "-q")
	for name, entries := range map[string][]git.Entry{
		"parent":               {{Name: "..", Mode: git.FolderMode}},
		"file named parent":    {{Name: "..", Mode: git.FileMode}},
		"itself":               {{Name: ".", Mode: git.FolderMode}},
		"absolute":             {{Name: "/hostile", Mode: git.FileMode}},
		"slash":                {{Name: "../../hostile", Mode: git.FileMode}},
		"git":                  {{Name: ".git", Mode: git.FolderMode}},
		"Git":                  {{Name: ".GiT", Mode: git.FolderMode}},
		"git with a dot":       {{Name: ".git. .", Mode: git.FolderMode}},
		"git on NTFS":          {{Name: "GIT~1", Mode: git.FolderMode}},
		"git and a stream":     {{Name: ".git::$INDEX_ALLOCATION", Mode: git.FolderMode}},
		"git and a backslash":  {{Name: `.git\config`, Mode: git.FileMode}},
		"git on HFS+":          {{Name: ".g\u200cit", Mode: git.FolderMode}},
		"link, then folder":    {{Name: "a", Mode: git.LinkMode}, {Name: "a", Mode: git.FolderMode}},
		"link, then file":      {{Name: "a", Mode: git.LinkMode}, {Name: "a", Mode: git.FileMode}},
		"folder twice":         {{Name: "a", Mode: git.FolderMode}, {Name: "a", Mode: git.FolderMode}},
		"module replaced":      {{Name: "cue.mod", Mode: git.LinkMode}},
		"a name that is empty": {{Name: "", Mode: git.FileMode}},
		"a mode that is none":  {{Name: "a", Mode: "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			hostile(t, dir, entries...)
			_, _, err := Checkout(t.Context(), dir, "hostile")
			if err == nil || strings.Contains(err.Error(), "git fsck") {
				t.Errorf("got error %v, want one about the entry", err)
			}
			fails(t, dir, "hostile", "")
		})
	}
	hostile(t, dir, git.Entry{Name: "a", Mode: git.LinkMode}, git.Entry{Name: "b", Mode: git.FolderMode},
		git.Entry{Name: "c", Mode: "040000"}, git.Entry{Name: "d", Mode: git.OldFileMode})
	check(t, dir, "", "hostile")
}

// A few trees that contain each other many times are a small repository and an endless
// checkout.
func TestCheckoutIsBounded(t *testing.T) {
	c := &checkout{ctx: t.Context(), entries: maxEntries}
	err := c.folder([]git.Entry{{Name: "a", Mode: git.FileMode}}, ".")
	if err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
	err = c.folder(nil, strings.Repeat("a/", maxDepth+1))
	if err == nil || !strings.Contains(err.Error(), "too deeply") {
		t.Error(err)
	}
}
