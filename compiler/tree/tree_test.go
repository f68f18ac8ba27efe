package tree_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// The files that kalypso writes beside a tree, which people and other versions of it know.
const (
	ownFolder     = ".kalypso"
	recordPath    = tree.RecordPath
	journalPath   = ownFolder + "/journal.json"
	lockPath      = ownFolder + "/lock"
	indexPath     = ownFolder + "/index"
	stagingFolder = ownFolder + "/staging.tmp"
	recordsFolder = ownFolder + "/cluster-types"
	// aTempFile has a reserved name for files that are not in their places yet.
	aTempFile = ".kalypso-0123456789abcdef.tmp"

	apiVersion      = "kalypso.io/v1alpha1"
	recordKind      = "Provenance"
	clusterTypeKind = "ClusterTypeProvenance"
)

// emptyTree is the id of a tree without files.
var emptyTree = tree.TreeID(nil)

// files are the files of a folder by path. An executable file has "+x " before its
// content. A symbolic link has the content "-> target", and an empty folder has a
// path that ends in a slash.
type files map[string]string

// fileOf returns one file of files.
func fileOf(p, content string) backends.File {
	data, executable := strings.CutPrefix(content, "+x ")
	return backends.File{Path: p, Data: []byte(data), Executable: executable}
}

// blobs returns the entries of the files in their tree.
func (content files) blobs() map[string]tree.Blob {
	all := map[string]tree.Blob{}
	for p, data := range content {
		all[p] = tree.BlobOf(fileOf(p, data))
	}
	return all
}

// plainTree is a tree with all its content, from which the tests make trees.
type plainTree struct{ ClusterTypes []plainType }

type plainType struct {
	Name    string
	Files   []backends.File
	Kept    string
	Folders []plainFolder
	Outside bool
}

type plainFolder struct {
	Info   backends.Folder
	Files  []backends.File
	Values model.Digest
	Kept   *tree.Retention
}

// tree returns the tree, with digests for cluster types without kept parts.
func (p *plainTree) tree() *tree.Tree {
	t := &tree.Tree{}
	for _, ct := range p.ClusterTypes {
		t.ClusterTypes = append(t.ClusterTypes, tree.ClusterType{Name: ct.Name, Outside: ct.Outside, Digest: ct.digest(), Content: func(context.Context) (*tree.Content, error) { return ct.content(), nil }})
	}
	return t
}

func (ct plainType) digest() model.Digest {
	if ct.Kept != "" || slices.ContainsFunc(ct.Folders, func(f plainFolder) bool { return f.Kept != nil }) {
		return ""
	}
	data, err := json.Marshal(ct)
	if err != nil {
		return "not JSON" // as a folder's Shared
	}
	return model.DigestBytes(data)
}

func (ct plainType) content() *tree.Content {
	c := &tree.Content{Kept: ct.Kept, Entries: ct.entries(), Make: func(_ context.Context, folders []int) (made [][]backends.File, _ error) {
		for _, i := range folders {
			if i == tree.Root {
				made = append(made, ct.Files)
			} else {
				made = append(made, ct.Folders[i].Files)
			}
		}
		return made, nil
	}}
	if c.Entries == nil {
		c.Files = tree.FilesOf(ct.Files)
	}
	for _, f := range ct.Folders {
		folder := tree.Folder{Info: f.Info, Values: f.Values, Kept: f.Kept}
		for _, file := range f.Files {
			folder.Files = append(folder.Files, tree.FileOf(file))
		}
		c.Folders = append(c.Folders, folder)
	}
	return c
}

// entries returns the entries of a folder of entries, which all name the folder large.
func (ct plainType) entries() []tree.Entry {
	if !tree.IsShard(ct.Name) {
		return nil
	}
	out, made := []tree.Entry{}, []backends.File{}
	for _, f := range ct.Files {
		cluster, name, _ := strings.Cut(f.Path, "/")
		if n := len(out); n == 0 || out[n-1].Cluster != cluster {
			out = append(out, tree.Entry{Cluster: cluster, Folder: "large"})
			made = nil
		}
		f.Path = name
		made = append(made, f)
		out[len(out)-1].Files = tree.EntryOf(made)
	}
	return out
}

// treeOf returns the tree with the files. A file at <clusterType>/<name> is at the cluster type's
// root. A deeper file is in the assignment folder of its second element. A file at
// clusters/<shard>/<cluster>/<name> belongs to an entry.
func treeOf(content files) *plainTree {
	t := &plainTree{}
	for _, p := range slices.Sorted(maps.Keys(content)) {
		first, rest, _ := strings.Cut(p, "/")
		if part := tree.PartOf(p); tree.IsShard(part) {
			rest = strings.TrimPrefix(p, part+"/")
			ct := clusterTypeOf(t, part)
			ct.Files = append(ct.Files, fileOf(rest, content[p]))
			continue
		}
		ct := clusterTypeOf(t, first)
		second, name, deeper := strings.Cut(rest, "/")
		if !deeper {
			ct.Files = append(ct.Files, fileOf(rest, content[p]))
			continue
		}
		f := folderOf(ct, second)
		f.Files = append(f.Files, fileOf(name, content[p]))
	}
	return t
}

func clusterTypeOf(t *plainTree, name string) *plainType {
	i := slices.IndexFunc(t.ClusterTypes, func(c plainType) bool { return c.Name == name })
	if i < 0 {
		t.ClusterTypes = append(t.ClusterTypes, plainType{Name: name})
		slices.SortFunc(t.ClusterTypes, func(a, b plainType) int { return cmp.Compare(a.Name, b.Name) })
		return clusterTypeOf(t, name)
	}
	return &t.ClusterTypes[i]
}

func folderOf(c *plainType, name string) *plainFolder {
	i := slices.IndexFunc(c.Folders, func(f plainFolder) bool { return f.Info.DeploymentTarget == name })
	if i < 0 {
		c.Folders = append(c.Folders, plainFolder{
			Info:   backends.Folder{DeploymentTarget: name, Workload: "w", Backend: "flux", Shared: []byte(`{"a":"<b>"}`)},
			Values: model.DigestBytes([]byte(name)),
		})
		slices.SortFunc(c.Folders, func(a, b plainFolder) int { return cmp.Compare(a.Info.DeploymentTarget, b.Info.DeploymentTarget) })
		return folderOf(c, name)
	}
	return &c.Folders[i]
}

// keeping adds kept folders, named <clusterType>/<folder>.
func keeping(t *plainTree, folders ...string) *plainTree {
	for _, p := range folders {
		ct, name, _ := strings.Cut(p, "/")
		f := folderOf(clusterTypeOf(t, ct), name)
		f.Info = backends.Folder{DeploymentTarget: name}
		f.Values, f.Files, f.Kept = "", nil, &tree.Retention{Reason: "K2003"}
	}
	return t
}

var dev = tree.Options{
	Platform: "example.com/platform@v0", Environment: "dev",
	Compiler: tree.Compiler{Version: "v0.1.0", CUE: "v0.17.1", Schema: "v0"},
	Source:   tree.Source{Base: "b1", Environment: "e1"},
}

func adopting(o tree.Options) tree.Options {
	o.Adopt = true
	return o
}

// put makes files, links and folders.
func put(t *testing.T, dir string, content files) {
	t.Helper()
	for p, data := range content {
		p, isFolder := strings.CutSuffix(p, "/")
		p = filepath.Join(dir, p)
		target, isLink := strings.CutPrefix(data, "-> ")
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		switch {
		case isFolder:
			must(t, os.MkdirAll(p, 0o755))
		case isLink:
			must(t, os.Symlink(target, p))
		default:
			f := fileOf(p, data)
			must(t, os.WriteFile(p, f.Data, 0o644))
			mode := fs.FileMode(0o644)
			if f.Executable {
				mode = 0o755
			}
			must(t, os.Chmod(p, mode))
		}
	}
}

// read returns the whole content of a folder except .kalypso.
func read(t *testing.T, dir string) files {
	t.Helper()
	content := files{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		name = filepath.ToSlash(name)
		switch {
		case name == ownFolder:
			return fs.SkipDir
		case e.IsDir():
			entries, err := os.ReadDir(p)
			if len(entries) == 0 {
				content[name+"/"] = ""
			}
			return err
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			content[name] = "-> " + target
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && tree.IsExecutable(info, false) {
			data = append([]byte("+x "), data...)
		}
		content[name] = string(data)
		return err
	})
	must(t, err)
	return content
}

// write opens the folder and writes the tree, which must succeed.
func write(t *testing.T, dir string, desired *plainTree, o tree.Options) *tree.Changes {
	t.Helper()
	c, report := tryWrite(t, dir, desired, o)
	if len(report) > 0 {
		t.Fatalf("diagnostics: %v", report)
	}
	return c
}

func tryWrite(t *testing.T, dir string, desired *plainTree, o tree.Options) (*tree.Changes, []diag.Diagnostic) {
	t.Helper()
	d, err := tree.Open(dir)
	must(t, err)
	defer func() { must(t, d.Close()) }()
	would, _, err := d.Compare(context.Background(), desired.tree(), o)
	must(t, err)
	c, report, err := d.Write(context.Background(), desired.tree(), o)
	must(t, err)
	if c != nil && !sameChanges(would, c) {
		t.Errorf("Compare says %+v, Write %+v", would, c)
	}
	return c, report
}

func sameChanges(a, b *tree.Changes) bool {
	return a != nil && slices.Equal(a.Written, b.Written) && slices.Equal(a.Removed, b.Removed) &&
		a.Unchanged == b.Unchanged && a.Recorded == b.Recorded && a.Record.Tree == b.Record.Tree
}

func record(t *testing.T, dir string) *tree.Record {
	t.Helper()
	d, err := tree.Open(dir)
	must(t, err)
	defer func() { must(t, d.Close()) }()
	r, report, err := d.Record()
	must(t, err)
	filesOf(t, r) // while the folder is open
	if len(report) > 0 {
		t.Fatalf("diagnostics: %v", report)
	}
	return r
}

func equal(t *testing.T, what string, got, want files) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for _, p := range slices.Sorted(maps.Keys(got)) {
		if w, ok := want[p]; !ok {
			t.Errorf("%s: %s is there: %q", what, p, got[p])
		} else if w != got[p] {
			t.Errorf("%s: %s is %q, want %q", what, p, got[p], w)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[p]; !ok {
			t.Errorf("%s: %s is missing", what, p)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
