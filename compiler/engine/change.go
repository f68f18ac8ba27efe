package engine

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// changes are the differences between the record of an output and the new tree.
type changes struct {
	in          *Inputs
	scope       *scope
	keeper      *keeper
	assignments *assignments
	types       []clusterType // of the model
	tree        *tree.Tree
	reports     *reports

	numbers map[string]int  // of cluster types in the model, by name
	equal   map[string]bool // folders that are known to stay as they are
}

// differs reports whether anything may differ, and finds the folders that are known to be equal.
func (c *changes) differs() bool {
	c.numbers, c.equal = map[string]int{}, map[string]bool{}
	for n := range c.in.Model.ClusterTypes {
		c.numbers[c.in.Model.ClusterTypes[n].Name] = n
	}
	digests, outside := map[string]model.Digest{}, map[string]bool{}
	for _, ct := range c.tree.ClusterTypes {
		digests[ct.Name], outside[ct.Name] = ct.Digest, ct.Outside
	}
	for _, entry := range c.scope.record.ClusterTypes {
		digest, there := digests[entry.Name]
		c.equal[entry.Name] = there &&
			(outside[entry.Name] || entry.Digest != "" && entry.Digest == digest)
		delete(digests, entry.Name)
	}
	for name := range digests {
		c.equal[name] = outside[name]
	}
	for _, equal := range c.equal {
		if !equal {
			return true
		}
	}
	return false
}

func (c *changes) same(folder string) bool { return c.equal[folder] }

// ofThisBuild reports whether a folder is equal and belongs to this build, not to another shard.
func (c *changes) ofThisBuild(folder string) bool {
	return c.equal[folder] && c.in.request.Shard.Has(folder)
}

// sides returns the environment as the record describes it, and as it will be.
func (c *changes) sides() (before, after *effect.Side, err error) {
	before = &effect.Side{Folders: map[string]int{}, Assigned: c.recordedAssignments}
	after = &effect.Side{Folders: map[string]int{}, Assigned: c.assigned}
	for _, entry := range c.scope.record.ClusterTypes {
		if tree.IsShard(entry.Name) {
			continue
		}
		before.Folders[entry.Name] = entry.Assignments
		if c.equal[entry.Name] {
			after.Folders[entry.Name] = entry.Assignments
		}
	}
	for _, ct := range c.tree.ClusterTypes {
		if _, counted := after.Folders[ct.Name]; tree.IsShard(ct.Name) || counted {
			continue
		}
		list, err := c.assigned(ct.Name)
		if err != nil {
			return nil, nil, err
		}
		after.Folders[ct.Name] = len(list)
	}
	if before.Clusters, err = c.followedBefore(); err == nil {
		after.Clusters = c.followedAfter(before.Clusters)
	}
	return before, after, err
}

// followedBefore returns the clusters that the record lists, sorted by name. It does not read the
// records of equal folders of this build, because they have the clusters of the platform.
func (c *changes) followedBefore() ([]effect.Cluster, error) {
	planned := func(name string) bool {
		if tree.IsShard(name) {
			return c.equal[name] && c.keeper.entries.shards[name] != nil
		}
		_, known := c.numbers[name]
		return known && c.scope.builds(name) && c.equal[name]
	}
	recorded, err := c.scope.record.Followers(planned)
	if err != nil {
		return nil, err
	}
	out := make([]effect.Cluster, 0, len(c.in.Model.Clusters))
	hasEntries := map[string]bool{} // cluster types
	add := func(name, folder string, entry bool) {
		out = append(out, c.cluster(name, folder, entry))
		hasEntries[model.TypeOfFolder(folder)] = hasEntries[model.TypeOfFolder(folder)] || entry
	}
	for _, f := range recorded {
		add(f.Cluster, f.Folder, f.Entry != nil)
	}
	for name, shard := range c.keeper.entries.shards {
		for i := range shard.entries {
			if planned(name) {
				add(shard.entries[i].Cluster, shard.entries[i].Folder, true)
			}
		}
	}
	for n := range c.in.Model.ClusterTypes {
		if ct := &c.in.Model.ClusterTypes[n]; planned(ct.Name) && ct.Entries != model.ClusterEntries {
			for _, name := range c.scope.recordedClusters(ct.Name) {
				add(name, ct.Name, false)
			}
		}
	}
	// tree.Record.Followers does the same, but it does not see the folders skipped here.
	out = slices.DeleteFunc(out,
		func(of effect.Cluster) bool { return !of.Entry && hasEntries[model.TypeOfFolder(of.Folder)] })
	return sortClusters(out), nil
}

// followedAfter returns the clusters that will be listed, sorted by name. before has the record's
// clusters.
func (c *changes) followedAfter(before []effect.Cluster) []effect.Cluster {
	is := make([]effect.Cluster, 0, len(before))
	for name, shard := range c.keeper.entries.shards {
		for _, e := range shard.entries {
			if !c.equal[name] {
				is = append(is, c.cluster(e.Cluster, e.Folder, true))
			}
		}
	}
	for n := range c.in.Model.ClusterTypes {
		ct := &c.in.Model.ClusterTypes[n]
		if c.equal[ct.Name] || !c.scope.builds(ct.Name) || ct.Entries == model.ClusterEntries {
			continue
		}
		for _, name := range c.scope.recordedClusters(ct.Name) {
			is = append(is, c.cluster(name, ct.Name, false))
		}
	}
	for _, of := range before {
		if of.Entry && c.equal[tree.ShardName(of.Name)] || !of.Entry && c.equal[of.Folder] {
			is = append(is, of)
		}
	}
	return sortClusters(is)
}

// sortClusters sorts clusters by name. If several have the same name, it keeps the first.
func sortClusters(all []effect.Cluster) []effect.Cluster {
	slices.SortStableFunc(all,
		func(a, b effect.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b effect.Cluster) bool { return a.Name == b.Name })
}

// cluster returns a cluster that follows a folder. Machines have nothing unless they are listed.
func (c *changes) cluster(name, folder string, entry bool) effect.Cluster {
	out := effect.Cluster{Name: name, Folder: folder, Entry: entry}
	if n, known := c.numbers[folder]; known {
		b := c.in.backend(&c.in.Model.ClusterTypes[n])
		out.OnlyListed = b != nil && b.Traits().Machines
	}
	return out
}

// withOtherShards returns the environment as it will be when all shards of the build are written,
// as far as the platform determines that. The limits apply to a removing shard together with all
// other shards, in whichever order they are written. withOtherShards returns nil if there are no
// other shards, or if errors may prevent the removals of other shards.
func (c *changes) withOtherShards(mine *effect.Side) *effect.Side {
	if c.in.request.Shard.Of <= 1 || c.in.Model.Incomplete || c.in.Model.ClustersIncomplete ||
		len(c.keeper.retained.lost) > 0 {
		return nil
	}
	other := func(name string) bool { return !c.in.request.Shard.Has(name) && c.scope.inRing(name) }
	out := &effect.Side{Folders: map[string]int{}}
	targets := map[string][]effect.Assignment{}
	for name, n := range mine.Folders {
		if !other(name) {
			out.Folders[name] = n
		}
	}
	for n := range c.in.Model.ClusterTypes {
		name := c.in.Model.ClusterTypes[n].Name
		if !other(name) {
			continue
		}
		targets[name] = c.scheduled(n, unmade)
		out.Folders[name] = len(targets[name])
	}
	out.Assigned = func(folder string) ([]effect.Assignment, error) {
		if list, known := targets[folder]; known {
			return list, nil
		}
		return mine.Assigned(folder)
	}
	is := map[string]effect.Cluster{}
	for _, of := range mine.Clusters {
		is[of.Name] = of
	}
	for _, of := range mine.Clusters { // take clusters of other shards from the platform
		switch m := c.in.Model.Cluster(of.Name); {
		case of.Entry && !other(tree.ShardName(of.Name)) || !of.Entry && !other(of.Folder):
		case m != nil:
			of.Folder = m.Folder
			is[of.Name] = of
		case slices.Contains(c.in.Model.RemovedClusters, of.Name) || !of.Entry:
			delete(is, of.Name)
		}
	}
	for i := range c.in.Model.Clusters {
		m := &c.in.Model.Clusters[i]
		if _, known := is[m.Name]; !known && m.Folder != "" && other(m.Folder) {
			is[m.Name] = c.cluster(m.Name, m.Folder, false)
		}
	}
	out.Clusters = sortClusters(slices.Collect(maps.Values(is)))
	return out
}

// unmade returns the id of files that another shard makes: it is not known.
func unmade(int) tree.ID { return "" }

// scheduled returns the assignments of a cluster type, given by its number. files returns the id
// of the files of an assignment, given by its number.
func (c *changes) scheduled(n int, files func(i int) tree.ID) []effect.Assignment {
	var out []effect.Assignment
	for i := c.in.spans[n].first; i < c.in.spans[n].next; i++ {
		out = append(out,
			effect.Assignment{DeploymentTarget: c.in.Schedule.Assignments[i].Target.FullName,
				Namespace: c.in.Plan.Namespaces[i], Tree: files(i)})
	}
	slices.SortFunc(out, func(a,
		b effect.Assignment) int {
		return strings.Compare(a.DeploymentTarget, b.DeploymentTarget)
	})
	return out
}

// recordedAssignments returns the assignments of a recorded folder.
func (c *changes) recordedAssignments(folder string) ([]effect.Assignment, error) {
	lines, err := c.scope.record.Outlines(folder)
	out := make([]effect.Assignment, len(lines))
	for i, l := range lines {
		out[i] = effect.Assignment(l)
	}
	return out, err
}

// assigned returns the assignments that a folder will have, sorted by deployment target.
func (c *changes) assigned(folder string) ([]effect.Assignment, error) {
	n, known := c.numbers[folder]
	built := known && c.scope.builds(folder)
	switch {
	case known && !built && c.scope.record.FolderTree(folder) == "":
		return c.scheduled(n, unmade), nil
	case c.equal[folder], built && c.assignments.types[n].same:
		return c.recordedAssignments(folder)
	case built && c.types[n].folders == nil: // no assignment failed
		return c.scheduled(n, func(i int) tree.ID {
			summary, _ := decodeSummary(c.assignments.rows[i].summary)
			return tree.ID(hex.EncodeToString(summary.tree[:]))
		}), nil
	}
	// Kept folders have their recorded files.
	was, err := c.recordedAssignments(folder)
	if err != nil {
		return nil, err
	}
	var folders []tree.Folder
	if built {
		folders = c.types[n].folders
	} else if c.keeper.keepReason(folder) != "" {
		folders = c.keeper.others(folder, nil)
	}
	out := make([]effect.Assignment, len(folders))
	for i := range folders {
		f := &folders[i]
		out[i] = effect.Assignment{DeploymentTarget: f.Info.DeploymentTarget, Namespace: f.Info.Namespace,
			Tree: f.Tree}
		if at, recorded := slices.BinarySearchFunc(was, f.Info.DeploymentTarget,
			func(a effect.Assignment, target string) int {
				return strings.Compare(a.DeploymentTarget, target)
			}); f.Kept != nil && recorded {
			out[i] = was[at]
		}
	}
	return out, nil
}
