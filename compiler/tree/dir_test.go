package tree_test

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

var small = files{
	"large/README.md":       "readme",
	"large/app/a.yaml":      "a1",
	"large/app/b.sh":        "+x b1",
	"large/db/a.yaml":       "a1",
	"small/README.md":       "readme",
	"small/app/deep/x.yaml": "x1",
}

// changed returns small with changes; an empty content removes the file.
func changed(changes files) files {
	f := maps.Clone(small)
	maps.Copy(f, changes)
	maps.DeleteFunc(f, func(_, data string) bool { return data == "" })
	return f
}

func TestWriteTouchesOnlyWhatDiffers(t *testing.T) {
	for _, c := range []struct {
		name             string
		next             files
		written, removed []string
		assignments      tree.AssignmentChanges
	}{
		{
			name:        "nothing",
			next:        small,
			assignments: tree.AssignmentChanges{Unchanged: 3},
		},
		{
			name:        "new content",
			next:        changed(files{"large/app/a.yaml": "a2", "small/README.md": "new"}),
			written:     []string{"large/app/a.yaml", "small/README.md"},
			assignments: tree.AssignmentChanges{Changed: []string{"dev/large/app"}, Unchanged: 2},
		},
		{
			name:        "files become executable, or are no longer",
			next:        changed(files{"large/app/a.yaml": "+x a1", "large/app/b.sh": "b1", "small/README.md": "+x readme"}),
			written:     []string{"large/app/a.yaml", "large/app/b.sh", "small/README.md"},
			assignments: tree.AssignmentChanges{Changed: []string{"dev/large/app"}, Unchanged: 2},
		},
		{
			name:        "a new and an old file",
			next:        changed(files{"large/app/c.yaml": "c1", "large/app/b.sh": ""}),
			written:     []string{"large/app/c.yaml"},
			removed:     []string{"large/app/b.sh"},
			assignments: tree.AssignmentChanges{Changed: []string{"dev/large/app"}, Unchanged: 2},
		},
		{
			name:    "folders come and go",
			next:    changed(files{"large/db/a.yaml": "", "small/app/deep/x.yaml": "", "small/README.md": "", "edge/app/x": "x"}),
			written: []string{"edge/app/x"},
			removed: []string{"large/db/a.yaml", "small/README.md", "small/app/deep/x.yaml"},
			assignments: tree.AssignmentChanges{
				Added: []string{"dev/edge/app"}, Removed: []string{"dev/large/db", "dev/small/app"}, Unchanged: 1,
			},
		},
		{
			name:    "a file becomes a folder",
			next:    changed(files{"large/app/a.yaml": "", "large/app/a.yaml/x": "x"}),
			written: []string{"large/app/a.yaml/x"}, removed: []string{"large/app/a.yaml"},
			assignments: tree.AssignmentChanges{Changed: []string{"dev/large/app"}, Unchanged: 2},
		},
		{
			name:    "a folder becomes a file",
			next:    changed(files{"small/app/deep/x.yaml": "", "small/app/deep": "x"}),
			written: []string{"small/app/deep"}, removed: []string{"small/app/deep/x.yaml"},
			assignments: tree.AssignmentChanges{Changed: []string{"dev/small/app"}, Unchanged: 2},
		},
		{
			name:        "everything goes",
			next:        files{},
			removed:     slices.Sorted(maps.Keys(small)),
			assignments: tree.AssignmentChanges{Removed: []string{"dev/large/app", "dev/large/db", "dev/small/app"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			foreign := files{"notes.txt": "mine", "large/notes.txt": "mine", "other/x": "mine", "empty/": ""}
			put(t, dir, foreign)
			write(t, dir, treeOf(small), dev)
			age(t, dir)
			before := times(t, dir)

			got := write(t, dir, treeOf(c.next), dev)
			if !slices.Equal(got.Written, c.written) || !slices.Equal(got.Removed, c.removed) {
				t.Errorf("written %v, removed %v", got.Written, got.Removed)
			}
			if !equalAssignments(got.Assignments, c.assignments) {
				t.Errorf("assignments: %+v", got.Assignments)
			}
			want := maps.Clone(c.next)
			maps.Copy(want, foreign)
			equal(t, "folder", read(t, dir), want)
			after := times(t, dir)
			delete(before, indexPath) // reading files for the first time renews it
			delete(after, indexPath)
			for p, was := range before {
				if is, there := after[p]; there && is != was && !slices.Contains(c.written, p) && !strings.HasPrefix(p, ownFolder) {
					t.Errorf("%s was written again", p)
				}
			}
			if len(c.written)+len(c.removed) == 0 && (!got.Empty() || !maps.Equal(before, after)) {
				t.Errorf("something was written: %+v", got)
			}
		})
	}
}

func equalAssignments(a, b tree.AssignmentChanges) bool {
	return slices.Equal(a.Added, b.Added) && slices.Equal(a.Changed, b.Changed) && slices.Equal(a.Removed, b.Removed) &&
		slices.Equal(a.Kept, b.Kept) && a.Unchanged == b.Unchanged
}

// times returns the modification time of each file.
func times(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	all := map[string]time.Time{}
	for _, p := range regularFiles(t, dir) {
		info, err := os.Stat(p)
		must(t, err)
		all[strings.TrimPrefix(filepath.ToSlash(p), filepath.ToSlash(dir)+"/")] = info.ModTime()
	}
	return all
}

// age sets the time of each file to the distant past, so that a write is visible.
func age(t *testing.T, dir string) {
	t.Helper()
	past := time.Unix(1000000000, 0)
	for _, p := range regularFiles(t, dir) {
		must(t, os.Chtimes(p, past, past))
	}
}

func regularFiles(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	must(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			paths = append(paths, p)
		}
		return err
	}))
	return paths
}

func TestWriteCreatesNothingBeforeThereIsSomething(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	d, err := tree.Open(dir)
	must(t, err)
	defer d.Close()
	if r, report, err := d.Record(); r != nil || report != nil || err != nil {
		t.Errorf("Record: %v %v %v", r, report, err)
	}
	if c, report, err := d.Compare(context.Background(), treeOf(small).tree(), dev); len(c.Written) != len(small) || report != nil || err != nil {
		t.Errorf("Compare: %v %v %v", c, report, err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("a folder was made: %v", err)
	}
	if _, _, err := d.Write(context.Background(), treeOf(small).tree(), dev); err != nil {
		t.Error(err)
	}
	equal(t, "folder", read(t, dir), small)
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	must(t, os.Chmod(filepath.Join(dir, "large/README.md"), 0o755))
	must(t, os.Chmod(filepath.Join(dir, "large/app/b.sh"), 0o644))
	if c := write(t, dir, treeOf(small), dev); !slices.Equal(c.Written, []string{"large/README.md", "large/app/b.sh"}) {
		t.Errorf("written %v, want the files with another mode", c.Written)
	}
	for p, want := range map[string]fs.FileMode{
		"large": fs.ModeDir | 0o755, "large/README.md": 0o644, "large/app/b.sh": 0o755, recordPath: 0o644, tree.ClusterTypeRecordPath("large"): 0o644,
	} {
		info, err := os.Stat(filepath.Join(dir, p))
		must(t, err)
		// The umask may remove permissions.
		if info.Mode()&^want != 0 || info.Mode()&0o700 != want&0o700 {
			t.Errorf("%s has mode %s", p, info.Mode())
		}
	}
}

// The permissions of the group and others are the user's choice: git does not store them.
func TestOtherPermissionsAreLeft(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	for p, mode := range map[string]fs.FileMode{"large/README.md": 0o600, "large/app/a.yaml": 0o674, "large/app/b.sh": 0o700} {
		must(t, os.Chmod(filepath.Join(dir, p), mode))
	}
	verify := dev
	verify.Verify = true
	for _, o := range []tree.Options{dev, verify} {
		if c := write(t, dir, treeOf(small), o); !c.Empty() {
			t.Errorf("changes are %+v", c)
		}
	}
	if got, want := record(t, dir).Tree, writeTree(t, dir); got != want {
		t.Errorf("the tree is %s, git says %s", got, want)
	}
}

func TestRecordIsWrittenWhenOnlyTheSourceChanged(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	o := dev
	o.Source.Base = "b2"
	if c := write(t, dir, treeOf(small), o); !c.Recorded || len(c.Written) > 0 || c.Empty() {
		t.Errorf("changes are %+v", c)
	}
	if r := record(t, dir); r.Source != o.Source {
		t.Errorf("the record's source is %v", r.Source)
	}
}

func TestImpossibleTrees(t *testing.T) {
	file := func(paths ...string) *plainTree {
		var fs []backends.File
		for _, p := range paths {
			fs = append(fs, backends.File{Path: p})
		}
		return &plainTree{ClusterTypes: []plainType{{Name: "large", Files: fs}}}
	}
	folder := func(f plainFolder) *plainTree {
		return &plainTree{ClusterTypes: []plainType{{Name: "large", Folders: []plainFolder{f}}}}
	}
	for _, c := range []struct {
		name string
		tree *plainTree
		want string
	}{
		{"outside", file("../../x"), "relative path"},
		{"absolute", file("/x"), "relative path"},
		{"git's", file("x/.git/config"), "git's own"},
		{"twice", file("x", "x"), "twice"},
		{"a file that is a folder", file("x", "x/y"), "folder of"},
		{"cluster type outside", &plainTree{ClusterTypes: []plainType{{Name: ".."}}}, "relative path"},
		{"cluster type without a name", &plainTree{ClusterTypes: []plainType{{}}}, "relative path"},
		{"cluster types unsorted", &plainTree{ClusterTypes: []plainType{{Name: "b"}, {Name: "a"}}}, "comes after"},
		{"folder that is two", folder(plainFolder{Info: backends.Folder{DeploymentTarget: "a/b"}}), "slash"},
		{"kept without a record", keeping(&plainTree{}, "large/app"), "does not list it"},
		{"shared that is not JSON", folder(plainFolder{Info: backends.Folder{DeploymentTarget: "a", Shared: []byte("{")}}), "JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			d, err := tree.Open(dir)
			must(t, err)
			defer d.Close()
			if _, _, err := d.Write(context.Background(), c.tree.tree(), dev); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("the folder was made")
			}
		})
	}
}
