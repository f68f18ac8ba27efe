package tree

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// outcome is the new state of a cluster type's folder: its record, the files to write and the files
// to leave unchanged.
type outcome struct {
	record  *ClusterTypeRecord
	encoded []byte   // the record's file
	lines   [][2]int // the positions of the assignments in it
	entry   ClusterTypeEntry
	content *Content // nil if everything stays
	groups  []group  // all files to write
	kept    []string // paths in the environment, sorted
	staying []string // one file of each unchanged folder that was removed from groups
}

// group is a set of files of a cluster type that are made together: the files of an assignment's
// folder, or the files at the root.
type group struct {
	folder int    // its number in Content.Folders, or Root
	dir    string // in the environment
	files  []File // by path in dir
}

// outcomeOf takes the kept parts of a cluster type from its previous record, which may be nil;
// whole is the record of the environment. outcomeOf returns an error if the cluster type
// contradicts itself or the record, which is a mistake of the caller or of a backend. The rules for
// paths are in check.
func outcomeOf(ctx context.Context, ct *ClusterType, before *ClusterTypeRecord,
	whole *Record) (*outcome, error) {
	if ct.Outside {
		next := *before
		next.Name = ct.Name
		next.Assignments = slices.Clone(before.Assignments)
		out := &outcome{record: &next}
		for i := range next.Assignments {
			next.Assignments[i].Tree = TreeID(next.Assignments[i].Files)
		}
		for p := range before.each {
			out.kept = append(out.kept, p)
		}
		return out, out.finish("")
	}
	out, err := unfinished(ctx, ct, before, whole)
	if err != nil {
		return nil, err
	}
	if out.content.Entries != nil {
		out.add(Root, ct.Name, out.content.root())
	}
	return out, out.finish(ct.Digest)
}

// unfinished is outcomeOf without the encoded record and the files of entries.
func unfinished(ctx context.Context, ct *ClusterType, before *ClusterTypeRecord,
	whole *Record) (*outcome, error) {
	if ct.Content == nil {
		return nil, fmt.Errorf("cluster type %s has no content", ct.Name)
	}
	content, err := ct.Content(ctx)
	if err != nil {
		return nil, fmt.Errorf("the content of cluster type %s: %w", ct.Name, err)
	}
	out := &outcome{content: content, record: &ClusterTypeRecord{
		APIVersion: apiVersion, Kind: clusterTypeKind, Name: ct.Name, Kept: content.Kept,
		Clusters:    content.Clusters,
		Facts:       content.Facts,
		Denied:      content.Denied,
		Assignments: make([]AssignmentRecord, 0, len(content.Folders)),
	}}
	switch {
	case content.Entries != nil:
		if err := out.entries(ct.Name, content, before); err != nil {
			return nil, err
		}
	case content.Kept == "":
		out.record.Files = out.add(Root, ct.Name, content.Files)
	case before != nil:
		out.record.Files = out.keep(ct.Name, before.Files)
	default:
		out.record.Files = map[string]Blob{}
	}
	for i := range content.Folders {
		f := &content.Folders[i]
		a, err := out.assignment(ct.Name, i, f, before.Assignment(f.Info.DeploymentTarget), whole)
		if err != nil {
			return nil, err
		}
		out.record.Assignments = append(out.record.Assignments, a)
	}
	return out, nil
}

// entries records the entries of clusters, including the kept ones.
func (out *outcome) entries(shard string, content *Content, before *ClusterTypeRecord) error {
	out.record.Entries = make([]EntryRecord, 0, len(content.Entries))
	for i := range content.Entries {
		e := &content.Entries[i]
		if !e.Kept {
			out.record.Entries = append(out.record.Entries, EntryRecord{e.Cluster, e.Folder, e.Files.blobs})
			continue
		}
		was := before.entryOf(e.Cluster)
		if was == nil {
			return fmt.Errorf("keeping the entry of cluster %s: the previous record does not list it",
				e.Cluster)
		}
		out.record.Entries = append(out.record.Entries,
			EntryRecord{e.Cluster, e.Folder, out.keep(shard+"/"+e.Cluster, was.Files)})
	}
	out.record.Files = map[string]Blob{}
	return nil
}

// Entry returns the entry of the cluster type in the record of an environment, instead of its
// previous entry. Both records may be nil, for a new cluster type.
func (ct *ClusterType) Entry(ctx context.Context, before *ClusterTypeRecord,
	whole *Record) (ClusterTypeEntry, error) {
	out, err := outcomeOf(ctx, ct, before, whole)
	if err != nil {
		return ClusterTypeEntry{}, err
	}
	return out.entry, out.check()
}

// Record returns the record that the tree would have in an empty folder, without ids of trees:
// entries name the cluster types with their digests. assignments returns the number of a cluster
// type's assignments. Record makes the content of a cluster type when a caller reads its record. A
// cluster type that is Outside has no known content.
func (t *Tree) Record(ctx context.Context, o Options,
	assignments func(clusterType string) int) *Record {
	r := &Record{APIVersion: apiVersion, Kind: recordKind, Platform: o.Platform,
		Environment: o.Environment, Compiler: o.Compiler, Source: o.Source, OCI: o.OCI, Git: o.Git}
	types := map[string]*ClusterType{}
	for i := range t.ClusterTypes {
		ct := &t.ClusterTypes[i]
		types[ct.Name] = ct
		r.ClusterTypes = append(r.ClusterTypes,
			ClusterTypeEntry{Name: ct.Name, Digest: ct.Digest, Assignments: assignments(ct.Name)})
	}
	r.load = func(name string) (*ClusterTypeRecord, error) {
		if types[name].Outside {
			return &ClusterTypeRecord{Name: name}, nil
		}
		out, err := unfinished(ctx, types[name], nil, nil)
		if err != nil {
			return nil, err
		}
		return out.record.listed(), out.record.checkNames()
	}
	return r
}

// check returns an error if a path cannot be written.
func (out *outcome) check() error {
	paths := slices.Concat(out.kept, out.staying)
	for _, g := range out.groups {
		for _, f := range g.files {
			// Not path.Join, which would resolve the ".." that CheckPaths must find.
			paths = append(paths, g.dir+"/"+f.Path)
		}
	}
	return CheckPaths(paths)
}

// finish checks the outcome's names, and encodes its record.
func (out *outcome) finish(digest model.Digest) error {
	if err := out.record.checkNames(); err != nil {
		return err
	}
	slices.Sort(out.kept)
	var err error
	if out.encoded, out.lines,
		err = out.record.encode((*recordBuffers.Get().(*[]byte))[:0]); err != nil {
		return err
	}
	out.entry = out.record.entry(digest, out.encoded)
	return nil
}

// recordBuffers provides memory for encoded records: they are large, and
// many are written one by one.
var recordBuffers = sync.Pool{New: func() any { return new([]byte) }}

// release returns the memory of the encoded record for reuse.
func (out *outcome) release() {
	b := out.encoded
	out.encoded, out.lines = nil, nil
	recordBuffers.Put(&b)
}

// assignment records a folder, and adds its files to the files to write or to keep.
func (out *outcome) assignment(clusterType string, number int, f *Folder, before *AssignmentRecord,
	whole *Record) (AssignmentRecord, error) {
	dir := clusterType + "/" + f.Info.DeploymentTarget
	if f.Kept == nil {
		for _, f := range f.Files {
			if !f.ID.valid() {
				return AssignmentRecord{}, fmt.Errorf("file %s/%s: %q is not a git id", dir, f.Path, f.ID)
			}
		}
		a := AssignmentRecord{Folder: f.Info, Tree: f.Tree, Values: f.Values, Selection: f.Selection}
		if len(f.Files) > 0 {
			out.groups = append(out.groups, group{number, dir, f.Files})
			a.made = f.Files
			if byPath := func(a,
				b File) int {
				return strings.Compare(a.Path, b.Path)
			}; !slices.IsSortedFunc(a.made, byPath) {
				a.made = slices.SortedFunc(slices.Values(a.made), byPath)
			}
		}
		if a.Tree == "" {
			a.Tree = OfFiles(f.Files)
		}
		return a, nil
	}
	if before == nil {
		return AssignmentRecord{},
			fmt.Errorf("keeping folder %s: the previous record does not list it", dir)
	}
	a := *before
	a.Files = out.keep(dir, before.Files)
	a.Tree = TreeID(a.Files)
	kept := Retention{Reason: f.Kept.Reason}
	kept.Compiler, kept.Source = whole.origin(clusterType)
	if before.Kept != nil {
		kept.Compiler, kept.Source = before.Kept.Compiler, before.Kept.Source
	}
	a.Kept = &kept
	return a, nil
}

// add adds files of a folder to the files to write, and returns the entries of its tree for them,
// by path in the folder.
func (out *outcome) add(number int, dir string, files []File) map[string]Blob {
	if len(files) > 0 {
		out.groups = append(out.groups, group{number, dir, files})
	}
	return blobsOf(files)
}

// keep adds files below a folder to the files to leave unchanged.
func (out *outcome) keep(dir string, files map[string]Blob) map[string]Blob {
	for p := range files {
		out.kept = append(out.kept, dir+"/"+p)
	}
	return files
}

// atOnce is the number of folders whose files are made at a time.
const atOnce = 128

// read calls a function with missing files and their content, group by group. It returns an error
// if the content differs from the announced content.
func (out *outcome) read(ctx context.Context, all []missingFile,
	each func(missingFile, []backends.File) error) error {
	for part := range slices.Chunk(all, atOnce) {
		if out.content.Make == nil {
			return fmt.Errorf("the files of cluster type %s have no content", out.record.Name)
		}
		folders := make([]int, len(part))
		for i, m := range part {
			folders[i] = m.folder
		}
		made, err := out.content.Make(ctx, folders)
		if err != nil {
			return fmt.Errorf("the content of cluster type %s: %w", out.record.Name, err)
		}
		if len(made) != len(folders) {
			return fmt.Errorf("cluster type %s gives the content of %d folders, and not of %d",
				out.record.Name, len(made), len(folders))
		}
		for i, m := range part {
			wanted := make([]backends.File, 0, len(m.names))
			for at, f := range out.files(m) {
				if at >= len(made[i]) || FileOf(made[i][at]) != f {
					return fmt.Errorf("file %s/%s has other content than was announced", m.dir, f.Path)
				}
				wanted = append(wanted, made[i][at])
			}
			if err := each(m, wanted); err != nil {
				return err
			}
		}
	}
	return nil
}

// files yields the missing files of a group, with their numbers in it.
func (out *outcome) files(m missingFile) iter.Seq2[int, File] {
	return func(yield func(int, File) bool) {
		names := m.names
		i, _ := slices.BinarySearchFunc(out.groups, m.folder,
			func(g group, folder int) int { return g.folder - folder })
		for at, f := range out.groups[i].files {
			if len(names) > 0 && f.Path == names[0] {
				if names = names[1:]; !yield(at, f) {
					return
				}
			}
		}
	}
}
