package tree_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/testing/unprivileged"
)

// two has two changes in a folder, so the folder is replaced at once.
var two = changed(files{"large/app/a.yaml": "a2", "large/app/b.sh": "", "large/app/new/c.yaml": "c1"})

// writeWith writes with a step that is called for each change.
func writeWith(t *testing.T, dir string, desired *plainTree, step func(op, path string) error, exchange func(root *os.Root, a, b string) error) {
	t.Helper()
	d, err := tree.Open(dir)
	must(t, err)
	defer func() { must(t, d.Close()) }()
	d.Hook(tree.Hooks{Step: step, Exchange: exchange})
	_, report, err := d.Write(context.Background(), desired.tree(), dev)
	must(t, err)
	if len(report) > 0 {
		t.Fatalf("diagnostics: %v", report)
	}
}

// If folders cannot be exchanged, their files are replaced one by one.
func TestFoldersThatCannotChangePlaces(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	mine := files{"large/app/mine": "m", "large/app/sub/mine": "m"}
	put(t, dir, mine)
	asked := 0
	writeWith(t, dir, treeOf(two), nil, func(*os.Root, string, string) error {
		asked++
		return errors.ErrUnsupported
	})
	if asked != 1 {
		t.Errorf("%d folders were to change places, want 1", asked)
	}
	want := changed(files{"large/app/mine": "m", "large/app/sub/mine": "m"})
	for p, data := range two {
		want[p] = data
	}
	delete(want, "large/app/b.sh")
	equal(t, "folder", read(t, dir), want)
	clean(t, dir)
}

// A file that someone adds to a folder during its replacement stays there.
func TestFilesThatComeMeanwhile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	put(t, dir, files{"large/app/mine": "1", "large/app/other": "1", "large/app/sub/": ""})
	before, err := os.Lstat(filepath.Join(dir, "large/app/other"))
	must(t, err)
	writeWith(t, dir, treeOf(two), func(op, p string) error {
		if op != "rename" || p != "large/app" {
			return nil
		}
		put(t, dir, files{"large/app/sub/new": "2"})
		// An editor saves like this: another file replaces the old one.
		edited := filepath.Join(dir, "large/app/mine~")
		must(t, os.WriteFile(edited, []byte("2"), 0o644))
		later := time.Now().Add(time.Second)
		must(t, os.Chtimes(edited, later, later))
		return os.Rename(edited, filepath.Join(dir, "large/app/mine"))
	}, nil)
	want := changed(files{"large/app/mine": "2", "large/app/other": "1", "large/app/sub/new": "2"})
	for p, data := range two {
		want[p] = data
	}
	delete(want, "large/app/b.sh")
	equal(t, "folder", read(t, dir), want)
	clean(t, dir)
	after, err := os.Lstat(filepath.Join(dir, "large/app/other"))
	must(t, err)
	if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("a file that nobody changed is another one")
	}
}

// A folder keeps its mode, and its empty folders.
func TestFoldersKeepTheirModes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	app, sub := filepath.Join(dir, "large/app"), filepath.Join(dir, "large/app/sub")
	must(t, os.Mkdir(sub, 0o700))
	must(t, os.Chmod(app, 0o770|fs.ModeSetgid))
	write(t, dir, treeOf(two), dev)
	for p, want := range map[string]fs.FileMode{app: fs.ModeDir | fs.ModeSetgid | 0o770, sub: fs.ModeDir | 0o700} {
		info, err := os.Lstat(p)
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", p, info.Mode(), want)
		}
	}
}

// Other people's folders without write or read permission do not disturb a write.
func TestFoldersWithoutPermissions(t *testing.T) {
	if !unprivileged.Test(t) {
		return
	}
	for name, mode := range map[string]fs.FileMode{"read-only": 0o500, "closed": 0} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, treeOf(small), dev)
			put(t, dir, files{"large/app/sub/mine": "m"})
			sub := filepath.Join(dir, "large/app/sub")
			must(t, os.Chmod(sub, mode))
			defer os.Chmod(sub, 0o700)
			write(t, dir, treeOf(two), dev)
			info, err := os.Lstat(sub)
			must(t, err)
			if info.Mode().Perm() != mode {
				t.Errorf("the folder has mode %v", info.Mode())
			}
			must(t, os.Chmod(sub, 0o700))
			want := changed(files{"large/app/sub/mine": "m"})
			for p, data := range two {
				want[p] = data
			}
			delete(want, "large/app/b.sh")
			equal(t, "folder", read(t, dir), want)
			clean(t, dir)
		})
	}
}

// A file of the cluster type itself may be in the folder of an assignment, which is
// then replaced file by file.
func TestClusterTypeFilesInFolders(t *testing.T) {
	dir := t.TempDir()
	of := func(version string) *plainTree {
		return &plainTree{ClusterTypes: []plainType{{Name: "large",
			Files:   []backends.File{fileOf("app/list", "l"+version), fileOf("index", "i"+version)},
			Folders: []plainFolder{{Info: backends.Folder{DeploymentTarget: "app"}, Files: []backends.File{fileOf("a", "a"+version), fileOf("b", "b"+version)}}}}}}
	}
	for _, version := range []string{"1", "2", "3"} {
		writeWith(t, dir, of(version), nil, func(_ *os.Root, a, _ string) error {
			t.Errorf("%s is replaced at once", a)
			return errors.ErrUnsupported
		})
		equal(t, version, read(t, dir), files{"large/app/list": "l" + version, "large/index": "i" + version, "large/app/a": "a" + version, "large/app/b": "b" + version})
		clean(t, dir)
	}
}
