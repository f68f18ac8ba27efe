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

// Records compares two recorded outputs of one environment. Either of them may be nil.
// Cluster types whose folders have the same id on both sides are not in the report. Of
// other cluster types, it reads only the differing assignments. With targets, each cluster
// type is a target of an application. Records may fail as Compare does.
func Records(before, after *tree.Record, contents Contents, targets bool) (*Report, error) {
	sides := [2]*recordSide{{record: before}, {record: after}}
	moved, err := movedBetween(before, after)
	if err != nil {
		return nil, err
	}
	same := map[string]int{}
	for i, s := range sides {
		if err := s.open(sides[1-i].record, moved, same, contents); err != nil {
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
	return (&comparison{created: true, targets: targets, same: same}).compare(sides[0].folders,
		sides[1].folders)
}

// recordSide is one side of a comparison of records.
type recordSide struct {
	record  *tree.Record
	folders []Folder
	files   map[string]map[string]tree.Blob // by the key of a folder
	trees   map[string]tree.ID
}

// movedBetween returns the folders that clusters leave or join from one record to the
// other. These are compared with other folders, even if they are the same in both records.
func movedBetween(before, after *tree.Record) (map[string]bool, error) {
	out := map[string]bool{}
	was, err := before.Followers(nil)
	if err != nil {
		return nil, err
	}
	is, err := after.Followers(nil)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	for _, f := range was {
		folders[f.Cluster] = f.Folder
	}
	for _, f := range is {
		if folder := folders[f.Cluster]; folder != f.Folder {
			out[folder], out[f.Folder] = true, true
		}
		delete(folders, f.Cluster)
	}
	for _, folder := range folders { // of clusters that are no longer listed
		out[folder] = true
	}
	return out, nil
}

// open lists the folders of the cluster types that differ from another record, or that clusters
// move between. For each other cluster type it adds the number of assignments to same.
func (s *recordSide) open(other *tree.Record, moved map[string]bool, same map[string]int,
	contents Contents) error {
	s.files, s.trees = map[string]map[string]tree.Blob{}, map[string]tree.ID{}
	if s.record == nil {
		return nil
	}
	trees := map[string]tree.ID{}
	if other != nil {
		for _, e := range other.ClusterTypes {
			trees[e.Name] = e.Tree
		}
	}
	for _, e := range s.record.ClusterTypes {
		if tree.IsShard(e.Name) {
			continue
		}
		if trees[e.Name] == e.Tree && !moved[e.Name] {
			same[e.Name] = e.Assignments
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
	return s.addClusters(other, contents)
}

// addClusters lists the clusters, if anything differs from another record. Clusters with an
// entry follow the folder in the entry.
func (s *recordSide) addClusters(other *tree.Record, contents Contents) error {
	if other != nil && other.Tree == s.record.Tree &&
		slices.EqualFunc(other.ClusterTypes, s.record.ClusterTypes,
			func(a, b tree.ClusterTypeEntry) bool { return a.Name == b.Name && a.Record == b.Record }) {
		return nil
	}
	all, err := s.record.Followers(nil)
	if err != nil {
		return err
	}
	for _, f := range all {
		if f.Entry != nil {
			s.folder(Folder{Environment: s.record.Environment, Cluster: f.Cluster, Follows: f.Folder,
				Tree: tree.TreeID(f.Entry.Files)}, f.Entry.Files, contents)
		} else {
			s.folders = append(s.folders, pulling(s.record.Environment, f.Cluster, f.Folder))
		}
	}
	Sort(s.folders)
	return nil
}

func (s *recordSide) add(ct *tree.ClusterTypeRecord, contents Contents) {
	s.folder(Folder{Environment: s.record.Environment, ClusterType: ct.Name,
		Tree: tree.TreeID(ct.Files), Backend: backendOf(ct)}, ct.Files, contents)
	for i := range ct.Assignments {
		a := &ct.Assignments[i]
		s.folder(Folder{Environment: s.record.Environment, ClusterType: ct.Name,
			Assignment: a.DeploymentTarget, Tree: a.Tree, Backend: a.Backend, Info: &a.Folder}, a.Files,
			contents)
	}
}

// backendOf returns the backend of a cluster type's own files: that of all its folders, and ""
// if it is not known.
func backendOf(ct *tree.ClusterTypeRecord) string {
	if len(ct.Assignments) == 0 || slices.ContainsFunc(ct.Assignments,
		func(a tree.AssignmentRecord) bool { return a.Backend != ct.Assignments[0].Backend }) {
		return ""
	}
	return ct.Assignments[0].Backend
}

func (s *recordSide) folder(f Folder, files map[string]tree.Blob, contents Contents) {
	id, key := f.ID(), f.key()
	s.files[key], s.trees[key] = files, f.Tree
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
func (s *recordSide) differing(other *recordSide) []tree.ID {
	var ids []tree.ID
	for _, f := range s.folders {
		key := f.key()
		if there, ok := other.trees[key]; !ok || there == f.Tree {
			continue
		}
		for _, b := range s.files[key] {
			ids = append(ids, b.ID)
		}
	}
	return ids
}
