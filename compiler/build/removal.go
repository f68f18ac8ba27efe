package build

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Removals are the assignments, and the clusters, that a build takes out of an
// environment's tree.
type Removals struct {
	// Removed are those that are in the record and not in the tree, by id, sorted. One
	// that moves to another cluster type is among them.
	Removed []string
	// Recorded is how many the record has, of all cluster types, and Most how many of
	// them one build removes.
	Recorded, Most int
	// Empties says that nothing is left.
	Empties bool
	// Clusters are those that the record lists and that the platform has no more, sorted,
	// RecordedClusters is how many there were, and MostClusters how many of them one build
	// removes.
	Clusters                       []string
	RecordedClusters, MostClusters int
}

// TooMany says whether the removals have to be allowed.
func (r Removals) TooMany() bool {
	return len(r.Removed) > r.Most || r.Empties || len(r.Clusters) > r.MostClusters
}

// String counts what goes against what may, in words.
func (r Removals) String() string {
	if r.Empties {
		return fmt.Sprintf("all %d assignments are removed, and nothing is left", r.Recorded)
	}
	if len(r.Removed) <= r.Most && len(r.Clusters) > r.MostClusters {
		return fmt.Sprintf("%d of %d clusters are removed, and one build removes %d at most", len(r.Clusters), r.RecordedClusters, r.MostClusters)
	}
	return fmt.Sprintf("%d of %d assignments are removed, and one build removes %d at most", len(r.Removed), r.Recorded, r.Most)
}

// leastRemovals is how many assignments one build may always remove, and usualRemovals
// how many where the environment does not say.
const (
	leastRemovals = 3
	usualRemovals = "25%"
)

// mostRemovals returns how many of a number of assignments one build may remove, by
// environments.X.removals.max: a number, or a percentage; "" for the usual.
func mostRemovals(limit string, of int) int {
	limit, most := cmp.Or(limit, usualRemovals), 0
	if percent, ok := strings.CutSuffix(limit, "%"); ok {
		share, _ := strconv.ParseFloat(percent, 64)
		most = int(share * float64(of) / 100)
	} else {
		most, _ = strconv.Atoi(limit)
	}
	return max(most, leastRemovals)
}

// leaving is a recorded folder that goes, or whose namespace gets another name.
type leaving struct {
	clusterType string
	record      *tree.AssignmentRecord
	renamed     string // the namespace's new name; "" where the folder goes
}

// id returns the assignment's.
func (l leaving) id(environment string) string {
	return environment + "/" + l.clusterType + "/" + l.record.DeploymentTarget
}

// checkRemovals refuses a tree that takes too much away, and warns of what goes with the
// previous output: namespaces, with everything in them, and objects that apply folders
// one by one.
func (e *Environment) checkRemovals(c *changes) error {
	changed, err := c.changed()
	if err != nil {
		return err
	}
	leaves, reindexed := c.leaving(changed)
	e.Removals = c.removals(leaves, e.Counts)
	c.countClusters(changed, &e.Removals)
	if e.Removals.TooMany() && !e.request.AllowRemovals {
		c.refuse(e.Removals, leaves)
		e.Tree, e.Counts = nil, Counts{}
		return nil
	}
	c.reportLeaving(leaves)
	for _, before := range reindexed {
		c.reportIndex(before)
	}
	return c.reportOutliving(changed)
}

// changes are the differences between the record of an output and the tree that is to be.
type changes struct {
	*keeper
	assignments *assignments
	types       []clusterType // of the model
	reports     *reports
}

// changedType is a recorded cluster type of the build whose folder is not known to be as
// it was.
type changedType struct {
	before *tree.ClusterTypeRecord // with the assignments that go, get another namespace, or leave something
	number int                     // in the model
	there  bool                    // whether the model has it
	// namespaces are those of the assignments of the tree that is to be, by deployment target.
	namespaces map[string]string
}

// changed returns the recorded cluster types that are not known to be as they were, in
// the record's order.
func (c *changes) changed() ([]changedType, error) {
	now := map[string]int{}
	for n := range c.Model.ClusterTypes {
		now[c.Model.ClusterTypes[n].Name] = n
	}
	var out []changedType
	for _, entry := range c.record.ClusterTypes {
		if tree.IsShard(entry.Name) { // entries go by name alone
			continue
		}
		n, there := now[entry.Name]
		stays := !c.builds(entry.Name) || !there && c.whole(entry.Name) != ""
		if stays || there && entry.Digest != "" && entry.Digest == c.types[n].tree.Digest {
			continue
		}
		t := changedType{number: n, there: there}
		t.namespaces = c.namespaces(t)
		var err error
		if t.before, err = c.record.Part(entry.Name, func(target, namespace string, retains bool) bool {
			now, stays := t.namespaces[target]
			return !stays || now != namespace || retains
		}); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// leaving returns the recorded folders that go or whose namespaces get other names, and
// the records of the cluster types whose root files are made anew.
func (c *changes) leaving(changed []changedType) (leaves []leaving, reindexed []*tree.ClusterTypeRecord) {
	elsewhere := c.inClasses()
	for _, t := range changed {
		for i := range t.before.Assignments {
			a := &t.before.Assignments[i]
			namespace, stays := t.namespaces[a.DeploymentTarget]
			if !stays && elsewhere[placed{model.TypeOfFolder(t.before.Name), a.DeploymentTarget, a.Namespace}] {
				continue
			}
			if !stays || namespace != a.Namespace && !c.forMachines(a.Backend) {
				leaves = append(leaves, leaving{t.before.Name, a, namespace})
			}
		}
		if t.there && c.types[t.number].kept == "" {
			reindexed = append(reindexed, t.before)
		}
	}
	return leaves, reindexed
}

// placed is a deployment target on a cluster type, in a namespace.
type placed struct{ clusterType, target, namespace string }

// inClasses returns what the classes of cluster types with entries have: where the folder of
// one goes, its clusters go to another.
func (c *changes) inClasses() map[placed]bool {
	out := map[placed]bool{}
	for n := range c.spans {
		if ct := &c.Model.ClusterTypes[n]; ct.Entries == model.ClusterEntries {
			for target, namespace := range c.namespaces(changedType{number: n, there: true}) {
				out[placed{ct.TypeName(), target, namespace}] = true
			}
		}
	}
	return out
}

// removals counts what goes, beside what there was and what is there afterwards.
func (c *changes) removals(leaves []leaving, summary Counts) Removals {
	r := Removals{}
	left := summary.Assignments + summary.Kept
	for _, entry := range c.record.ClusterTypes {
		r.Recorded += entry.Assignments
		if !c.builds(entry.Name) {
			left += entry.Assignments
		}
	}
	for _, l := range leaves {
		if l.renamed == "" {
			r.Removed = append(r.Removed, l.id(c.Name))
		}
	}
	slices.Sort(r.Removed)
	r.Most = mostRemovals(c.Model.MaxRemovals, r.Recorded)
	r.Empties = left == 0 && len(r.Removed) > 0
	return r
}

// countClusters counts the recorded clusters that the platform has no more. What is not
// known to have changed still has its clusters, and those that errors hide stay.
func (c *changes) countClusters(changed []changedType, r *Removals) {
	for _, t := range changed {
		for _, name := range t.before.Clusters {
			if c.lostClusters[t.before.Name].has(name) {
				continue
			}
			if c.Model.Cluster(name) == nil {
				r.Clusters = append(r.Clusters, name)
			}
		}
	}
	slices.Sort(r.Clusters)
	r.Clusters = slices.Compact(r.Clusters)
	r.RecordedClusters = len(c.Model.Clusters) + len(r.Clusters)
	r.MostClusters = mostRemovals(c.Model.MaxRemovals, r.RecordedClusters)
}

// refuse leaves the environment's output as it is, and says why, and what assigned what
// would go.
func (c *changes) refuse(r Removals, leaves []leaving) {
	ref := model.Ref{Collection: "environments", Name: c.Name}
	d := diag.New(diag.TooManyRemovals, fmt.Sprintf("environment %s: %s", c.Name, r)).
		On(ref.String()).For(r.Removed...).
		Hinting(fmt.Sprintf("nothing of the environment is written; if they are to go, build with --allow-removals, or raise removals.max of environment %s", c.Name))
	counts := map[model.Ref]int{}
	for _, l := range leaves {
		if l.renamed == "" {
			for _, policy := range l.record.Policies {
				counts[model.Ref{Collection: "schedulingPolicies", Name: policy}]++
			}
		}
	}
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
		key := fmt.Sprint(c.forMachines(l.record.Backend), l.record.Orphan, l.renamed != "")
		if alike[key] == nil {
			order = append(order, key)
		}
		alike[key] = append(alike[key], l)
	}
	for _, key := range order {
		c.reports.add(c.departure(alike[key]))
	}
}

// departure warns of folders that go alike.
func (c *changes) departure(leaves []leaving) diag.Diagnostic {
	first := leaves[0]
	d := removal(first.clusterType, first.record.Folder, first.renamed)
	if c.forMachines(first.record.Backend) {
		d = machineRemoval(first.clusterType, first.record.Folder)
	}
	if len(leaves) > 1 {
		d.Message = departures(leaves, c.forMachines(first.record.Backend))
	}
	for _, l := range leaves {
		d = d.For(l.id(c.Name))
	}
	return d
}

// departures is the message for several folders that go alike, from machines or clusters.
func departures(leaves []leaving, machines bool) string {
	first := leaves[0]
	switch {
	case machines && first.record.Orphan:
		return fmt.Sprintf("%d deployment targets are removed from machines, and their users and directories stay, as their namespace services say", len(leaves))
	case machines:
		return fmt.Sprintf("%d deployment targets are removed from machines", len(leaves))
	case first.renamed != "" && first.record.Orphan:
		return fmt.Sprintf("%d namespaces are replaced by others, and stay on the clusters, as their namespace services say: %s", len(leaves), renames(leaves))
	case first.renamed != "":
		return fmt.Sprintf("%d namespaces are renamed: %s", len(leaves), renames(leaves))
	case first.record.Orphan:
		return fmt.Sprintf("%d namespaces lose their assignments, and stay on the clusters, as their namespace services say", len(leaves))
	}
	return fmt.Sprintf("%d namespaces are removed with their assignments", len(leaves))
}

// renames lists some namespaces that get other names.
func renames(leaves []leaving) string {
	var out []string
	for _, l := range leaves[:min(len(leaves), 3)] {
		out = append(out, l.record.Namespace+" to "+l.renamed)
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

// namespaces returns those of a cluster type's folders by deployment target.
func (c *changes) namespaces(t changedType) map[string]string {
	out := map[string]string{}
	if !t.there {
		return out
	}
	if c.types[t.number].folders == nil { // no assignment failed
		for i := c.spans[t.number].first; i < c.spans[t.number].next; i++ {
			out[c.Schedule.Assignments[i].Target.FullName] = c.Plan.Namespaces[i]
		}
	}
	for _, f := range c.types[t.number].folders {
		out[f.Info.DeploymentTarget] = f.Info.Namespace
	}
	return out
}

// reportIndex warns of a cluster type whose folders are no longer applied by an
// object each, as they are with gitops: the objects go, with what they applied.
func (c *changes) reportIndex(before *tree.ClusterTypeRecord) {
	if _, had := before.Files[backends.AssignmentsFile]; !had || c.Model.GitOps != nil {
		return
	}
	ref := model.Ref{Collection: "environments", Name: c.Name}
	c.reports.add(diag.New(diag.IndexGoes, fmt.Sprintf("cluster type %s loses its %s, as environment %s has no gitops any more", before.Name, backends.AssignmentsFile, c.Name)).
		At(ref, "").On(ref.String()).
		Hinting("the reconciler deletes what that file applied before it applies it again: restore gitops, or suspend pruning for the change"))
}
