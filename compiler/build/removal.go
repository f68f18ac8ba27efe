package build

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// checkRemovals compares the tree with the record of the output, cluster by cluster. It
// refuses a tree that removes too much, and warns of what goes with the previous output:
// namespaces, with everything in them, and objects that apply folders one by one.
func (e *Environment) checkRemovals(c *changes) error {
	if !c.differs() {
		return nil
	}
	before, after, err := c.sides()
	if err != nil {
		return err
	}
	of, err := effect.Of(before, after, c.same)
	if err != nil {
		return err
	}
	leaves, err := c.leaving(of)
	if err != nil {
		return err
	}
	e.Effect = of
	bounded, losing := of, leaves
	if after := c.withOtherShards(after); after != nil {
		if bounded, err = effect.Of(before, after, nil); err != nil {
			return err
		}
		if losing, err = c.leaving(bounded); err != nil {
			return err
		}
	}
	loses := map[*effect.Pair]bool{}
	for _, l := range losing {
		loses[l.pair] = !l.record.Orphan
	}
	limits := effect.Limits{Max: e.Model.MaxRemovals, Clusters: e.Model.RemovedClusters, Emptied: e.Model.MaxEmptied, MayEmpty: e.Model.EmptiedClusters}
	e.Removals = bounded.Removals(limits, func(p *effect.Pair) bool { return loses[p] })
	if e.Removals.Excess() != "" && !e.request.AllowRemovals {
		c.refuse(e.Removals, losing)
		if !e.request.Preview {
			e.Tree, e.Counts = nil, Counts{}
			return nil
		}
	}
	c.reportLeaving(leaves)
	for n := range c.types {
		if name := c.Model.ClusterTypes[n].Name; c.types[n].kept == "" && c.builds(name) && !c.same(name) {
			if err := c.reportIndex(name); err != nil {
				return err
			}
		}
	}
	return c.reportOutliving(of)
}

// changes are the differences between the record of an output and the tree that is to be.
type changes struct {
	*keeper
	assignments *assignments
	types       []clusterType // of the model
	tree        *tree.Tree
	reports     *reports

	numbers map[string]int  // of cluster types in the model, by name
	equal   map[string]bool // folders that are known to be as they were
}

// differs says whether anything may differ, and finds the folders that are known not to.
func (c *changes) differs() bool {
	c.numbers, c.equal = map[string]int{}, map[string]bool{}
	for n := range c.Model.ClusterTypes {
		c.numbers[c.Model.ClusterTypes[n].Name] = n
	}
	digests, outside := map[string]model.Digest{}, map[string]bool{}
	for _, ct := range c.tree.ClusterTypes {
		digests[ct.Name], outside[ct.Name] = ct.Digest, ct.Outside
	}
	for _, entry := range c.record.ClusterTypes {
		digest, there := digests[entry.Name]
		c.equal[entry.Name] = there && (outside[entry.Name] || entry.Digest != "" && entry.Digest == digest)
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

// sides returns the environment by the record, and as it will be.
func (c *changes) sides() (before, after *effect.Side, err error) {
	before = &effect.Side{Folders: map[string]int{}, Assigned: c.recordedAssignments}
	after = &effect.Side{Folders: map[string]int{}, Assigned: c.assigned}
	// What is equal and of this build has the clusters of the model: its record is not read.
	planned := func(name string) bool {
		if tree.IsShard(name) {
			return c.equal[name] && c.entries.shards[name] != nil
		}
		_, known := c.numbers[name]
		return known && c.builds(name) && c.equal[name]
	}
	recorded, err := c.record.Followers(planned)
	if err != nil {
		return nil, nil, err
	}
	is, entered := map[string]string{}, map[string]bool{} // folders by cluster, and who has an entry
	for n := range c.Model.ClusterTypes {
		if ct := &c.Model.ClusterTypes[n]; planned(ct.Name) && ct.Entries != model.ClusterEntries {
			for _, name := range c.recordedClusters(ct.Name) {
				recorded = append(recorded, tree.Follower{Cluster: name, Folder: ct.Name})
			}
		}
	}
	for name, shard := range c.entries.shards {
		for i := range shard.entries {
			if e := &shard.entries[i]; planned(name) {
				recorded = append(recorded, tree.Follower{Cluster: e.Cluster, Folder: e.Folder, Entry: &tree.EntryRecord{Cluster: e.Cluster, Folder: e.Folder}})
			}
		}
	}
	hasEntries := map[string]bool{} // cluster types
	for _, f := range recorded {
		hasEntries[model.TypeOfFolder(f.Folder)] = hasEntries[model.TypeOfFolder(f.Folder)] || f.Entry != nil
	}
	recorded = slices.DeleteFunc(recorded, func(f tree.Follower) bool { return f.Entry == nil && hasEntries[model.TypeOfFolder(f.Folder)] })
	slices.SortFunc(recorded, func(a, b tree.Follower) int { return strings.Compare(a.Cluster, b.Cluster) })
	for _, f := range recorded {
		before.Clusters = append(before.Clusters, effect.Cluster{Name: f.Cluster, Folder: f.Folder, Entry: f.Entry != nil, OnlyListed: c.machines(f.Folder)})
		if f.Entry != nil && c.equal[tree.ShardName(f.Cluster)] || f.Entry == nil && c.equal[f.Folder] {
			is[f.Cluster], entered[f.Cluster] = f.Folder, f.Entry != nil
		}
	}
	for _, entry := range c.record.ClusterTypes {
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
		if n, known := c.numbers[ct.Name]; known && c.builds(ct.Name) && c.Model.ClusterTypes[n].Entries != model.ClusterEntries {
			for _, name := range c.recordedClusters(ct.Name) {
				is[name] = ct.Name
			}
		}
	}
	for name, shard := range c.entries.shards {
		for _, e := range shard.entries {
			if !c.equal[name] {
				is[e.Cluster], entered[e.Cluster] = e.Folder, true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		after.Clusters = append(after.Clusters, effect.Cluster{Name: name, Folder: is[name], Entry: entered[name], OnlyListed: c.machines(is[name])})
	}
	return before, after, nil
}

// withOtherShards returns the environment as it will be once the other shards of the build are
// written too, as far as the platform says: bounds are on the whole environment, whichever shard
// comes first. It is nil where there are no others, or errors may keep what they would remove.
func (c *changes) withOtherShards(mine *effect.Side) *effect.Side {
	if c.request.Shard.Of <= 1 || c.Model.Incomplete || c.Model.ClustersIncomplete || len(c.retained.lost) > 0 {
		return nil
	}
	other := func(name string) bool { return !c.request.Shard.Has(name) && c.inRing(name) }
	out := &effect.Side{Folders: map[string]int{}}
	targets := map[string][]effect.Assignment{}
	for name, n := range mine.Folders {
		if !other(name) {
			out.Folders[name] = n
		}
	}
	for n := range c.Model.ClusterTypes {
		name := c.Model.ClusterTypes[n].Name
		if !other(name) {
			continue
		}
		targets[name] = c.scheduled(n)
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
	for _, of := range mine.Clusters { // of other shards: as the platform has them
		switch m := c.Model.Cluster(of.Name); {
		case of.Entry && !other(tree.ShardName(of.Name)) || !of.Entry && !other(of.Folder):
		case m != nil:
			of.Folder = m.Folder
			is[of.Name] = of
		case slices.Contains(c.Model.RemovedClusters, of.Name) || !of.Entry:
			delete(is, of.Name)
		}
	}
	for i := range c.Model.Clusters {
		m := &c.Model.Clusters[i]
		if _, known := is[m.Name]; !known && m.Folder != "" && other(m.Folder) {
			is[m.Name] = effect.Cluster{Name: m.Name, Folder: m.Folder, OnlyListed: c.machines(m.Folder)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		out.Clusters = append(out.Clusters, is[name])
	}
	return out
}

// scheduled returns the assignments of a cluster type by its number, whose files are not known.
func (c *changes) scheduled(n int) []effect.Assignment {
	var out []effect.Assignment
	for i := c.spans[n].first; i < c.spans[n].next; i++ {
		out = append(out, effect.Assignment{DeploymentTarget: c.Schedule.Assignments[i].Target.FullName, Namespace: c.Plan.Namespaces[i]})
	}
	slices.SortFunc(out, func(a, b effect.Assignment) int { return strings.Compare(a.DeploymentTarget, b.DeploymentTarget) })
	return out
}

// machines says whether the clusters of a folder are machines, which have nothing unless they
// are listed.
func (c *changes) machines(folder string) bool {
	n, known := c.numbers[folder]
	if !known {
		return false
	}
	b := c.backend(&c.Model.ClusterTypes[n])
	return b != nil && b.Traits().Machines
}

// recordedAssignments returns the assignments of a recorded folder.
func (c *changes) recordedAssignments(folder string) ([]effect.Assignment, error) {
	lines, err := c.record.Outlines(folder)
	out := make([]effect.Assignment, len(lines))
	for i, l := range lines {
		out[i] = effect.Assignment(l)
	}
	return out, err
}

// assigned returns the assignments that a folder will have.
func (c *changes) assigned(folder string) ([]effect.Assignment, error) {
	n, known := c.numbers[folder]
	built := known && c.builds(folder)
	switch {
	case known && !built && c.record.FolderTree(folder) == "":
		return c.scheduled(n), nil // another shard makes it: what it is made of is not known here
	case c.equal[folder], built && c.assignments.known[n].same:
		return c.recordedAssignments(folder)
	case built && c.types[n].folders == nil: // no assignment failed
		var out []effect.Assignment
		for i := c.spans[n].first; i < c.spans[n].next; i++ {
			summary, _ := decodeSummary(c.assignments.rows[i].summary)
			out = append(out, effect.Assignment{DeploymentTarget: c.Schedule.Assignments[i].Target.FullName, Namespace: c.Plan.Namespaces[i], Tree: tree.ID(hex.EncodeToString(summary.tree[:]))})
		}
		slices.SortFunc(out, func(a, b effect.Assignment) int { return strings.Compare(a.DeploymentTarget, b.DeploymentTarget) })
		return out, nil
	}
	// Folders that are kept are as they were.
	was, err := c.recordedAssignments(folder)
	if err != nil {
		return nil, err
	}
	var folders []tree.Folder
	if built {
		folders = c.types[n].folders
	} else if c.whole(folder) != "" {
		folders = c.others(folder, nil)
	}
	out := make([]effect.Assignment, len(folders))
	for i := range folders {
		f := &folders[i]
		out[i] = effect.Assignment{DeploymentTarget: f.Info.DeploymentTarget, Namespace: f.Info.Namespace, Tree: f.Tree}
		if at, recorded := slices.BinarySearchFunc(was, f.Info.DeploymentTarget, func(a effect.Assignment, target string) int { return strings.Compare(a.DeploymentTarget, target) }); f.Kept != nil && recorded {
			out[i] = was[at]
		}
	}
	return out, nil
}

// leaving is a pair that is removed, or whose namespace gets another name.
type leaving struct {
	pair   *effect.Pair
	record *tree.AssignmentRecord
}

// renamed returns the namespace's new name; "" where the pair is removed.
func (l leaving) renamed() string {
	if l.pair.Removed() {
		return ""
	}
	return l.pair.After.Namespace
}

// id returns the assignment's, without the class of its clusters.
func (l leaving) id(environment string) string {
	return environment + "/" + l.pair.ClusterType() + "/" + l.record.DeploymentTarget
}

// leaving returns the pairs that are removed, and those whose namespaces get other names.
func (c *changes) leaving(of *effect.Effect) ([]leaving, error) {
	var out []leaving
	parts := map[string]*tree.ClusterTypeRecord{}
	for i := range of.Pairs {
		p := &of.Pairs[i]
		if !p.Removed() && !p.Renames() {
			continue
		}
		if parts[p.Way.From] == nil {
			part, err := c.record.ClusterType(p.Way.From)
			if err != nil {
				return nil, err
			}
			parts[p.Way.From] = part
		}
		a := parts[p.Way.From].Assignment(p.DeploymentTarget())
		if p.Removed() || !c.forMachines(a.Backend) {
			out = append(out, leaving{p, a})
		}
	}
	return out, nil
}

// refuse leaves the environment's output as it is, and says why, and what assigned what
// would go.
func (c *changes) refuse(r effect.Removals, leaves []leaving) {
	ref := model.Ref{Collection: "environments", Name: c.Name}
	field := "removals.max"
	switch {
	case r.Emptied <= r.MostEmptied || r.Empty:
	case r.Removed > r.Most && max(r.On, r.Assignments) > r.Least:
		field = "removals.max and removals.emptied"
	default:
		field = "removals.emptied"
	}
	var ids []string
	counts := map[model.Ref]int{}
	for _, l := range leaves {
		ids = append(ids, l.id(c.Name))
		for _, policy := range l.record.Policies {
			counts[model.Ref{Collection: "schedulingPolicies", Name: policy}] += l.pair.Way.Count()
		}
	}
	slices.Sort(ids)
	d := diag.New(diag.TooManyRemovals, fmt.Sprintf("environment %s: %s", c.Name, r.Excess())).
		On(ref.String()).For(slices.Compact(ids)...).
		Hinting(fmt.Sprintf("nothing of the environment is written; to remove them, build with --allow-removals, or raise %s of environment %s", field, c.Name))
	policies := make([]model.Ref, 0, len(counts))
	for ref := range counts {
		policies = append(policies, ref)
	}
	slices.SortFunc(policies, func(a, b model.Ref) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, ref := range policies[:min(len(policies), 3)] {
		d = d.At(ref, fmt.Sprintf("policy %s assigned %d of them", ref.Name, counts[ref]))
	}
	c.reports.add(d.At(ref, ""))
}

// reportLeaving warns of namespaces that go or get other names. What goes alike is one
// warning.
func (c *changes) reportLeaving(leaves []leaving) {
	var order []string
	alike := map[string][]leaving{}
	for _, l := range leaves {
		if b := c.request.Backends[l.record.Backend]; l.pair.Way.Leaves() && c.folderStays(l.pair) && b != nil && !b.Traits().DeletesUnlisted {
			continue
		}
		key := fmt.Sprint(c.forMachines(l.record.Backend), l.record.Orphan, l.renamed() != "")
		if alike[key] == nil {
			order = append(order, key)
		}
		alike[key] = append(alike[key], l)
	}
	for _, key := range order {
		c.reports.add(c.departure(alike[key]))
	}
}

// folderStays says whether clusters lose a pair because they are no longer listed, and not
// because their cluster type goes. What runs on a cluster that is removed by name is gone.
func (c *changes) folderStays(p *effect.Pair) bool {
	byName := !slices.ContainsFunc(p.Way.Clusters, func(name string) bool { return !slices.Contains(c.Model.RemovedClusters, name) })
	return byName || slices.ContainsFunc(c.tree.ClusterTypes, func(ct tree.ClusterType) bool { return ct.Name == p.Way.From })
}

// departure warns of folders that go alike.
func (c *changes) departure(leaves []leaving) diag.Diagnostic {
	first := leaves[0]
	on := first.pair.ClusterType()
	if names := first.pair.Way.Clusters; len(names) == 1 {
		on += " on cluster " + names[0]
	}
	d := removal(on, first.record.Folder, first.renamed())
	if c.forMachines(first.record.Backend) {
		d = machineRemoval(on, first.record.Folder)
	}
	number := 0
	var ids []string
	for _, l := range leaves {
		number += l.pair.Way.Count()
		ids = append(ids, l.id(c.Name))
	}
	if number > 1 {
		d.Message = departures(leaves, number, c.forMachines(first.record.Backend))
	}
	slices.Sort(ids)
	return d.For(slices.Compact(ids)...)
}

// departures is the message for several folders that go alike, from machines or clusters.
func departures(leaves []leaving, number int, machines bool) string {
	first := leaves[0]
	switch {
	case machines && first.record.Orphan:
		return fmt.Sprintf("%d deployment targets are removed from machines, and their users and directories stay, as their namespace services say", number)
	case machines:
		return fmt.Sprintf("%d deployment targets are removed from machines", number)
	case first.renamed() != "" && first.record.Orphan:
		return fmt.Sprintf("%d namespaces are replaced by others, and stay on the clusters, as their namespace services say: %s", number, renames(leaves))
	case first.renamed() != "":
		return fmt.Sprintf("%d namespaces are renamed: %s", number, renames(leaves))
	case first.record.Orphan:
		return fmt.Sprintf("%d namespaces lose their assignments, and stay on the clusters, as their namespace services say", number)
	}
	return fmt.Sprintf("%d namespaces are removed with their assignments", number)
}

// renames lists some namespaces that get other names.
func renames(leaves []leaving) string {
	var out []string
	for _, l := range leaves[:min(len(leaves), 3)] {
		out = append(out, l.record.Namespace+" to "+l.renamed())
	}
	if more := len(leaves) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// removal says what happens to the namespace of a folder that goes, or whose
// namespace gets another name.
func removal(clusterType string, f backends.Folder, renamed string) diag.Diagnostic {
	what := "removed with its assignment"
	if renamed != "" {
		what = "renamed to " + renamed
	}
	if f.Orphan {
		if renamed != "" {
			what = "replaced by " + renamed
		}
		return diag.New(diag.RemovesNamespace, fmt.Sprintf("namespace %s of cluster type %s is %s, and stays on the clusters, as its namespace service says", f.Namespace, clusterType, what))
	}
	return diag.New(diag.RemovesNamespace, fmt.Sprintf("namespace %s of cluster type %s is %s", f.Namespace, clusterType, what)).
		Hinting("everything in the namespace goes with it; to leave the namespace on the clusters, build and sync it once with deletion: \"orphan\" on the namespace service before this change")
}

// reportIndex warns of a cluster type whose folders are no longer applied by an
// object each, as they are with gitops: the objects go, with what they applied.
func (c *changes) reportIndex(clusterType string) error {
	if c.Model.GitOps != nil {
		return nil
	}
	before, err := c.record.Part(clusterType, func(string, string, bool) bool { return false })
	if err != nil || before == nil {
		return err
	}
	if _, had := before.Files[backends.AssignmentsFile]; !had {
		return nil
	}
	ref := model.Ref{Collection: "environments", Name: c.Name}
	c.reports.add(diag.New(diag.IndexGoes, fmt.Sprintf("cluster type %s loses its %s, as environment %s has no gitops any more", clusterType, backends.AssignmentsFile, c.Name)).
		At(ref, "").On(ref.String()).
		Hinting("the reconciler deletes what that file applied before it applies it again: restore gitops, or suspend pruning for the change"))
	return nil
}
