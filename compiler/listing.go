package compiler

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// listing lists the folders of an environment's tree, and the folders that its clusters pull.
type listing struct {
	e    *engine.Environment
	side *side
	// kept returns the folders of the other side by id. The tree keeps some of them.
	kept func() map[string]compare.Folder
	// shards are the digests of the other side's folders of entries, by name. If a folder has the
	// same digest, its entries are equal and are not made.
	shards map[string]model.Digest
	// follows has the folder that each listed cluster follows.
	follows map[string]string
	entries map[string]entry // by cluster
}

// entry is the entry of a cluster, by its number in a folder of entries.
type entry struct {
	in     *tree.Content
	number int
}

// shards returns the digests of a build's folders of entries in an environment, by name. It
// returns an empty map for an output.
func (s *side) shards(environment string) map[string]model.Digest {
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

// all adds the folders of the tree to the side. Cluster types that were left out, because both
// sides have them, get equal ids.
func (l *listing) all(ctx context.Context) error {
	for i := range l.e.Model.Clusters {
		if c := &l.e.Model.Clusters[i]; c.Folder != "" {
			l.follows[c.Name] = c.Folder
		}
	}
	unmade := map[string]bool{} // folders of entries whose entries are not listed
	first := len(l.side.folders)
	for _, ct := range l.e.Tree.ClusterTypes {
		same := tree.IsShard(ct.Name) && ct.Digest != "" && l.shards[ct.Name] == ct.Digest
		if l.e.LeftOut(ct.Name) {
			l.side.folders = append(l.side.folders, leftOut(l.e, ct.Name)...)
		}
		if ct.Outside || same {
			unmade[ct.Name] = tree.IsShard(ct.Name)
			continue
		}
		content, err := ct.Content(ctx)
		if err != nil {
			return err
		}
		if tree.IsShard(ct.Name) {
			// Note the entries in a folder of entries.
			for i := range content.Entries {
				e := &content.Entries[i]
				l.follows[e.Cluster], l.entries[e.Cluster] = e.Folder, entry{content, i}
			}
		} else {
			l.clusterType(ctx, ct.Name, content)
		}
	}
	none, nothing := tree.OfFiles(nil), func() ([]backends.File, error) { return nil, nil }
	// In the order of outputs, clusters are before cluster types.
	types := slices.Clone(l.side.folders[first:])
	l.side.folders = slices.Grow(l.side.folders[:first], len(l.follows)+len(types))
	for _, name := range l.names() {
		folder := l.follows[name]
		// A cluster that should have an entry, and gets none because of errors, pulls nothing.
		of, has := l.entries[name]
		if !has && l.e.HasEntries(folder) && !unmade[tree.ShardName(name)] {
			continue
		}
		f := compare.Folder{Environment: l.e.Name, Cluster: name, Follows: folder, Tree: none,
			Files: nothing}
		if has {
			e := &of.in.Entries[of.number]
			if !e.Kept {
				f.Tree, f.Files = e.Files.Tree,
					func() ([]backends.File, error) { return of.in.One(ctx, of.number) }
			} else if before, known := l.kept()[f.ID()+clusterMark(&f)]; known {
				f = before
			}
		}
		l.side.folders = append(l.side.folders, f)
	}
	l.side.folders = append(l.side.folders, types...)
	return nil
}

// names returns the names of the clusters that follow a folder, sorted.
func (l *listing) names() []string {
	names := make([]string, 0, len(l.follows))
	for i := range l.e.Model.Clusters { // sorted
		if _, follows := l.follows[l.e.Model.Clusters[i].Name]; follows {
			names = append(names, l.e.Model.Clusters[i].Name)
		}
	}
	if len(names) == len(l.follows) {
		return names
	}
	return slices.Sorted(maps.Keys(l.follows))
}

// clusterType adds the folders of a cluster type, or of a class of one.
func (l *listing) clusterType(ctx context.Context, name string, content *tree.Content) {
	own := compare.Folder{
		Environment: l.e.Name, ClusterType: name, Tree: tree.OfFiles(content.Files),
		Backend: l.e.BackendOf(name),
		Files:   func() ([]backends.File, error) { return content.One(ctx, tree.Root) },
	}
	if content.Kept != "" {
		if before, has := l.kept()[own.ID()]; has {
			own = before
		}
	}
	l.side.folders = append(l.side.folders, own)
	for i := range content.Folders {
		f := &content.Folders[i]
		folder := compare.Folder{
			Environment: l.e.Name, ClusterType: name, Assignment: f.Info.DeploymentTarget,
			Backend: f.Info.Backend, Info: &f.Info,
			Tree:  tree.OfFiles(f.Files),
			Files: func() ([]backends.File, error) { return content.One(ctx, i) },
		}
		if f.Kept != nil {
			if before, has := l.kept()[folder.ID()]; has {
				folder = before
			}
		}
		l.side.folders = append(l.side.folders, folder)
	}
	for _, cluster := range content.Clusters {
		if l.follows[cluster] == "" {
			l.follows[cluster] = name // errors hide it, and it stays
		}
	}
}

// leftOut returns the folders of a cluster type that is equal on both sides.
func leftOut(e *engine.Environment, clusterType string) []compare.Folder {
	same := tree.TreeID(nil)
	out := []compare.Folder{{Environment: e.Name, ClusterType: clusterType, Tree: same}}
	for i := range e.Schedule.Assignments {
		if a := &e.Schedule.Assignments[i]; a.ClusterType.Name == clusterType {
			out = append(out, compare.Folder{Environment: e.Name, ClusterType: clusterType,
				Assignment: a.Target.FullName, Tree: same})
		}
	}
	return out
}

// narrow leaves out the folders and clusters that errors hide on the first side. If the other
// side is an output, it also leaves out the environments that the output does not have. It
// returns the ids of the assignments that errors concern on either side, sorted.
func narrow(before, after *side) []string {
	out := map[string]bool{}
	has := map[string]bool{} // folders of the first side, in environments whose list is incomplete
	environments := [2]map[string]bool{{}, {}}
	for n, s := range []*side{before, after} {
		for i := range s.folders {
			f := &s.folders[i]
			environments[n][f.Environment] = true
			if n == 0 && (s.uncertain[f.Environment] || s.hidesClusters[f.Environment]) {
				has[f.ID()+clusterMark(f)] = true
			}
		}
	}
	// Errors may hide folders on the first side that only the second side has. In that case also
	// leave out the cluster type's own files, which list the folder.
	for i := range after.folders {
		if f := &after.folders[i]; f.Cluster == "" && before.uncertain[f.Environment] && !has[f.ID()] {
			before.unknown[f.ID()], before.unknown[f.Environment+"/"+f.ClusterType] = true, true
		}
	}
	for n, s := range []*side{before, after} {
		other := []*side{after, before}[n]
		s.folders = slices.DeleteFunc(s.folders, func(f compare.Folder) bool {
			switch {
			case before.unknown[f.Environment] || after.unknown[f.Environment]:
			case other.Output != "" && !environments[1-n][f.Environment]:
			case f.Cluster != "":
				return len(before.unknownClusters) > 0 && before.unknownClusters[f.ID()] ||
					n == 1 && before.hidesClusters[f.Environment] && !has[f.ID()+clusterMark(&f)]
			default:
				return before.unknown[f.ID()]
			}
			return true
		})
	}
	for _, s := range []*side{before, after} {
		for id := range s.unknown {
			out[id] = true
		}
	}
	for _, e := range after.environments() {
		if e.Model == nil {
			continue
		}
		for i := range e.AllFailed {
			out[e.Schedule.Assignments[i].ID(e.Name)] = true
		}
	}
	ids := make([]string, 0, len(out))
	for id := range out {
		if strings.Count(id, "/") == 2 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// clusterMark distinguishes the id of a cluster from the id of a cluster type.
func clusterMark(f *compare.Folder) string {
	if f.Cluster != "" {
		return " "
	}
	return ""
}
