package tree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// outside removes cluster types of a tree from the build, with their content.
func outside(desired *plainTree, names ...string) *plainTree {
	for _, name := range names {
		*clusterTypeOf(desired, name) = plainType{Name: name, Outside: true}
	}
	return desired
}

// A cluster type that is Outside stays unchanged, including changes by
// hand, and so does its record.
func TestOutsideStays(t *testing.T) {
	dir := indexed(t)
	must(t, os.Remove(filepath.Join(dir, "small/README.md")))
	put(t, dir, files{"small/app/deep/x.yaml": "by hand"})
	before := *entryOf(record(t, dir), "small")

	c := write(t, dir, outside(treeOf(files{"large/db/a.yaml": "a2"}), "small", "unknown"), later("b2"))
	equal(t, "folder", read(t, dir), files{"large/db/a.yaml": "a2", "small/app/deep/x.yaml": "by hand"})
	if want := []string{"dev/large/app"}; !slices.Equal(c.Assignments.Removed, want) || len(c.Removed) != 3 {
		t.Errorf("changes are %+v", c)
	}
	r := record(t, dir)
	after := *entryOf(r, "small")
	if after.Source == nil || *after.Source != dev.Source || after.Compiler == nil || *after.Compiler != dev.Compiler {
		t.Errorf("the folder stems from %+v, %+v, and was built from %+v", after.Compiler, after.Source, dev.Source)
	}
	if after.Source, after.Compiler = nil, nil; after != before || entryOf(r, "unknown") != nil {
		t.Errorf("the record says %+v, and said %+v", after, before)
	}
	// A write of the whole tree restores the changes.
	c = write(t, dir, treeOf(small), dev)
	equal(t, "restored", read(t, dir), small)
	if !slices.Contains(c.Written, "small/README.md") || !slices.Contains(c.Written, "small/app/deep/x.yaml") {
		t.Errorf("changes are %+v", c)
	}
	if after := entryOf(record(t, dir), "small"); after.Source != nil || after.Compiler != nil {
		t.Errorf("the folder stems from %+v, %+v, and is built anew", after.Compiler, after.Source)
	}
}

// A write requests neither the content nor the record of a cluster type that is Outside.
func TestOutsideIsNotRead(t *testing.T) {
	dir := indexed(t)
	file := filepath.Join(dir, tree.ClusterTypeRecordPath("small"))
	must(t, os.WriteFile(file, []byte("damaged"), 0o644))
	desired := outside(treeOf(changed(files{"large/app/a.yaml": "a2"})), "small").tree()
	for i := range desired.ClusterTypes {
		if desired.ClusterTypes[i].Outside {
			desired.ClusterTypes[i].Content = nil
		}
	}
	d, err := tree.Open(dir)
	must(t, err)
	defer func() { must(t, d.Close()) }()
	c, report, err := d.Write(context.Background(), desired, dev)
	must(t, err)
	if len(report) > 0 || !slices.Equal(c.Written, []string{"large/app/a.yaml"}) {
		t.Errorf("changes are %+v, %v", c, report)
	}
}

// After a killed write of the whole tree, a write of one part finishes its part, and corrects the
// record for the rest.
func TestOutsideAfterAKilledWrite(t *testing.T) {
	to := changed(files{"large/app/a.yaml": "a2", "small/app/deep/x.yaml": "x2", "small/app/new": "n", "small/README.md": "", "new/app/a": "a"})
	c := crash{from: small, to: to, o: dev}
	c.each(t, true, func(t *testing.T, dir string) {
		half := read(t, dir)
		listed := entryOf(record(t, dir), "new") != nil
		write(t, dir, outside(treeOf(changed(files{"small/README.md": "", "small/app/deep/x.yaml": ""})), "small", "new"), dev)
		got := read(t, dir)
		for p, data := range got {
			first, _, _ := strings.Cut(p, "/")
			switch {
			case first == "large" && data != small[p], first == "small" && data != half[p], first == "new" && !listed:
				t.Errorf("%s is %q", p, data)
			}
		}
		if is, want := record(t, dir).Tree, writeTree(t, dir); is != want {
			t.Errorf("the record's tree is %s, git says %s", is, want)
		}
		clean(t, dir)
		write(t, dir, treeOf(to), dev)
		equal(t, "finished", read(t, dir), to)
	})
}

// making returns the same files for any requested folders.
func making(made ...[]backends.File) func(context.Context, []int) ([][]backends.File, error) {
	return func(context.Context, []int) ([][]backends.File, error) { return made, nil }
}

// Content that is missing, or differs from the announced content, changes nothing.
func TestContentThatIsNotAsAnnounced(t *testing.T) {
	failed := errors.New("no content")
	for _, c := range []struct {
		name    string
		spoil   func(*tree.Content)
		content func() error // of the cluster type
		want    string
	}{
		{name: "other bytes", spoil: func(c *tree.Content) {
			c.Make = making([]backends.File{{Path: "a.yaml", Data: []byte("zz")}, {Path: "b.sh", Data: []byte("b2")}})
		}, want: "other content than was announced"},
		{name: "another mode", spoil: func(c *tree.Content) {
			c.Make = making([]backends.File{{Path: "a.yaml", Data: []byte("a2")}, {Path: "b.sh", Data: []byte("b2"), Executable: true}})
		}, want: "other content than was announced"},
		{name: "fewer files", spoil: func(c *tree.Content) {
			c.Make = making(nil)
		}, want: "other content than was announced"},
		{name: "fewer folders", spoil: func(c *tree.Content) {
			c.Make = making()
		}, want: "the content of 0 folders"},
		{name: "an error", spoil: func(c *tree.Content) {
			c.Make = func(context.Context, []int) ([][]backends.File, error) { return nil, failed }
		}, want: "no content"},
		{name: "no function", spoil: func(c *tree.Content) { c.Make = nil }, want: "no content"},
		{name: "no id", spoil: func(c *tree.Content) { c.Folders[0].Files[0].ID = "HEAD" }, want: "not a git id"},
		{name: "an error of the cluster type", content: func() error { return failed }, want: "no content"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := indexed(t)
			desired := treeOf(changed(files{"large/app/a.yaml": "a2", "large/app/b.sh": "b2", "small/README.md": "new"})).tree()
			made := desired.ClusterTypes[0].Content
			desired.ClusterTypes[0].Content = func(context.Context) (*tree.Content, error) {
				if c.content != nil {
					return nil, c.content()
				}
				content, err := made(context.Background())
				c.spoil(content)
				return content, err
			}
			d, err := tree.Open(dir)
			must(t, err)
			defer func() { must(t, d.Close()) }()
			if _, _, err := d.Write(context.Background(), desired, dev); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			equal(t, "folder", read(t, dir), small)
			clean(t, dir)
		})
	}
}

// It is an error if a cluster type returns different content at a second request.
func TestContentThatChanges(t *testing.T) {
	dir := indexed(t)
	d, err := tree.Open(dir)
	must(t, err)
	defer func() { must(t, d.Close()) }()
	d.Hook(tree.Hooks{Remake: true})
	desired := treeOf(changed(files{"large/app/a.yaml": "a2"})).tree()
	calls, first, other := 0, desired.ClusterTypes[0].Content, treeOf(changed(files{"large/app/a.yaml": "a3"})).tree().ClusterTypes[0].Content
	desired.ClusterTypes[0].Content = func(context.Context) (*tree.Content, error) {
		if calls++; calls > 1 {
			return other(context.Background())
		}
		return first(context.Background())
	}
	if _, _, err := d.Write(context.Background(), desired, dev); err == nil || !strings.Contains(err.Error(), "a moment ago") {
		t.Errorf("the error is %v", err)
	}
	equal(t, "folder", read(t, dir), small)
	clean(t, dir)
}
