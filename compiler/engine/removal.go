package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// removalCheck is the result of check.
type removalCheck struct {
	effect   *effect.Effect // nil if nothing differs
	removals effect.Removals
	refused  bool // whether the output must stay as it is
}

// check compares the tree with the record of the output, cluster by cluster. It refuses a tree
// that removes too much. It also warns of other losses: namespaces with everything in them, and
// the objects that make agents apply single folders.
func (c *changes) check() (out removalCheck, err error) {
	if !c.differs() {
		return out, nil
	}
	before, after, err := c.sides()
	if err != nil {
		return out, err
	}
	of, err := effect.Compare(before, after, c.same)
	if err != nil {
		return out, err
	}
	leaves, err := c.departures(of)
	if err != nil {
		return out, err
	}
	out.effect, out.removals = of, c.bound(of, leaves)
	losing := leaves
	if r := out.removals; r.Removed+r.Emptied+r.Clusters > 0 {
		if after := c.withOtherShards(after); after != nil {
			whole, err := effect.Compare(before, after, c.ofThisBuild)
			if err != nil {
				return out, err
			}
			if losing, err = c.departures(whole); err != nil {
				return out, err
			}
			out.removals = c.bound(whole, losing)
		}
	}
	if out.removals.Excess() != "" && !c.in.request.AllowRemovals {
		c.refuse(out.removals, losing)
		if !c.in.request.Preview {
			out.refused = true
			return out, nil
		}
	}
	c.reportLeaving(leaves)
	for n := range c.types {
		if name := c.in.Model.ClusterTypes[n].Name; c.types[n].kept == "" && c.scope.builds(name) &&
			!c.same(name) {
			if err := c.reportIndex(name); err != nil {
				return out, err
			}
		}
	}
	return out, c.reportOutliving(of)
}

// bound compares the removals of an effect with the environment's limits. leaves is the result of
// departures for the same effect.
func (c *changes) bound(of *effect.Effect, leaves []departure) effect.Removals {
	loses := map[*effect.Pair]bool{}
	for _, l := range leaves {
		loses[l.pair] = !l.record.Orphan
	}
	limits := effect.Limits{Max: c.in.Model.MaxRemovals, Clusters: c.in.Model.RemovedClusters,
		Emptied: c.in.Model.MaxEmptied, MayEmpty: c.in.Model.EmptiedClusters}
	return of.Removals(limits, func(p *effect.Pair) bool { return loses[p] })
}

// departure is a removed pair, or a pair whose namespace gets another name.
type departure struct {
	pair   *effect.Pair
	record *tree.AssignmentRecord
}

// renamed returns the namespace's new name. It returns "" if the pair is removed.
func (l departure) renamed() string {
	if l.pair.Removed() {
		return ""
	}
	return l.pair.After.Namespace
}

// id returns the id of the assignment, without the class of its clusters.
func (l departure) id(environment string) string {
	return environment + "/" + l.pair.ClusterType() + "/" + l.record.DeploymentTarget
}

// departures returns the removed pairs, and the pairs whose namespace gets another name.
func (c *changes) departures(of *effect.Effect) ([]departure, error) {
	var out []departure
	parts := map[string]*tree.ClusterTypeRecord{}
	for i := range of.Pairs {
		p := &of.Pairs[i]
		if !p.Removed() && !p.Renames() {
			continue
		}
		if parts[p.Way.From] == nil {
			part, err := c.scope.record.ClusterType(p.Way.From)
			if err != nil {
				return nil, err
			}
			parts[p.Way.From] = part
		}
		a := parts[p.Way.From].Assignment(p.DeploymentTarget())
		if p.Removed() || !c.in.forMachines(a.Backend) {
			out = append(out, departure{p, a})
		}
	}
	return out, nil
}

// refuse reports too many removals, and the policies that assigned most of them. The
// environment's output stays as it is.
func (c *changes) refuse(r effect.Removals, leaves []departure) {
	ref := model.Ref{Collection: "environments", Name: c.in.Name}
	field := "removals.max"
	switch {
	case r.Emptied <= r.MaxEmptied || r.Empty:
	case r.Removed > r.Most && max(r.On, r.Assignments) > r.Least:
		field = "removals.max and removals.emptied"
	default:
		field = "removals.emptied"
	}
	var ids []string
	counts := map[model.Ref]int{}
	for _, l := range leaves {
		ids = append(ids, l.id(c.in.Name))
		for _, policy := range l.record.Policies {
			counts[model.Ref{Collection: "schedulingPolicies", Name: policy}] += l.pair.Way.Count()
		}
	}
	slices.Sort(ids)
	d := diag.New(diag.TooManyRemovals, fmt.Sprintf("environment %s: %s", c.in.Name, r.Excess())).
		On(ref.String()).For(slices.Compact(ids)...).
		Hinting(fmt.Sprintf("nothing of the environment is written; to remove them, build with "+
			"--allow-removals, or raise %s of environment %s", field, c.in.Name))
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

// reportLeaving warns of namespaces that are removed or renamed. Namespaces with the same fate
// share one warning.
func (c *changes) reportLeaving(leaves []departure) {
	var order []string
	alike := map[string][]departure{}
	for _, l := range leaves {
		if b := c.in.request.Backends[l.record.Backend]; l.pair.Way.Leaves() && c.folderStays(l.pair) &&
			b != nil && !b.Traits().DeletesUnlisted {
			continue
		}
		key := fmt.Sprint(c.in.forMachines(l.record.Backend), l.record.Orphan, l.renamed() != "",
			c.holdsUp(l))
		if alike[key] == nil {
			order = append(order, key)
		}
		alike[key] = append(alike[key], l)
	}
	for _, key := range order {
		c.reports.add(c.departureDiagnostic(alike[key]))
	}
}

// folderStays reports whether clusters lose a pair only because they are no longer listed, while
// their cluster type stays. It also returns true if the platform removes all these clusters by
// name, because then their deployments no longer exist.
func (c *changes) folderStays(p *effect.Pair) bool {
	byName := !slices.ContainsFunc(p.Way.Clusters,
		func(name string) bool { return !slices.Contains(c.in.Model.RemovedClusters, name) })
	return byName || slices.ContainsFunc(c.tree.ClusterTypes,
		func(ct tree.ClusterType) bool { return ct.Name == p.Way.From })
}

// departureDiagnostic warns of folders with the same fate.
func (c *changes) departureDiagnostic(leaves []departure) diag.Diagnostic {
	first := leaves[0]
	on := first.pair.ClusterType()
	if names := first.pair.Way.Clusters; len(names) == 1 {
		on += " on cluster " + names[0]
	}
	d := removal(on, first.record.Folder, first.renamed())
	if c.in.forMachines(first.record.Backend) {
		d = machineRemoval(on, first.record.Folder)
	}
	number := 0
	var ids []string
	for _, l := range leaves {
		number += l.pair.Way.Count()
		ids = append(ids, l.id(c.in.Name))
	}
	if number > 1 {
		d.Message = departuresMessage(leaves, number, c.in.forMachines(first.record.Backend))
	}
	if hint := c.holdsUp(first); hint != "" {
		d = d.Hinting(strings.TrimPrefix(d.Hint+"; "+hint, "; "))
	}
	slices.Sort(ids)
	return d.For(slices.Compact(ids)...)
}

// holdsUp returns a hint about obstacles to the removal of a pair. It returns "" if there are no
// known obstacles.
func (c *changes) holdsUp(l departure) string {
	if b := c.in.request.Backends[l.record.Backend]; b != nil && l.renamed() == "" {
		return b.Traits().Removal
	}
	return ""
}

// departuresMessage is the message for several folders with the same fate, on machines or
// clusters.
func departuresMessage(leaves []departure, number int, machines bool) string {
	first := leaves[0]
	switch {
	case machines && first.record.Orphan:
		return fmt.Sprintf("%d deployment targets are removed from machines, and their users and "+
			"directories stay, as their namespace services say", number)
	case machines:
		return fmt.Sprintf("%d deployment targets are removed from machines", number)
	case first.renamed() != "" && first.record.Orphan:
		return fmt.Sprintf("%d namespaces are replaced by others, and stay on the clusters, as their "+
			"namespace services say: %s", number, renames(leaves))
	case first.renamed() != "":
		return fmt.Sprintf("%d namespaces are renamed: %s", number, renames(leaves))
	case first.record.Orphan:
		return fmt.Sprintf("%d namespaces lose their assignments, and stay on the clusters, as their "+
			"namespace services say", number)
	}
	return fmt.Sprintf("%d namespaces are removed with their assignments", number)
}

// renames lists at most three renamed namespaces, and the number of the others.
func renames(leaves []departure) string {
	var out []string
	for _, l := range leaves[:min(len(leaves), 3)] {
		out = append(out, l.record.Namespace+" to "+l.renamed())
	}
	if more := len(leaves) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// removal describes what happens to the namespace of a removed folder, or of a folder whose
// namespace gets another name.
func removal(clusterType string, f backends.Folder, renamed string) diag.Diagnostic {
	what := "is removed with its assignment"
	switch {
	case f.Orphan && renamed != "":
		what = "is replaced by " + renamed + ", and stays on the clusters, as its namespace service says"
	case f.Orphan:
		what = "loses its assignment, and stays on the clusters, as its namespace service says"
	case renamed != "":
		what = "is renamed to " + renamed
	}
	d := diag.New(diag.RemovesNamespace,
		fmt.Sprintf("namespace %s of cluster type %s %s", f.Namespace, clusterType, what))
	if f.Orphan {
		return d
	}
	return d.
		Hinting("everything in the namespace goes with it; to leave the namespace on the clusters, " +
			"build and sync it once with deletion: \"orphan\" on the namespace service before this change")
}

// reportIndex warns of a cluster type that loses the objects that apply its folders one by one.
// An environment has these objects only with gitops. When they are removed, the reconciler
// deletes everything that they applied.
func (c *changes) reportIndex(clusterType string) error {
	if c.in.Model.GitOps != nil {
		return nil
	}
	before, err := c.scope.record.Part(clusterType, func(string, string, bool) bool { return false })
	if err != nil || before == nil {
		return err
	}
	if _, had := before.Files[backends.AssignmentsFile]; !had {
		return nil
	}
	ref := model.Ref{Collection: "environments", Name: c.in.Name}
	c.reports.add(diag.New(diag.IndexGoes,
		fmt.Sprintf("cluster type %s loses its %s, as environment %s has no gitops any more", clusterType,
			backends.AssignmentsFile, c.in.Name)).
		At(ref, "").On(ref.String()).
		Hinting("the reconciler deletes what that file applied before it applies it again: restore " +
			"gitops, or suspend pruning for the change"))
	return nil
}

// machineRemoval describes what the machines of a cluster type lose when an assignment is
// removed.
func machineRemoval(clusterType string, f backends.Folder) diag.Diagnostic {
	what := fmt.Sprintf("%s is removed from the machines of cluster type %s", f.DeploymentTarget,
		clusterType)
	if f.Orphan {
		return diag.New(diag.RemovesNamespace,
			what+", and its user and directories stay, as its namespace service says")
	}
	return diag.New(diag.RemovesNamespace, what).
		Hinting("its user goes with /etc/<user>, /var/lib/<user> and what is in them, and so do " +
			"packages, files and units that nothing else on the machine needs; to leave the user and the " +
			"directories, build and deploy it once with deletion: \"orphan\" on the namespace service " +
			"before this change")
}
