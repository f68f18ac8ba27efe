package tree_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/tree"
)

var errInjected = errors.New("injected")

// failing returns a step that fails at the n-th change. It fails only once, like a disk, or at all
// later changes too, like a killed process.
func failing(n int, killed bool) func(op, path string) error {
	var count atomic.Int64
	return func(op, path string) error {
		i := int(count.Add(1))
		if i == n || killed && i > n {
			return fmt.Errorf("%s %s: %w", op, path, errInjected)
		}
		return nil
	}
}

// writeFailing writes with a step that may fail, and reports whether it failed.
func writeFailing(t *testing.T, dir string, desired *plainTree, o tree.Options, step func(op, path string) error) bool {
	t.Helper()
	d, err := tree.Open(dir)
	must(t, err)
	defer func() { must(t, d.Close()) }()
	d.Hook(tree.Hooks{Step: step, Remake: true})
	_, report, err := d.Write(context.Background(), desired.tree(), o)
	if len(report) > 0 {
		t.Fatalf("diagnostics: %v", report)
	}
	if err != nil && !errors.Is(err, errInjected) {
		t.Fatal(err)
	}
	return err != nil
}

// crash is a write from one tree to another, among foreign files.
type crash struct {
	name       string
	from, to   files // from is nil if there is no record
	foreign    files
	o          tree.Options
	alsoBefore files // foreign files that the write takes over
}

// entries of clusters, in folders with one or more entries.
var entries = files{
	"clusters/8e/store-37/kustomization.yaml": "one", "clusters/8e/store-7/kustomization.yaml": "one", "clusters/8e/store-7/hosts.yaml": "h",
	"clusters/b2/store-23/kustomization.yaml": "one",
}

var crashes = []crash{
	{name: "first", to: small, foreign: files{"large/mine": "m", "mine/x": "m"}, o: dev},
	{name: "takes over", to: small, alsoBefore: files{"large/app/a.yaml": "mine"}, o: adopting(dev)},
	{
		name: "changes", from: small, foreign: files{"small/mine": "m"}, o: dev,
		to: changed(files{"large/app/a.yaml": "a2", "large/app/b.sh": "", "large/app/c.yaml": "c1", "small/app/deep/x.yaml": "", "new/app/a": "a"}),
	},
	{
		name: "files and folders change places", from: small, o: dev,
		to: changed(files{"large/app/a.yaml": "", "large/app/a.yaml/x": "x", "small/app/deep/x.yaml": "", "small/app/deep": "x"}),
	},
	{
		name: "modes change", from: small, o: dev,
		to: changed(files{"large/README.md": "+x readme", "large/app/a.yaml": "+x a2", "large/app/b.sh": "b1", "large/db/run.sh": "+x r1"}),
	},
	{
		name: "entries", from: changed(entries), foreign: files{"clusters/8e/mine": "m", "clusters/mine": "m"}, o: dev,
		to: changed(files{"clusters/8e/store-7/kustomization.yaml": "two", "clusters/8e/store-7/values.yaml": "v", "clusters/c4/store-24/kustomization.yaml": "one", "new/app/a": "a"}),
	},
	{name: "everything goes", from: small, to: files{}, foreign: files{"large/app/mine": "m"}, o: dev},
}

// prepare makes the folder before the write.
func (c crash) prepare(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dev")
	if c.from != nil {
		write(t, dir, treeOf(c.from), c.o)
	}
	must(t, os.MkdirAll(dir, 0o755))
	put(t, dir, c.foreign)
	put(t, dir, c.alsoBefore)
	return dir
}

// each calls f with a folder for each change at which the write may fail.
func (c crash) each(t *testing.T, killed bool, f func(t *testing.T, dir string)) {
	for n := 1; ; n++ {
		dir := c.prepare(t)
		if !writeFailing(t, dir, treeOf(c.to), c.o, failing(n, killed)) {
			if n < 5 {
				t.Errorf("only %d changes: the hook is not in the way of all", n)
			}
			return
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c.checkHalf(t, dir)
			f(t, dir)
		})
	}
}

// checkHalf checks the folder after a failed write. Every file must be complete, and old or new.
// The files of an assignment must be all old or all new.
func (c crash) checkHalf(t *testing.T, dir string) {
	t.Helper()
	got := read(t, dir)
	for p, data := range got {
		if strings.HasPrefix(p, ownFolder) || strings.HasSuffix(p, "/") {
			continue
		}
		known := false
		for _, set := range []files{c.from, c.to, c.foreign, c.alsoBefore} {
			was, ok := set[p]
			known = known || ok && was == data
		}
		if !known {
			t.Errorf("%s is %q", p, data)
		}
	}
	for p := range c.foreign {
		if got[p] != c.foreign[p] {
			t.Errorf("%s is lost", p)
		}
	}
	before := files{}
	maps.Copy(before, c.from)
	maps.Copy(before, c.alsoBefore)
	old, is, next := c.assignments(before), c.assignments(got), c.assignments(c.to)
	for _, all := range []map[string]files{old, is, next} {
		for folder := range all {
			if is := is[folder]; !maps.Equal(is, old[folder]) && !maps.Equal(is, next[folder]) {
				t.Errorf("%s has %v, neither all of %v nor all of %v", folder, is, old[folder], next[folder])
			}
		}
	}
}

// assignments returns the files of the assignments, by folder.
func (c crash) assignments(all files) map[string]files {
	folders := map[string]files{}
	for p, data := range all {
		_, foreign := c.foreign[p]
		if parts := strings.SplitN(p, "/", 3); len(parts) == 3 && !foreign && !tree.IsShard(tree.PartOf(p)) && parts[0] != ownFolder && !strings.HasSuffix(p, "/") {
			dir := parts[0] + "/" + parts[1]
			if folders[dir] == nil {
				folders[dir] = files{}
			}
			folders[dir][p] = data
		}
	}
	return folders
}

func (c crash) with(content files) files {
	want := files{}
	maps.Copy(want, content)
	maps.Copy(want, c.foreign)
	return want
}

// clean checks that no temporary file and no journal is left.
func clean(t *testing.T, dir string) {
	t.Helper()
	for _, p := range regularFiles(t, dir) {
		if strings.Contains(p, ".tmp") || strings.HasSuffix(p, "journal.json") {
			t.Errorf("%s is left", p)
		}
	}
}

// After a kill at any change, the next write finishes the work, needs no --adopt,
// and leaves nothing behind.
func TestKilledWriteIsFinished(t *testing.T) {
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, killed := range []bool{true, false} {
				c.each(t, killed, func(t *testing.T, dir string) {
					write(t, dir, treeOf(c.to), c.o)
					equal(t, "finished", read(t, dir), c.with(c.to))
					clean(t, dir)
					if got := record(t, dir).Tree; len(c.foreign) == 0 && got != writeTree(t, dir) {
						t.Errorf("the record's tree is %s", got)
					}
					if c := write(t, dir, treeOf(c.to), c.o); !c.Empty() {
						t.Errorf("written again: %+v", c)
					}
				})
			}
		})
	}
}

// The next write may be of another tree, and may be killed as well.
func TestKilledWriteIsReplaced(t *testing.T) {
	for _, c := range crashes {
		if c.alsoBefore != nil {
			continue // after one use of --adopt, there is no way back
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			third := changed(files{"large/db/a.yaml": "a3", "large/app/a.yaml": "a3", "small/README.md": "", "third/app/x": "x"})
			second := 0
			c.each(t, true, func(t *testing.T, dir string) {
				second = (second + 7) % 40
				writeFailing(t, dir, treeOf(third), c.o, failing(1+second, true))
				write(t, dir, treeOf(c.from), c.o)
				equal(t, "undone", read(t, dir), c.with(c.from))
				clean(t, dir)
			})
		})
	}
}

// An error before the first file is in place changes nothing. A full disk is such
// an error.
func TestFullDiskChangesNothing(t *testing.T) {
	c := crashes[2]
	dir := c.prepare(t)
	before := read(t, dir)
	failed := false
	writeFailing(t, dir, treeOf(c.to), c.o, func(op, path string) error {
		if op == "write" && strings.HasPrefix(path, stagingFolder+"/new/") && !failed {
			failed = true
			return errInjected
		}
		return nil
	})
	if !failed {
		t.Fatal("nothing failed")
	}
	equal(t, "folder", read(t, dir), before)
	clean(t, dir)
}

// A half written folder can be kept: it stays, and the record describes its actual content.
func TestKilledWriteIsKept(t *testing.T) {
	from := files{"large/app/a.yaml": "a1", "large/app/b.sh": "+x b1", "large/app/d.yaml": "d1", "large/app/e.sh": "e1"}
	c := crash{from: from, to: files{"large/app/a.yaml": "a2", "large/app/b.sh": "b1", "large/app/c.sh": "+x c2", "large/app/e.sh": "+x e1"}, o: dev}
	c.each(t, true, func(t *testing.T, dir string) {
		half := read(t, dir)
		write(t, dir, keeping(&plainTree{}, "large/app"), dev)
		equal(t, "kept", read(t, dir), half)
		clean(t, dir)
		if got, want := record(t, dir).Tree, writeTree(t, dir); got != want {
			t.Errorf("the record's tree is %s, git says %s", got, want)
		}
		write(t, dir, treeOf(from), dev)
		equal(t, "corrected", read(t, dir), from)
	})
}

// If one killed write removed a file, the record shows that after a second killed write.
func TestWriteKilledTwiceIsKept(t *testing.T) {
	from := files{"large/app/a.yaml": "a1", "large/app/b.sh": "b1"}
	c := crash{from: from, to: files{"large/app/a.yaml": "a2"}, o: dev}
	c.each(t, true, func(t *testing.T, dir string) {
		writeFailing(t, dir, treeOf(files{"large/app/a.yaml": "a3"}), dev, killedAt("rename", "large/app/a.yaml"))
		half := read(t, dir)
		write(t, dir, keeping(&plainTree{}, "large/app"), dev)
		equal(t, "kept", read(t, dir), half)
	})
}

// killedAt returns a step that acts like a kill of the process at a change.
func killedAt(op, p string) func(op, path string) error {
	killed := false
	return func(nextOp, next string) error {
		killed = killed || nextOp == op && next == p
		if killed {
			return errInjected
		}
		return nil
	}
}

// A write that does not change the record still has a journal.
func TestKilledRepairLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	readme := filepath.Join(dir, "large/README.md")
	must(t, os.WriteFile(readme, []byte("by hand"), 0o644))
	if !writeFailing(t, dir, treeOf(small), dev, killedAt("rename", "large/README.md")) {
		t.Fatal("nothing failed")
	}
	must(t, os.WriteFile(readme, []byte(small["large/README.md"]), 0o644))
	write(t, dir, treeOf(small), dev)
	equal(t, "folder", read(t, dir), small)
	clean(t, dir)
}

// Once the record is written, the journal has no effect, even if it could not be removed: a new
// file at the path of a removed one is foreign.
func TestFinishedJournalOwnsNothing(t *testing.T) {
	next := treeOf(changed(files{"large/app/b.sh": ""}))
	for _, c := range []struct {
		name string
		// first, if not nil, is a write that is killed before its record.
		first *tree.Options
	}{
		{"one write", nil},
		{"the second finishes the first", &tree.Options{Platform: dev.Platform, Environment: dev.Environment}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, treeOf(small), dev)
			if c.first != nil && !writeFailing(t, dir, next, *c.first, killedAt("rename", recordPath)) {
				t.Fatal("nothing failed")
			}
			recorded := false
			killed := writeFailing(t, dir, next, dev, func(op, path string) error {
				recorded = recorded || op == "rename" && path == recordPath
				if recorded && op == "remove" && path == journalPath {
					return errInjected
				}
				return nil
			})
			if !killed {
				t.Fatal("nothing failed")
			}
			put(t, dir, files{"large/app/b.sh": "mine"})
			write(t, dir, next, dev)
			equal(t, "folder", read(t, dir), changed(files{"large/app/b.sh": "mine"}))
			clean(t, dir)
		})
	}
}
