// Package tree is the output of a build for one environment: its files, their origin, and the
// writers of a folder or a branch.
//
// A Tree is the desired content of an environment, and a Record is its actual content. A record has
// git's own ids, and lists the files of a folder that belong to kalypso. A Dir makes a folder look
// like a tree. It changes only the files that differ, and removes only files that kalypso wrote
// according to the folder's record. It can be killed at any moment: the next write finishes the
// work of the killed one. A Branch of a git Repository gets trees by the same rules, in one commit
// and without a work tree.
//
// Trees may be large. Cluster types are read and written separately, several at once. If the digest
// shows that a cluster type has not changed, the package neither makes nor reads it. It requests
// the bytes of files only to write them. An index beside the tree remembers which files are
// unchanged, so that a comparison does not read them.
//
// All paths are relative to the environment's folder, with slashes.
//
// The package is larger than others, because the writers of folders and of branches share their
// rules: records, ownership, comparison and plans. Other packages use none of these.
//
// In the hello-world example, the [Tree] of dev has the [ClusterType] drone with one [Folder], for
// the deployment target hello-world-functional-test. The Files of the folder are
// kustomization.yaml, namespace.yaml, platform-config.yaml and reconciler.yaml. [Dir.Write] into an
// empty folder writes drone/hello-world-functional-test/platform-config.yaml, among others. It
// records the folder in .kalypso/cluster-types/drone.json. The returned [Changes] have
// dev/drone/hello-world-functional-test in Assignments.Added.
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
	// Digest identifies the folder's content and all of its record. It is "" if
	// something is kept or nothing is known. If the previous record has the same digest,
	// the folder still matches that record. Content is then called only if the folder
	// differs from the record.
	Digest model.Digest
	// Outside means that this build does not include the cluster type, as with a shard. Its
	// folder and its record stay unchanged. If the previous record does not list the cluster
	// type, the tree omits it.
	Outside bool
	// Content returns the folder's content. It may be called by several goroutines
	// for different cluster types, and more than once. It is not called if Outside.
	Content func(context.Context) (*Content, error)
}

// Content is the content of a cluster type's folder.
type Content struct {
	// Files are the files at the cluster type's root, by path in it, sorted. A
	// folder of entries has none.
	Files []File
	// Kept is the reason why Files are not known, and the files of the previous record stay
	// unchanged; "" if Files are known.
	Kept    string
	Folders []Folder // sorted by deployment target
	// Make returns the bytes of the Files of folders, with the same paths in the same order. A
	// folder is a number in Folders or in Entries, or Root. Make is called by several goroutines,
	// and only for folders that are written and not kept. It is an error if a file does not have
	// the id and the mode that Files announce.
	Make func(ctx context.Context, folders []int) ([][]backends.File, error)
	// Clusters are the names of the clusters that pull the folder, sorted, if they are known.
	Clusters []string
	// Facts are the facts of clusters that the files contain, as in ClusterTypeRecord.
	Facts []ClusterFacts
	// Entries are the entries of clusters, sorted, in a folder of entries. Root has the files of
	// all entries that are not kept, each in a folder with the name of its cluster.
	Entries []Entry
	// Denied are the pairs that policies remove, sorted by deployment target.
	Denied []DeniedTarget
}

// Root is the number of a cluster type's own files, beside the numbers of its folders.
const Root = -1

// Folder is the desired content of an assignment's folder.
type Folder struct {
	// Info describes the folder; its DeploymentTarget is the folder's name. A kept folder has only
	// this name: the rest is in the previous record.
	Info backends.Folder
	// Files are sorted by path in the folder; nil in a kept folder. Tree is their id, or
	// "" if the id is not known.
	Files []File
	Tree  ID
	// Values is the digest of the composed configuration; "" in a kept folder.
	Values model.Digest
	// Selection records which policies selected the assignment; zero in a kept folder.
	Selection Selection
	// Kept means that the folder stays as the previous record describes it; that record must list
	// the folder. Only its Reason is used: the record has the rest.
	Kept *Retention
}

// File is a file with git's id of its content, and without the content.
type File struct {
	Path       string
	ID         ID
	Size       int64 // in bytes
	Executable bool
}

// FileOf returns the file with the id of its content.
func FileOf(f backends.File) File {
	return File{Path: f.Path, ID: BlobID(f.Data), Size: int64(len(f.Data)), Executable: f.Executable}
}

// Blob returns the file's entry in a tree.
func (f File) Blob() Blob { return Blob{f.ID, f.Executable} }

// Retention says why an assignment keeps the folder of an earlier build, and identifies that build.
type Retention struct {
	Reason   string   `json:"reason"`
	Compiler Compiler `json:"compiler"`
	Source   Source   `json:"source"`
}

// Compiler identifies the program that compiled a tree.
type Compiler struct {
	Version string `json:"version"`
	CUE     string `json:"cue"`
	Schema  string `json:"schema"`
}

// Source identifies the input of a tree: the base commit, and the commit of the
// environment's own files.
type Source struct {
	Base        Revision `json:"base"`
	Environment Revision `json:"environment"`
}

// Revision is a state of the platform's files: the id of a commit. For files from a folder it is
// their digest, which begins with sha256:.
type Revision string

// OCI is the location of a tree in an OCI registry.
type OCI struct {
	Repository string `json:"repository"` // oci://HOST[:PORT]/PATH
	Tag        string `json:"tag"`
	Path       string `json:"path"` // of the tree in the artifact
}

// Git is the location of a tree in a git repository.
type Git struct {
	Repository string `json:"repository"` // its URL
	Branch     string `json:"branch"`
	Path       string `json:"path"` // of the tree in the branch; "." for its root
}

// Options identify the owner of the tree, and control the write.
type Options struct {
	Platform    string // the platform's CUE module path
	Environment string
	Formerly    []string // earlier names of the environment, whose trees also belong to it
	Compiler    Compiler
	Source      Source
	OCI         *OCI // nil if the tree is kept elsewhere
	Git         *Git // likewise
	// Ring is the part of the environment that is built; "" if the environment has no rings. Rings
	// are all parts that the record must list, or empty.
	Ring  string
	Rings []Ring          // sorted by name
	Hold  *Hold           // nil if there is no hold
	Named *NamedPromotion // nil if a policy chose the commit
	Clock string          // as Record.Clock
	// Adopt lets kalypso take over files that it did not write, and a folder
	// whose record is broken.
	Adopt bool
	// Files are written to a branch beside the tree if any of them changes, by path in the
	// environment's folder. The record does not list them.
	Files map[string][]byte
	// Verify reads every file, even if the index knows it.
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

// Hash returns the commit; the zero Hash if the revision is not a commit.
func (r Revision) Hash() git.Hash {
	var h git.Hash
	if r.IsCommit() {
		hex.Decode(h[:], []byte(r)) //nolint:errcheck // IsCommit has looked
	}
	return h
}

// Short returns the revision for messages: a commit by the beginning of its id.
func (r Revision) Short() string {
	if h := r.Hash(); !h.IsZero() {
		return git.Short(h)
	}
	return string(r)
}

// Describe returns the source for messages: its base and, if it is a different commit, the commit
// of the environment's own files.
func (s Source) Describe() string {
	if s.Environment == "" || s.Environment == s.Base {
		return s.Base.Short()
	}
	return s.Base.Short() + " with own files of " + s.Environment.Short()
}

// Files returns all files of a tree with their bytes, by cluster type and folder. It omits
// kept folders, whose bytes exist only in the previous output. It makes every file, so the
// tree must fit into memory.
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
func OfFiles(files []File) ID { return TreeID(blobsOf(files)) }

// blobsOf returns the entries of files in their tree, by path.
func blobsOf(files []File) map[string]Blob {
	blobs := make(map[string]Blob, len(files))
	for _, f := range files {
		blobs[f.Path] = f.Blob()
	}
	return blobs
}

// ContentOf returns the content of a cluster type without folders.
func ContentOf(files []backends.File) *Content {
	return &Content{Files: FilesOf(files),
		Make: func(context.Context, []int) ([][]backends.File, error) {
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

// One returns the files of one folder, given by its number, with their bytes.
func (c *Content) One(ctx context.Context, folder int) ([]backends.File, error) {
	made, err := c.Make(ctx, []int{folder})
	if err != nil {
		return nil, err
	}
	return made[0], nil
}
