package compare

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Contents are the bytes of files by their ids.
type Contents interface {
	// Prefetch is called with the files that are read next.
	Prefetch(ids []tree.ID) error
	Blob(id tree.ID) ([]byte, error)
}

// Records compares two recorded outputs of one environment, either of which may be
// nil for none. Cluster types whose folders have the same id on both sides are left
// out of the report, and of those that differ only the assignments that do are read.
// It may fail as Compare does.
func Records(before, after *tree.Record, contents Contents) (*Report, error) {
	sides := [2]*recorded{{record: before}, {record: after}}
	for i, s := range sides {
		if err := s.open(sides[1-i].record, contents); err != nil {
			return nil, err
		}
	}
	var ids []tree.ID
	for i, s := range sides {
		ids = append(ids, s.differing(sides[1-i])...)
	}
	if err := contents.Prefetch(ids); err != nil {
		return nil, err
	}
	return Compare(sides[0].folders, sides[1].folders)
}

// recorded is one side of a comparison of records.
type recorded struct {
	record  *tree.Record
	folders []Folder
	files   map[string]map[string]tree.Blob // by the id of a folder
	trees   map[string]tree.ID
}

// open lists the folders of the cluster types that differ from those of another
// record.
func (s *recorded) open(other *tree.Record, contents Contents) error {
	s.files, s.trees = map[string]map[string]tree.Blob{}, map[string]tree.ID{}
	if s.record == nil {
		return nil
	}
	same := map[string]tree.ID{}
	if other != nil {
		for _, e := range other.ClusterTypes {
			same[e.Name] = e.Tree
		}
	}
	for _, e := range s.record.ClusterTypes {
		if same[e.Name] == e.Tree {
			continue
		}
		ct, err := s.record.ClusterType(e.Name)
		if err != nil {
			return err
		}
		if ct == nil {
			return errors.New("the record lists no cluster type " + e.Name)
		}
		s.add(ct, contents)
	}
	return nil
}

func (s *recorded) add(ct *tree.ClusterTypeRecord, contents Contents) {
	s.folder(Folder{Environment: s.record.Environment, ClusterType: ct.Name, Tree: tree.TreeID(ct.Files)}, ct.Files, contents)
	for i := range ct.Assignments {
		a := &ct.Assignments[i]
		s.folder(Folder{Environment: s.record.Environment, ClusterType: ct.Name, Assignment: a.DeploymentTarget, Tree: a.Tree}, a.Files, contents)
	}
}

func (s *recorded) folder(f Folder, files map[string]tree.Blob, contents Contents) {
	id := f.ID()
	s.files[id], s.trees[id] = files, f.Tree
	f.Files = func() ([]backends.File, error) {
		var out []backends.File
		for _, path := range slices.Sorted(maps.Keys(files)) {
			data, err := contents.Blob(files[path].ID)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", strings.TrimSuffix(id, "/"), path, err)
			}
			out = append(out, backends.File{Path: path, Data: data, Executable: files[path].Executable})
		}
		return out, nil
	}
	s.folders = append(s.folders, f)
}

// differing returns the ids of the files in folders that the other side has with
// other content.
func (s *recorded) differing(other *recorded) []tree.ID {
	var ids []tree.ID
	for _, f := range s.folders {
		id := f.ID()
		if there, ok := other.trees[id]; !ok || there == f.Tree {
			continue
		}
		for _, b := range s.files[id] {
			ids = append(ids, b.ID)
		}
	}
	return ids
}
