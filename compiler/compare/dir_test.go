package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// put makes a folder of files. A text that begins with "->" is a link, and one that begins
// with "+x " is the text of an executable file. A name that ends in a slash is a folder.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, isLink := strings.CutPrefix(text, "->"); isLink {
			err = os.Symlink(to, at)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(at, 0o777)
		} else {
			f := fileOf(name, text)
			if err = os.WriteFile(at, f.Data, 0o644); err == nil && f.Executable {
				err = os.Chmod(at, 0o755)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// found lists folders with their files.
func found(t *testing.T, dir string) string {
	t.Helper()
	folders, _, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range folders {
		files, err := f.Files()
		if err != nil {
			t.Fatal(err)
		}
		blobs := map[string]tree.Blob{}
		s := f.ID() + ":"
		for _, file := range files {
			s += " " + file.Path
			if file.Executable {
				s += "*"
			}
			blobs[file.Path] = tree.BlobOf(file)
		}
		if tree.TreeID(blobs) != f.Tree {
			t.Errorf("%s: the id is not that of the files", f.ID())
		}
		out = append(out, s)
	}
	return strings.Join(out, "\n")
}

// record is the provenance record of an environment.
func record(environment string, types ...tree.ClusterTypeEntry) string {
	r := tree.Record{APIVersion: "kalypso.io/v1alpha1", Kind: "Provenance", Environment: environment, Tree: tree.TreeID(nil), ClusterTypes: types}
	return string(r.Encode())
}

func TestReadDir(t *testing.T) {
	large := `{"apiVersion": "kalypso.io/v1alpha1", "kind": "ClusterTypeProvenance", "name": "large", "files": {"apps/x/a.yaml": "` + string(tree.BlobID(nil)) + `"}, "assignments": []}`
	for name, c := range map[string]struct {
		files map[string]string
		below string // the folder to read
		want  string
	}{
		"nothing": {map[string]string{"out/": ""}, "out", ""},
		"environments": {map[string]string{
			"out/dev/large/README.md": "", "out/dev/large/a/b.yaml": "", "out/dev/large/a/c/d/e.yaml": "", "out/dev/small/b/x": "", "out/prod/large/a/x": "",
		}, "out", "dev/large: README.md\ndev/large/a: b.yaml c/d/e.yaml\ndev/small/b: x\nprod/large/a: x"},
		"executable files": {map[string]string{
			"out/dev/large/run.sh": "+x a", "out/dev/large/a/b.sh": "+x ", "out/dev/large/a/c.sh": "a",
		}, "out", "dev/large: run.sh*\ndev/large/a: b.sh* c.sh"},
		"a flat output": {map[string]string{
			"dev/large/README.md": "", "dev/large/a/b.yaml": "", "dev/small/b/x": "",
		}, "dev", "dev/large: README.md\ndev/large/a: b.yaml\ndev/small/b: x"},
		"a flat output with a record": {map[string]string{
			"out/.kalypso/provenance.json": record("prod"), "out/large/a/b.yaml": "", "out/large/a/c/d/e": "",
		}, "out", "prod/large/a: b.yaml c/d/e"},
		"a flat output with a broken record": {map[string]string{
			"dev/.kalypso/provenance.json": "{", "dev/large/a/b/c.yaml": "",
		}, "dev", "dev/large/a: b/c.yaml"},
		"environments with a record and files beside": {map[string]string{
			"out/README": "", "out/dev/.kalypso/provenance.json": record("dev"), "out/dev/README": "", "out/dev/large/a/b": "", "out/other/README": "", "out/other/x/y/z": "",
		}, "out", "dev/large/a: b\nother/x/y: z"},
		"a cluster type's own folders": {map[string]string{
			"out/dev/.kalypso/provenance.json":          record("dev", tree.ClusterTypeEntry{Name: "large", Tree: tree.TreeID(nil), Record: tree.BlobID([]byte(large))}),
			"out/dev/.kalypso/cluster-types/large.json": large,
			"out/dev/large/apps/x/a.yaml":               "", "out/dev/large/b.yaml": "", "out/dev/large/a/x": "", "out/dev/small/apps/x": "",
		}, "out", "dev/large: apps/x/a.yaml b.yaml\ndev/large/a: x\ndev/small/apps: x"},
		"what does not count": {map[string]string{
			"out/.git/a/b/c": "", "out/dev/.git/a/b": "", "out/dev/large/.git/a": "", "out/dev/large/a/.git/b": "", "out/dev/large/a/.kalypso-0123456789abcdef.tmp": "",
			"out/dev/large/a/x": "", "out/dev/large/empty/deep/": "", "out/dev/large/a/link": "->x", "out/dev/large/linked": "->a", "out/linked": "->dev", "out/dev/large/a/outside": "->/etc",
		}, "out", "dev/large/a: x"},
		"names that sort in another way than paths": {map[string]string{
			"out/dev/a/b/x": "", "out/dev/a-b/b/x": "", "out/dev/a/b-c/x": "", "out/dev-a/a/b/x": "",
		}, "out", "dev/a/b: x\ndev/a/b-c: x\ndev/a-b/b: x\ndev-a/a/b: x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, c.files)
			if got := found(t, filepath.Join(dir, c.below)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			link := filepath.Join(dir, "link-to-it")
			if err := os.Symlink(filepath.Join(dir, c.below), link); err != nil {
				t.Fatal(err)
			}
			folders, _, err := ReadDir(link)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Compare(folders, folders, false); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadDirFails(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := ReadDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	put(t, dir, map[string]string{"file": ""})
	if _, _, err := ReadDir(filepath.Join(dir, "file")); err == nil {
		t.Error("a file is read as an output")
	}
}

func TestReadDirIsLazy(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"dev/a/b/x": "old"})
	folders, _, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"dev/a/b/x": "new"})
	files, err := folders[0].Files()
	if err != nil || !slices.EqualFunc(files, []backends.File{{Path: "x", Data: []byte("new")}}, func(a, b backends.File) bool {
		return a.Path == b.Path && string(a.Data) == string(b.Data)
	}) {
		t.Errorf("%v %v", files, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "dev")); err != nil {
		t.Fatal(err)
	}
	if _, err := folders[0].Files(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// The ids are the same as git's.
func TestReadDirIDs(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"dev/a/b/x": "1", "dev/a/b/x-y/z": "+x 2", "dev/a/b/x.y": "+x 3"})
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("add", "-A")
	want := git("rev-parse", git("write-tree")+":dev/a/b")
	folders, _, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) != 1 || string(folders[0].Tree) != want {
		t.Errorf("got %+v, want the id %s", folders, want)
	}
}

func BenchmarkReadDir(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		at := filepath.Join(dir, "dev", "a", fmt.Sprintf("t%04d", i))
		if err := os.MkdirAll(at, 0o777); err != nil {
			b.Fatal(err)
		}
		for f := range 4 {
			if err := os.WriteFile(filepath.Join(at, fmt.Sprintf("f%d.yaml", f)), []byte(config("n", "info")), 0o666); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		if _, _, err := ReadDir(dir); err != nil {
			b.Fatal(err)
		}
	}
}
