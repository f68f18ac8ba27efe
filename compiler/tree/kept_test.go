package tree_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

func clusterType(t *testing.T, r *tree.Record, name string) *tree.ClusterTypeRecord {
	t.Helper()
	c, err := r.ClusterType(name)
	must(t, err)
	return c
}

func assignment(t *testing.T, r *tree.Record, name, target string) *tree.AssignmentRecord {
	t.Helper()
	return clusterType(t, r, name).Assignment(target)
}

// filesOf returns the entries of all files that a record lists.
func filesOf(t *testing.T, r *tree.Record) map[string]tree.Blob {
	t.Helper()
	all := map[string]tree.Blob{}
	if r == nil {
		return all
	}
	for _, e := range r.ClusterTypes {
		maps.Copy(all, listed(clusterType(t, r, e.Name)))
	}
	return all
}

// listed returns the files that the record of a cluster type lists, by path in the environment.
func listed(c *tree.ClusterTypeRecord) map[string]tree.Blob {
	all := map[string]tree.Blob{}
	add := func(dir string, files map[string]tree.Blob) {
		for p, b := range files {
			all[dir+"/"+p] = b
		}
	}
	add(c.Name, c.Files)
	for _, e := range c.Entries {
		add(c.Name+"/"+e.Cluster, e.Files)
	}
	for _, a := range c.Assignments {
		add(c.Name+"/"+a.DeploymentTarget, a.Files)
	}
	return all
}

// entryOf returns the entry of a cluster type in a record; nil if there is no entry.
func entryOf(r *tree.Record, name string) *tree.ClusterTypeEntry {
	for i := range r.ClusterTypes {
		if r.ClusterTypes[i].Name == name {
			return &r.ClusterTypes[i]
		}
	}
	return nil
}

// later returns the options of a later build.
func later(base tree.Revision) tree.Options {
	o := dev
	o.Source.Base, o.Compiler.Version = base, "v0.2.0"
	return o
}

// failed is small after large/app failed and after kalypso could not make small's index.
func failed() *plainTree {
	t := treeOf(changed(files{"large/app/a.yaml": "", "large/app/b.sh": "", "large/db/a.yaml": "a2", "small/README.md": ""}))
	clusterTypeOf(t, "small").Kept = "K3003"
	return keeping(t, "large/app")
}

func TestKeptFoldersStay(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	before := record(t, dir)
	// A change by hand stays as well.
	put(t, dir, files{"large/app/a.yaml": "by hand"})

	c := write(t, dir, failed(), later("b2"))
	equal(t, "folder", read(t, dir), changed(files{"large/app/a.yaml": "by hand", "large/db/a.yaml": "a2"}))
	if !slices.Equal(c.Assignments.Kept, []string{"dev/large/app"}) || !slices.Equal(c.Written, []string{"large/db/a.yaml"}) {
		t.Errorf("changes are %+v", c)
	}
	r := record(t, dir)
	a, was := assignment(t, r, "large", "app"), assignment(t, before, "large", "app")
	if want := (tree.Retention{Reason: "K2003", Compiler: dev.Compiler, Source: dev.Source}); a.Kept == nil || *a.Kept != want {
		t.Errorf("kept is %+v, want %+v", a.Kept, want)
	}
	if a.Workload != was.Workload || a.Values != was.Values || a.Tree != was.Tree || !maps.Equal(a.Files, was.Files) {
		t.Errorf("the record of the kept folder is %+v, was %+v", a, was)
	}
	if s := clusterType(t, r, "small"); s.Kept != "K3003" || len(s.Files) != 1 {
		t.Errorf("the record of the kept cluster type is %+v", s)
	}

	// If a folder is kept again, its original build stays recorded; the reason is new.
	again := failed()
	folderOf(clusterTypeOf(again, "large"), "app").Kept.Reason = "K2009"
	write(t, dir, again, later("b3"))
	if a := assignment(t, record(t, dir), "large", "app"); *a.Kept != (tree.Retention{Reason: "K2009", Compiler: dev.Compiler, Source: dev.Source}) {
		t.Errorf("kept again is %+v", a.Kept)
	}

	write(t, dir, treeOf(small), dev)
	equal(t, "corrected", read(t, dir), small)
	if a := assignment(t, record(t, dir), "large", "app"); a.Kept != nil {
		t.Errorf("corrected, and kept is %+v", a.Kept)
	}
}

func TestKeptFolderThatIsNotThere(t *testing.T) {
	for _, gone := range []string{"large/app", "large/app/b.sh", "small/README.md"} {
		dir := t.TempDir()
		write(t, dir, treeOf(small), dev)
		must(t, os.RemoveAll(filepath.Join(dir, gone)))
		before := read(t, dir)
		for _, o := range []tree.Options{dev, adopting(dev)} {
			_, report := tryWrite(t, dir, failed(), o)
			if len(report) == 0 || report[0].Code != diag.KeptMissing || report[0].Hint == "" {
				t.Errorf("without %s the diagnostics are %+v", gone, report)
			}
			equal(t, "without "+gone, read(t, dir), before)
		}
		// Its absence does not matter once the desired content is known.
		write(t, dir, treeOf(small), dev)
		equal(t, "with "+gone, read(t, dir), small)
	}
}

// A merge by hand may leave a record whose tree ids do not match its files.
func TestKeptFolderGetsItsTreeFromItsFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, treeOf(small), dev)
	p := filepath.Join(dir, recordPath)
	data, err := os.ReadFile(p)
	must(t, err)
	right := assignment(t, record(t, dir), "large", "app").Tree
	must(t, os.WriteFile(p, bytes.ReplaceAll(data, []byte(right), bytes.Repeat([]byte("0"), len(right))), 0o644))
	write(t, dir, failed(), dev)
	if got := assignment(t, record(t, dir), "large", "app").Tree; got != right {
		t.Errorf("the tree is %s, want %s", got, right)
	}
}

func TestNewClusterTypeWithoutIndexHasNoFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, &plainTree{ClusterTypes: []plainType{{Name: "large", Kept: "K3003", Folders: []plainFolder{{
		Info:  backends.Folder{DeploymentTarget: "app"},
		Files: []backends.File{{Path: "a", Data: []byte("a")}},
	}}}}}, dev)
	equal(t, "folder", read(t, dir), files{"large/app/a": "a"})
}
