package compiler

import (
	"context"
	"strings"
	"sync"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/build"
	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// entries returns the digests of a build's folders of entries in an environment, by name;
// none of an output.
func (s *side) entries(environment string) map[string]model.Digest {
	out := map[string]model.Digest{}
	if s.build == nil {
		return out
	}
	for _, e := range s.build.Environments {
		if e.Name != environment || e.Tree == nil {
			continue
		}
		for _, ct := range e.Tree.ClusterTypes {
			if tree.IsShard(ct.Name) {
				out[ct.Name] = ct.Digest
			}
		}
	}
	return out
}

// clustersOf returns what the clusters of an environment pull, in no order. Entries in
// folders that the other side has with the same digest are not made: they are equal.
func clustersOf(ctx context.Context, e *build.Environment, other map[string]model.Digest) ([]compare.Folder, error) {
	entries := map[string][]tree.File{}
	read := map[string]func() ([]backends.File, error){}
	for _, ct := range e.Tree.ClusterTypes {
		if !tree.IsShard(ct.Name) || ct.Outside || ct.Digest != "" && other[ct.Name] == ct.Digest {
			continue
		}
		content, err := ct.Content(ctx)
		if err != nil {
			return nil, err
		}
		read[ct.Name] = sync.OnceValues(func() ([]backends.File, error) { return content.One(ctx, tree.Root) })
		for _, f := range content.Files {
			name, within, _ := strings.Cut(f.Path, "/")
			f.Path = within
			entries[name] = append(entries[name], f)
		}
	}
	out := make([]compare.Folder, 0, len(e.Model.Clusters))
	for i := range e.Model.Clusters {
		c := &e.Model.Clusters[i]
		out = append(out, compare.Folder{
			Environment: e.Name, Cluster: c.Name, Follows: c.Folder, Tree: tree.OfFiles(entries[c.Name]),
			Files: func() (files []backends.File, err error) {
				if entries[c.Name] == nil {
					return nil, nil
				}
				all, err := read[tree.ShardName(c.Name)]()
				for _, f := range all {
					if within, is := strings.CutPrefix(f.Path, c.Name+"/"); is {
						f.Path = within
						files = append(files, f)
					}
				}
				return files, err
			},
		})
	}
	return out, nil
}

// stays returns the clusters that the other side may only seem to lack, by id: where errors
// hide clusters, and where this side is an output, of which a build leaves the entries of
// those that are no longer listed. Of the folders that these follow, it returns the ids
// that the other side does not have.
func (s *side) stays(other *side) (clusters, followed map[string]bool) {
	listed, has := map[string]bool{}, map[string]bool{}
	for _, f := range other.folders {
		if f.Cluster != "" {
			listed[f.ID()] = true
		} else {
			has[f.ID()] = true
		}
	}
	clusters, followed = map[string]bool{}, map[string]bool{}
	types := map[string]bool{}
	for _, f := range s.folders {
		id := f.ID()
		entry := s.Output != "" && f.Tree != tree.OfFiles(nil) && !other.removedClusters[id]
		if f.Cluster != "" && !listed[id] && (entry || other.hidesClusters[f.Environment]) {
			clusters[id], types[f.Environment+"/"+f.Follows] = true, true
		}
	}
	for _, f := range s.folders {
		if f.Cluster == "" && types[f.Environment+"/"+f.ClusterType] && !has[f.ID()] {
			followed[f.ID()] = true
		}
	}
	return clusters, followed
}
