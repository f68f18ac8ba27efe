package tree

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

var small = files{
	"large/README.md":       "readme",
	"large/app/a.yaml":      "a1",
	"large/app/b.yaml":      "b1",
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
		assignments      AssignmentChanges
	}{
		{
			name:        "nothing",
			next:        small,
			assignments: AssignmentChanges{Unchanged: 3},
		},
		{
			name:        "new content",
			next:        changed(files{"large/app/a.yaml": "a2", "small/README.md": "new"}),
			written:     []string{"large/app/a.yaml", "small/README.md"},
			assignments: AssignmentChanges{Changed: []string{"dev/large/app"}, Unchanged: 2},
		},
		{
			name:        "a new and an old file",
			next:        changed(files{"large/app/c.yaml": "c1", "large/app/b.yaml": ""}),
			written:     []string{"large/app/c.yaml"},
			removed:     []string{"large/app/b.yaml"},
			assignments: AssignmentChanges{Changed: []string{"dev/large/app"}, Unchanged: 2},
		},
		{
			name:    "folders come and go",
			next:    changed(files{"large/db/a.yaml": "", "small/app/deep/x.yaml": "", "small/README.md": "", "edge/app/x": "x"}),
			written: []string{"edge/app/x"},
			removed: []string{"large/db/a.yaml", "small/README.md", "small/app/deep/x.yaml"},
			assignments: AssignmentChanges{
				Added: []string{"dev/edge/app"}, Removed: []string{"dev/large/db", "dev/small/app"}, Unchanged: 1,
			},
		},
		{
			name:    "a file becomes a folder",
			next:    changed(files{"large/app/a.yaml": "", "large/app/a.yaml/x": "x"}),
			written: []string{"large/app/a.yaml/x"}, removed: []string{"large/app/a.yaml"},
			assignments: AssignmentChanges{Changed: []string{"dev/large/app"}, Unchanged: 2},
		},
		{
			name:    "a folder becomes a file",
			next:    changed(files{"small/app/deep/x.yaml": "", "small/app/deep": "x"}),
			written: []string{"small/app/deep"}, removed: []string{"small/app/deep/x.yaml"},
			assignments: AssignmentChanges{Changed: []string{"dev/small/app"}, Unchanged: 2},
		},
		{
			name:        "everything goes",
			next:        files{},
			removed:     slices.Sorted(maps.Keys(small)),
			assignments: AssignmentChanges{Removed: []string{"dev/large/app", "dev/large/db", "dev/small/app"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			foreign := files{"notes.txt": "mine", "large/notes.txt": "mine", "other/x": "mine", "empty/": ""}
			put(t, dir, foreign)
			write(t, dir, treeOf(small), dev)
			previous := record(t, dir)
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
			for p, was := range before {
				if is, there := after[p]; there && is != was && !slices.Contains(c.written, p) && p != recordPath {
					t.Errorf("%s was written again", p)
				}
			}
			if len(c.written)+len(c.removed) == 0 && (!got.Empty() || !maps.Equal(before, after)) {
				t.Errorf("something was written: %+v", got)
			}

			// Without the folder, the records say the same.
			compared, err := Compare(previous, treeOf(c.next), dev)
			must(t, err)
			if !sameChanges(compared, got) || !equalAssignments(compared.Assignments, got.Assignments) {
				t.Errorf("Compare says %+v, Write %+v", compared, got)
			}
		})
	}
}

func equalAssignments(a, b AssignmentChanges) bool {
	return slices.Equal(a.Added, b.Added) && slices.Equal(a.Changed, b.Changed) && slices.Equal(a.Removed, b.Removed) &&
		slices.Equal(a.Kept, b.Kept) && a.Unchanged == b.Unchanged
}

// times returns when each file was written.
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

// age sets the time of each file to the distant past, so that a write shows.
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
	d, err := Open(dir)
	must(t, err)
	defer d.Close()
	if r, report, err := d.Record(); r != nil || report != nil || err != nil {
		t.Errorf("Record: %v %v %v", r, report, err)
	}
	if c, report, err := d.Compare(treeOf(small), dev); len(c.Written) != len(small) || report != nil || err != nil {
		t.Errorf("Compare: %v %v %v", c, report, err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("a folder was made: %v", err)
	}
	if _, _, err := d.Write(treeOf(small), dev); err != nil {
		t.Error(err)
	}
	equal(t, "folder", read(t, dir), small)
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	must(t, os.Chmod(filepath.Join(dir, "large/README.md"), 0o755))
	if c := write(t, dir, treeOf(small), dev); !slices.Equal(c.Written, []string{"large/README.md"}) {
		t.Errorf("written %v, want the file that became executable", c.Written)
	}
	for p, want := range map[string]fs.FileMode{"large": fs.ModeDir | 0o755, "large/README.md": 0o644, recordPath: 0o644} {
		info, err := os.Stat(filepath.Join(dir, p))
		must(t, err)
		// The umask may take permissions away.
		if info.Mode()&^want != 0 || info.Mode()&0o600 != 0o600 {
			t.Errorf("%s has mode %s", p, info.Mode())
		}
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

func TestForeign(t *testing.T) {
	tree := files{"large/app/a.yaml": "new", "small/README.md": "readme"}
	for _, c := range []struct {
		name    string
		foreign files
		at      string // where the diagnostic points to; "" for none
		adopted string // what is at "at" with --adopt; "" for the same diagnostic
	}{
		{"an equal file is taken over", files{"large/app/a.yaml": "new"}, "", ""},
		{"other files stay", files{"large/app/b.yaml": "x", "c": "x"}, "", ""},
		{"another file", files{"large/app/a.yaml": "old"}, "large/app/a.yaml", "new"},
		{"a link", files{"large/app/a.yaml": "-> b.yaml", "large/app/b.yaml": "new"}, "large/app/a.yaml", "new"},
		{"a link to outside", files{"large/app/a.yaml": "-> /etc/passwd"}, "large/app/a.yaml", "new"},
		{"an empty folder", files{"large/app/a.yaml/": ""}, "large/app/a.yaml", "new"},
		{"a folder with files", files{"large/app/a.yaml/x/y": "mine"}, "large/app/a.yaml", ""},
		{"a file where a folder must be", files{"large": "mine"}, "large", ""},
		{"a link where a folder must be", files{"large": "-> elsewhere", "elsewhere/app/a.yaml": "mine"}, "large", ""},
		{"a link to outside where a folder must be", files{"large/app": "-> /tmp"}, "large/app", ""},
		{"a file where kalypso's folder must be", files{ownFolder: "mine"}, ownFolder, ""},
		{"a link where kalypso's folder must be", files{ownFolder: "-> elsewhere", "elsewhere/": ""}, ownFolder, ""},
		{"a folder where the record must be", files{recordPath + "/x": "mine"}, recordPath, ""},
		{"a link where the record must be", files{recordPath: "-> /etc/passwd"}, recordPath, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, c.foreign)
			before := read(t, dir)
			_, report := tryWrite(t, dir, treeOf(tree), dev)
			if c.at == "" {
				if len(report) > 0 {
					t.Fatalf("diagnostics: %v", report)
				}
				maps.Copy(before, tree)
				equal(t, "folder", read(t, dir), before)
				return
			}
			points(t, report, diag.ForeignFile, dir, c.at)
			equal(t, "refused", read(t, dir), before)

			_, report = tryWrite(t, dir, treeOf(tree), adopting(dev))
			if c.adopted == "" {
				points(t, report, diag.ForeignFile, dir, c.at)
				equal(t, "refused with --adopt", read(t, dir), before)
				return
			}
			if len(report) > 0 {
				t.Fatalf("diagnostics: %v", report)
			}
			delete(before, c.at+"/")
			maps.Copy(before, tree)
			equal(t, "adopted", read(t, dir), before)
		})
	}
}

// points checks that there is one diagnostic, with a way out, at the path.
func points(t *testing.T, report []diag.Diagnostic, code diag.Code, dir, p string) {
	t.Helper()
	want := filepath.ToSlash(filepath.Join(dir, p))
	if len(report) != 1 || report[0].Code != code || report[0].Hint == "" && code == diag.ForeignFile && p != ownFolder && p != recordPath ||
		len(report[0].Sites) != 1 || report[0].Sites[0].Position.File != want {
		t.Fatalf("diagnostics are %+v, want one %s at %s", report, code, want)
	}
}

func TestLinksMadeAfterwardsAreNotFollowed(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, files{"a.yaml": "mine", "b.yaml": "mine"})
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	must(t, os.RemoveAll(filepath.Join(dir, "large/app")))
	put(t, dir, files{"large/app": "-> " + outside})

	_, report := tryWrite(t, dir, treeOf(changed(files{"large/app/a.yaml": "a2"})), adopting(dev))
	points(t, report, diag.ForeignFile, dir, "large/app")
	// Removing what was recorded there removes nothing behind the link.
	write(t, dir, treeOf(changed(files{"large/app/a.yaml": "", "large/app/b.yaml": ""})), dev)
	equal(t, "outside", read(t, outside), files{"a.yaml": "mine", "b.yaml": "mine"})
	if read(t, dir)["large/app"] != "-> "+outside {
		t.Error("the link is gone")
	}
}

func TestRecordsThatCannotBeUsed(t *testing.T) {
	other := dev
	other.Environment = "prod"
	elsewhere := dev
	elsewhere.Platform = "example.com/other@v0"
	for _, c := range []struct {
		name   string
		record string
		o      Options
		code   diag.Code
		adopt  bool // --adopt helps
	}{
		{"another environment", goldenRecord, other, diag.ForeignRecord, false},
		{"another platform", goldenRecord, elsewhere, diag.ForeignRecord, false},
		{"corrupt", "<<<<<<<", dev, diag.BadRecord, true},
		{"empty", "", dev, diag.BadRecord, true},
		{"newer", strings.Replace(goldenRecord, "v1alpha1", "v1", 1), dev, diag.BadRecord, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, files{recordPath: c.record, "large/app/b.yaml": "mine", "large/x": "mine"})
			before := read(t, dir)
			_, report := tryWrite(t, dir, treeOf(small), c.o)
			points(t, report, c.code, dir, recordPath)
			equal(t, "refused", read(t, dir), before)
			_, report = tryWrite(t, dir, treeOf(small), adopting(c.o))
			if !c.adopt {
				points(t, report, c.code, dir, recordPath)
				equal(t, "refused with --adopt", read(t, dir), before)
				return
			}
			if len(report) > 0 {
				t.Fatalf("diagnostics: %v", report)
			}
			equal(t, "adopted", read(t, dir), changed(files{"large/x": "mine"}))
		})
	}
}

func TestJournalsThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, files{journalPath: `{"kind": "Journal", "apiVersion": "kalypso.io/v1alpha1", "write": ["../x"]}`})
	_, report := tryWrite(t, dir, treeOf(small), dev)
	points(t, report, diag.BadRecord, dir, journalPath)
	write(t, dir, treeOf(small), adopting(dev))
	equal(t, "adopted", read(t, dir), small)

	dir = t.TempDir()
	put(t, dir, files{journalPath: `{"kind": "Journal", "apiVersion": "kalypso.io/v1alpha1", "platform": "p", "environment": "e"}`})
	_, report = tryWrite(t, dir, treeOf(small), adopting(dev))
	points(t, report, diag.ForeignRecord, dir, journalPath)
}

func TestImpossibleTrees(t *testing.T) {
	file := func(paths ...string) *Tree {
		var fs []backends.File
		for _, p := range paths {
			fs = append(fs, backends.File{Path: p})
		}
		return &Tree{ClusterTypes: []ClusterType{{Name: "large", Files: fs}}}
	}
	folder := func(f Folder) *Tree {
		return &Tree{ClusterTypes: []ClusterType{{Name: "large", Folders: []Folder{f}}}}
	}
	for _, c := range []struct {
		name string
		tree *Tree
		want string
	}{
		{"outside", file("../../x"), "relative path"},
		{"absolute", file("/x"), "relative path"},
		{"git's", file("x/.git/config"), "git's own"},
		{"twice", file("x", "x"), "twice"},
		{"a file that is a folder", file("x", "x/y"), "folder of"},
		{"cluster type outside", &Tree{ClusterTypes: []ClusterType{{Name: ".."}}}, "relative path"},
		{"cluster type without a name", &Tree{ClusterTypes: []ClusterType{{}}}, "relative path"},
		{"cluster types unsorted", &Tree{ClusterTypes: []ClusterType{{Name: "b"}, {Name: "a"}}}, "comes after"},
		{"folder that is two", folder(Folder{Info: backends.Folder{DeploymentTarget: "a/b"}}), "slash"},
		{"kept without a record", keeping(&Tree{}, "large/app"), "does not list it"},
		{"shared that is not JSON", folder(Folder{Info: backends.Folder{DeploymentTarget: "a", Shared: []byte("{")}}), "JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			d, err := Open(dir)
			must(t, err)
			defer d.Close()
			if _, _, err := d.Write(c.tree, dev); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if _, err := Compare(nil, c.tree, dev); err == nil {
				t.Error("Compare has no error")
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("the folder was made")
			}
		})
	}
}
