// Package tree is the output of a build for one environment: which files there
// are, what built them, and how they get into a folder.
//
// A Tree is what an environment should look like; a Record is what it does look
// like, with git's own ids, and says which of a folder's files are kalypso's. A
// Dir makes a folder look like a tree. It touches only what differs, removes
// only what the folder's record says kalypso wrote, and can be killed at any
// moment: the next write finishes what the killed one left.
//
// All paths are relative to the environment's folder, with slashes.
package tree

import (
	"fmt"
	"path"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Tree is the desired content of one environment.
type Tree struct {
	ClusterTypes []ClusterType // sorted by name
}

// ClusterType is the desired content of a cluster type's folder.
type ClusterType struct {
	Name string
	// Files are those at the cluster type's root, by path in it, sorted.
	Files []backends.File
	// Kept is the reason why Files are not known, and those of the previous
	// record stay as they are; "" where Files are known.
	Kept    string
	Folders []Folder // sorted by deployment target
}

// Folder is the desired content of an assignment's folder.
type Folder struct {
	// Info describes the folder; its DeploymentTarget is the folder's name. Of a
	// kept folder only that is used: the rest is in the previous record.
	Info backends.Folder
	// Files by path in the folder, sorted; nil in a kept folder.
	Files []backends.File
	// Values is the digest of the composed configuration; "" in a kept folder.
	Values model.Digest
	// Kept says that the folder stays as the previous record describes it, which
	// must list it. Only its Reason is used: the record knows the rest.
	Kept *Kept
}

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

// Source is what a tree was compiled from: the digests of the base and of the
// environment's own files.
type Source struct {
	Base        model.Digest `json:"base"`
	Environment model.Digest `json:"environment"`
}

// Options say whose tree is written, and how.
type Options struct {
	Platform    string // the platform's CUE module path
	Environment string
	Compiler    Compiler
	Source      Source
	// Adopt lets kalypso take over files that it did not write, and a folder
	// whose record is broken.
	Adopt bool
}

// outcome is a tree as it will be: its record, the files to have and the files
// to leave alone.
type outcome struct {
	record *Record
	files  []backends.File // by path in the environment
	kept   []string        // paths, sorted
}

// outcomeOf resolves what the tree keeps against the previous record, which may
// be nil. It fails where the tree contradicts itself, the record or the rules
// for paths, which are mistakes of the caller or of a backend.
func outcomeOf(t *Tree, previous *Record, o Options) (*outcome, error) {
	out := &outcome{record: &Record{
		APIVersion: apiVersion, Kind: recordKind,
		Platform: o.Platform, Environment: o.Environment,
		Compiler: o.Compiler, Source: o.Source,
		ClusterTypes: []ClusterTypeRecord{},
	}}
	for _, ct := range t.ClusterTypes {
		before := previous.clusterType(ct.Name)
		next := ClusterTypeRecord{Name: ct.Name, Kept: ct.Kept, Assignments: []AssignmentRecord{}}
		switch {
		case ct.Kept == "":
			next.Files = out.add(ct.Name, ct.Files)
		case before != nil:
			next.Files = out.keep(ct.Name, before.Files)
		default:
			next.Files = map[string]ID{}
		}
		for _, f := range ct.Folders {
			a, err := out.assignment(ct.Name, f, before.assignment(f.Info.DeploymentTarget), previous)
			if err != nil {
				return nil, err
			}
			next.Assignments = append(next.Assignments, a)
		}
		out.record.ClusterTypes = append(out.record.ClusterTypes, next)
	}
	if err := out.record.checkNames(); err != nil {
		return nil, err
	}
	slices.Sort(out.kept)
	paths := slices.Clone(out.kept)
	for _, f := range out.files {
		paths = append(paths, f.Path)
	}
	if err := checkPaths(paths); err != nil {
		return nil, err
	}
	out.record.Tree = TreeID(out.record.Files())
	return out, nil
}

// assignment records a folder, and adds its files to those to have or to keep.
func (out *outcome) assignment(clusterType string, f Folder, before *AssignmentRecord, previous *Record) (AssignmentRecord, error) {
	dir := path.Join(clusterType, f.Info.DeploymentTarget)
	if f.Kept == nil {
		files := out.add(dir, f.Files)
		return AssignmentRecord{Folder: f.Info, Tree: TreeID(files), Values: f.Values, Files: files}, nil
	}
	if before == nil {
		return AssignmentRecord{}, fmt.Errorf("keeping folder %s: the previous record does not list it", dir)
	}
	a := *before
	a.Files = out.keep(dir, before.Files)
	a.Tree = TreeID(a.Files)
	kept := Kept{Reason: f.Kept.Reason, Compiler: previous.Compiler, Source: previous.Source}
	if before.Kept != nil {
		kept.Compiler, kept.Source = before.Kept.Compiler, before.Kept.Source
	}
	a.Kept = &kept
	return a, nil
}

// add adds files below a folder to those to have, and returns their ids by path
// in the folder.
func (out *outcome) add(dir string, files []backends.File) map[string]ID {
	ids := make(map[string]ID, len(files))
	for _, f := range files {
		ids[f.Path] = BlobID(f.Data)
		// Not path.Join, which would resolve the ".." that checkPaths must see.
		out.files = append(out.files, backends.File{Path: dir + "/" + f.Path, Data: f.Data})
	}
	return ids
}

// keep adds files below a folder to those to leave alone.
func (out *outcome) keep(dir string, files map[string]ID) map[string]ID {
	for p := range files {
		out.kept = append(out.kept, dir+"/"+p)
	}
	return files
}
