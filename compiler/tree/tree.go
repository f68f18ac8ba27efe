// Package tree is the output of a build for one environment: which files there
// are, what built them, and how they get into a folder or a branch.
//
// A Tree is what an environment should look like; a Record is what it does look
// like, with git's own ids, and says which of a folder's files are kalypso's. A
// Dir makes a folder look like a tree. It touches only what differs, removes
// only what the folder's record says kalypso wrote, and can be killed at any
// moment: the next write finishes what the killed one left. A Branch of a git
// Repository gets trees by the same rules, in one commit and without a work tree.
//
// Trees may be large. A tree and a record go cluster type by cluster type, several
// at once, and none is made or read that is known by its digest to be what it
// was; the bytes of files are asked for when they are written. An index, which is
// no part of the tree, tells which files have to be read to be compared.
//
// All paths are relative to the environment's folder, with slashes.
//
// The package is larger than others, since the writers of folders and of branches share
// their rules: records, ownership, comparison and plans, of which nothing is for others.
package tree

import (
	"context"
	"encoding/hex"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/git"
)

// Tree is the desired content of one environment.
type Tree struct {
	ClusterTypes []ClusterType // sorted by name
}

// ClusterType is the desired content of a cluster type's folder.
type ClusterType struct {
	Name string
	// Digest identifies the folder's content and all of its record; ""
	// where something is kept or nothing is known. Where the previous record has the
	// same digest, the folder is what the record describes, and Content is not
	// called unless something in the folder is not as recorded.
	Digest model.Digest
	// Outside says that the cluster type is no part of this build, as with a
	// shard: everything of it stays as it is and as the previous record describes
	// it. If the record does not list it, it is left out.
	Outside bool
	// Content returns the folder's content. It may be called by several goroutines
	// for different cluster types, and more than once. It is not called if Outside.
	Content func(context.Context) (*Content, error)
}

// Content is what is in a cluster type's folder.
type Content struct {
	// Files are those at the cluster type's root, by path in it, sorted; none in a folder of
	// entries.
	Files []File
	// Kept is the reason why Files are not known, and those of the previous
	// record stay as they are; "" where Files are known.
	Kept    string
	Folders []Folder // sorted by deployment target
	// Make returns the bytes of the Files of folders, which are given by their numbers in
	// Folders or in Entries, or Root: with the same paths in the same order. It is called only
	// for what is written and not kept, by several goroutines. Files that do not have the ids and modes of
	// Files are an error.
	Make func(ctx context.Context, folders []int) ([][]backends.File, error)
	// Clusters are the names of those that pull the folder, sorted, where they are known.
	Clusters []string
	// Facts are those of the clusters that are in the files, as ClusterTypeRecord has them.
	Facts []ClusterFacts
	// Entries are those of clusters, sorted, in a folder of entries. Root has the files
	// of all entries that are not kept, each in a folder with the name of its cluster.
	Entries []Entry
	// Denied are the pairs that policies take away, sorted by deployment target.
	Denied []Denied
}

// Root stands for a cluster type's own files among the numbers of its folders.
const Root = -1

// Folder is the desired content of an assignment's folder.
type Folder struct {
	// Info describes the folder; its DeploymentTarget is the folder's name. Of a
	// kept folder only that is used: the rest is in the previous record.
	Info backends.Folder
	// Files by path in the folder, sorted; nil in a kept folder. Tree is their id; "" where
	// it is not known.
	Files []File
	Tree  ID
	// Values is the digest of the composed configuration; "" in a kept folder.
	Values model.Digest
	// Selection is what selected the assignment; zero in a kept folder.
	Selection Selection
	// Kept says that the folder stays as the previous record describes it, which
	// must list it. Only its Reason is used: the record knows the rest.
	Kept *Kept
}

// File is a file by git's id of its content.
type File struct {
	Path       string
	ID         ID
	Size       int64 // in bytes
	Executable bool
}

// FileOf returns a file by its content's id.
func FileOf(f backends.File) File {
	return File{Path: f.Path, ID: BlobID(f.Data), Size: int64(len(f.Data)), Executable: f.Executable}
}

// Blob returns the file's entry in a tree.
func (f File) Blob() Blob { return Blob{f.ID, f.Executable} }

// Kept says why an assignment's folder is that of an earlier build, and which
// build that was.
type Kept struct {
	Reason   string   `json:"reason"`
	Compiler Compiler `json:"compiler"`
	Source   Source   `json:"source"`
}

// Compiler is what compiled a tree.
type Compiler struct {
	Version string `json:"version"`
	CUE     string `json:"cue"`
	Schema  string `json:"schema"`
}

// Source is what a tree was compiled from: the base, and the environment's own
// files.
type Source struct {
	Base        Revision `json:"base"`
	Environment Revision `json:"environment"`
}

// Revision is a state of the platform's files: the id of a commit or, where they were
// read from a folder, a digest of them, which begins with sha256:.
type Revision string

// OCI is where a tree is kept in an OCI registry.
type OCI struct {
	Repository string `json:"repository"` // oci://HOST[:PORT]/PATH
	Tag        string `json:"tag"`
	Path       string `json:"path"` // of the tree in the artifact
}

// Git is where a tree is kept in a git repository.
type Git struct {
	Repository string `json:"repository"` // its URL
	Branch     string `json:"branch"`
	Path       string `json:"path"` // of the tree in the branch; "." for its root
}

// Options say whose tree is written, and how.
type Options struct {
	Platform    string // the platform's CUE module path
	Environment string
	Formerly    []string // names that the environment had before: a tree of it belongs to it
	Compiler    Compiler
	Source      Source
	OCI         *OCI // nil where the tree is kept elsewhere
	Git         *Git // likewise
	// Ring is the part of the environment that is built, and Rings are all parts that
	// the record is to have; "" and none where the environment is one part.
	Ring  string
	Rings []Ring // sorted by name
	Hold  *Hold  // nil for none
	Named *Named // nil for none
	Clock string // as Record.Clock
	// Adopt lets kalypso take over files that it did not write, and a folder
	// whose record is broken.
	Adopt bool
	// Files are written to a branch beside the tree where anything of that changes, by
	// path in the environment's folder. The record does not list them.
	Files map[string][]byte
	// Verify reads every file, whatever the index has for it.
	Verify bool
}

// RevisionOf returns a commit as a revision; "" for the zero Hash.
func RevisionOf(commit git.Hash) Revision {
	if commit.IsZero() {
		return ""
	}
	return Revision(commit.String())
}

// IsCommit reports whether the revision is the full id of a commit.
func (r Revision) IsCommit() bool {
	if len(r) != 40 {
		return false
	}
	_, err := hex.DecodeString(string(r))
	return err == nil
}

// Hash returns the commit; the zero Hash for a revision that is none.
func (r Revision) Hash() git.Hash {
	var h git.Hash
	if r.IsCommit() {
		hex.Decode(h[:], []byte(r)) //nolint:errcheck // IsCommit has looked
	}
	return h
}

// Short returns the revision for messages: the beginning of the id of a commit.
func (r Revision) Short() string {
	if h := r.Hash(); !h.IsZero() {
		return git.Short(h)
	}
	return string(r)
}

// Describe returns the source for messages: its base and, where it is another commit,
// that of the environment's own files.
func (s Source) Describe() string {
	if s.Environment == "" || s.Environment == s.Base {
		return s.Base.Short()
	}
	return s.Base.Short() + " with own files of " + s.Environment.Short()
}

// Files returns all files of a tree with their bytes, by cluster type and folder;
// those of kept folders, which only the previous output has, are not among them.
// It makes everything, so it is for trees that fit into memory.
func (t *Tree) Files(ctx context.Context) ([]backends.File, error) {
	var out []backends.File
	for _, ct := range t.ClusterTypes {
		if ct.Outside {
			continue
		}
		content, err := ct.Content(ctx)
		if err != nil {
			return nil, err
		}
		var folders []int
		var dirs []string
		if len(content.root()) > 0 {
			folders, dirs = append(folders, Root), append(dirs, ct.Name+"/")
		}
		for i, f := range content.Folders {
			if f.Kept == nil {
				folders, dirs = append(folders, i), append(dirs, ct.Name+"/"+f.Info.DeploymentTarget+"/")
			}
		}
		if len(folders) == 0 {
			continue
		}
		made, err := content.Make(ctx, folders)
		if err != nil {
			return nil, err
		}
		for n, dir := range dirs {
			for _, f := range made[n] {
				out = append(out, backends.File{Path: dir + f.Path, Data: f.Data, Executable: f.Executable})
			}
		}
	}
	return out, nil
}

// OfFiles returns the id of a tree of files.
func OfFiles(files []File) ID {
	return TreeID(blobsOf(files))
}

func blobsOf(files []File) map[string]Blob {
	blobs := make(map[string]Blob, len(files))
	for _, f := range files {
		blobs[f.Path] = f.Blob()
	}
	return blobs
}

// ContentOf returns the content of a cluster type without folders.
func ContentOf(files []backends.File) *Content {
	return &Content{Files: FilesOf(files), Make: func(context.Context, []int) ([][]backends.File, error) {
		return [][]backends.File{files}, nil
	}}
}

// FilesOf returns files by the ids of their content.
func FilesOf(files []backends.File) []File {
	out := make([]File, len(files))
	for i, f := range files {
		out[i] = FileOf(f)
	}
	return out
}

// One returns the files of the folder with a number, with their bytes.
func (c *Content) One(ctx context.Context, folder int) ([]backends.File, error) {
	made, err := c.Make(ctx, []int{folder})
	if err != nil {
		return nil, err
	}
	return made[0], nil
}
