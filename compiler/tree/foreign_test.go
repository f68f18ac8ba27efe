package tree_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

func TestForeign(t *testing.T) {
	desired := files{"large/app/a.yaml": "new", "small/README.md": "readme", "small/run.sh": "+x run"}
	for _, c := range []struct {
		name    string
		foreign files
		at      string // the position of the diagnostic; "" if there is no diagnostic
		adopted string // the content at "at" with --adopt; "" for the same diagnostic
	}{
		{"an equal file is taken over", files{"large/app/a.yaml": "new"}, "", ""},
		{"an equal file that is executable", files{"large/app/a.yaml": "+x new"}, "large/app/a.yaml", "new"},
		{"an equal file that is not executable", files{"small/run.sh": "run"}, "small/run.sh", "+x run"},
		{"an equal executable file is taken over", files{"small/run.sh": "+x run"}, "", ""},
		{"other files stay", files{"large/app/b.sh": "x", "c": "x"}, "", ""},
		{"another file", files{"large/app/a.yaml": "old"}, "large/app/a.yaml", "new"},
		{"a link", files{"large/app/a.yaml": "-> b.yaml", "large/app/b.yaml": "new"}, "large/app/a.yaml", "new"},
		{"a link to outside", files{"large/app/a.yaml": "-> /etc/passwd"}, "large/app/a.yaml", "new"},
		{"an empty folder", files{"large/app/a.yaml/": ""}, "large/app/a.yaml", "new"},
		{"empty folders in a folder", files{"large/app/a.yaml/x/y/": "", "large/app/a.yaml/z/": ""}, "large/app/a.yaml", "new"},
		{"a folder with a temporary file", files{"large/app/a.yaml/" + aTempFile: "left"}, "large/app/a.yaml", "new"},
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
			_, report := tryWrite(t, dir, treeOf(desired), dev)
			if c.at == "" {
				if len(report) > 0 {
					t.Fatalf("diagnostics: %v", report)
				}
				maps.Copy(before, desired)
				equal(t, "folder", read(t, dir), before)
				return
			}
			points(t, report, diag.ForeignFile, dir, c.at)
			equal(t, "refused", read(t, dir), before)

			_, report = tryWrite(t, dir, treeOf(desired), adopting(dev))
			if c.adopted == "" {
				points(t, report, diag.ForeignFile, dir, c.at)
				equal(t, "refused with --adopt", read(t, dir), before)
				return
			}
			if len(report) > 0 {
				t.Fatalf("diagnostics: %v", report)
			}
			maps.DeleteFunc(before, func(p, _ string) bool { return strings.HasPrefix(p, c.at+"/") })
			maps.Copy(before, desired)
			equal(t, "adopted", read(t, dir), before)
		})
	}
}

// points checks that there is exactly one diagnostic, with a hint, at the path.
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
	// Removing the recorded files there removes nothing behind the link.
	write(t, dir, treeOf(changed(files{"large/app/a.yaml": "", "large/app/b.sh": ""})), dev)
	equal(t, "outside", read(t, outside), files{"a.yaml": "mine", "b.yaml": "mine"})
	if read(t, dir)["large/app"] != "-> "+outside {
		t.Error("the link is gone")
	}
}

// Anything that replaced one of kalypso's files by hand belongs to kalypso, except a folder.
func TestOwnedPathsWithOtherThings(t *testing.T) {
	for _, c := range []struct {
		name, there, data string
		tree, want        files
	}{
		{"link, written", "large/app/a.yaml", "-> b.sh", small, small},
		{"link, removed", "large/app/a.yaml", "-> b.sh", changed(files{"large/app/a.yaml": ""}), changed(files{"large/app/a.yaml": ""})},
		{"empty folder, written", "large/app/a.yaml/", "", small, small},
		{"folder, removed", "large/app/a.yaml/x", "mine", changed(files{"large/app/a.yaml": ""}), changed(files{"large/app/a.yaml": "", "large/app/a.yaml/x": "mine"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, treeOf(small), dev)
			must(t, os.Remove(filepath.Join(dir, "large/app/a.yaml")))
			put(t, dir, files{c.there: c.data})
			write(t, dir, treeOf(c.tree), dev)
			equal(t, "folder", read(t, dir), c.want)
		})
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
		o      tree.Options
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
			put(t, dir, files{recordPath: c.record, "large/app/b.sh": "mine", "large/x": "mine"})
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

	for _, rest := range []string{`"write": 1`, `"remove": [".git/config"]`, `"records": {"../x": []}`, `"records": {"large": ["x"]}`} {
		dir := t.TempDir()
		put(t, dir, files{journalPath: `{"kind": "Journal", "apiVersion": "kalypso.io/v1alpha1", ` + rest + `}`})
		_, report := tryWrite(t, dir, treeOf(small), dev)
		points(t, report, diag.BadRecord, dir, journalPath)
	}

	dir = t.TempDir()
	put(t, dir, files{journalPath: `{"kind": "Journal", "apiVersion": "kalypso.io/v1alpha1", "platform": "p", "environment": "e"}`})
	_, report = tryWrite(t, dir, treeOf(small), adopting(dev))
	points(t, report, diag.ForeignRecord, dir, journalPath)
}
