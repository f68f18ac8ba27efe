package compiler

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

// Removals are the assignments that a build takes out of an environment's tree.
type Removals struct {
	// Removed are those that are in the record and not in the tree, by id, sorted. One
	// that moves to another cluster type is among them.
	Removed []string
	// Recorded is how many the record has, of all cluster types, and Most how many of
	// them one build removes.
	Recorded, Most int
	// Empties says that nothing is left.
	Empties bool
}

// TooMany says whether the removals have to be allowed.
func (r Removals) TooMany() bool { return len(r.Removed) > r.Most || r.Empties }

// String counts what goes against what may, in words.
func (r Removals) String() string {
	if r.Empties {
		return fmt.Sprintf("all %d assignments are removed, and nothing is left", r.Recorded)
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

// checkChanges refuses a tree that takes too much away, and warns of what goes with the
// previous output: namespaces, with everything in them, and objects that apply folders
// one by one.
func (e *Environment) checkChanges(k *keeper, outcomes []clusterType) error {
	if e.record == nil {
		return nil
	}
	leaves, reindexed, err := e.leaving(k, outcomes)
	if err != nil {
		return err
	}
	e.Removals = e.removals(leaves)
	if e.Removals.TooMany() && !e.request.AllowRemovals {
		e.refuse(leaves)
		return nil
	}
	e.reportLeaving(leaves)
	for _, before := range reindexed {
		e.reportIndex(before)
	}
	return e.reportOutliving(k, outcomes)
}

// changedType is a recorded cluster type of the build whose folder is not known to be as
// it was.
type changedType struct {
	before *tree.ClusterTypeRecord
	number int  // in the model
	there  bool // whether the model has it
}

// changed returns the recorded cluster types that are not known to be as they were, in
// the record's order.
func (e *Environment) changed(k *keeper, outcomes []clusterType) ([]changedType, error) {
	now := map[string]int{}
	for n := range e.Model.ClusterTypes {
		now[e.Model.ClusterTypes[n].Name] = n
	}
	var out []changedType
	for _, summary := range e.record.ClusterTypes {
		n, there := now[summary.Name]
		stays := !e.builds(summary.Name) || !there && k.whole(summary.Name) != ""
		if stays || there && summary.Digest != "" && summary.Digest == outcomes[n].tree.Digest {
			continue
		}
		before, err := e.record.ClusterType(summary.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, changedType{before, n, there})
	}
	return out, nil
}

// leaving returns the recorded folders that go or whose namespaces get other names, and
// the records of the cluster types whose root files are made anew.
func (e *Environment) leaving(k *keeper, outcomes []clusterType) (leaves []leaving, reindexed []*tree.ClusterTypeRecord, err error) {
	changed, err := e.changed(k, outcomes)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range changed {
		before, n, there := c.before, c.number, c.there
		namespaces := map[string]string{}
		if there {
			namespaces = e.namespaces(n, outcomes[n].folders)
		}
		for i := range before.Assignments {
			a := &before.Assignments[i]
			namespace, stays := namespaces[a.DeploymentTarget]
			if !stays || namespace != a.Namespace && !forMachines(a.Backend) {
				leaves = append(leaves, leaving{before.Name, a, namespace})
			}
		}
		if there && outcomes[n].kept == "" {
			reindexed = append(reindexed, before)
		}
	}
	return leaves, reindexed, nil
}

// removals counts what goes, beside what there was and what is there afterwards.
func (e *Environment) removals(leaves []leaving) Removals {
	r := Removals{}
	left := e.Summary.Assignments + e.Summary.Kept
	for _, summary := range e.record.ClusterTypes {
		r.Recorded += summary.Assignments
		if !e.builds(summary.Name) {
			left += summary.Assignments
		}
	}
	for _, l := range leaves {
		if l.renamed == "" {
			r.Removed = append(r.Removed, l.id(e.Name))
		}
	}
	slices.Sort(r.Removed)
	r.Most = mostRemovals(e.Model.MaxRemovals, r.Recorded)
	r.Empties = left == 0 && len(r.Removed) > 0
	return r
}

// refuse leaves the environment's output as it is, and says why, and what assigned what
// would go.
func (e *Environment) refuse(leaves []leaving) {
	ref := model.Ref{Collection: "environments", Name: e.Name}
	d := diag.New(diag.TooManyRemovals, fmt.Sprintf("environment %s: %s", e.Name, e.Removals)).
		On(ref.String()).For(e.Removals.Removed...).
		Hinting(fmt.Sprintf("nothing of the environment is written; if these assignments are to go, build with --allow-removals, or raise removals.max of environment %s", e.Name))
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
	e.report(d.At(ref, ""))
	e.Tree, e.Summary = nil, Summary{}
}

// reportLeaving warns of namespaces that go or get other names. What goes alike is one
// warning.
func (e *Environment) reportLeaving(leaves []leaving) {
	var order []string
	alike := map[string][]leaving{}
	for _, l := range leaves {
		key := fmt.Sprint(forMachines(l.record.Backend), l.record.Orphan, l.renamed != "")
		if alike[key] == nil {
			order = append(order, key)
		}
		alike[key] = append(alike[key], l)
	}
	for _, key := range order {
		e.report(e.departure(alike[key]))
	}
}

// departure warns of folders that go alike.
func (e *Environment) departure(leaves []leaving) diag.Diagnostic {
	first := leaves[0]
	d := removal(first.clusterType, first.record.Folder, first.renamed)
	if forMachines(first.record.Backend) {
		d = machineRemoval(first.clusterType, first.record.Folder)
	}
	if len(leaves) > 1 {
		d.Message = departures(leaves)
	}
	for _, l := range leaves {
		d = d.For(l.id(e.Name))
	}
	return d
}

// departures is the message for several folders that go alike.
func departures(leaves []leaving) string {
	first := leaves[0]
	switch {
	case forMachines(first.record.Backend) && first.record.Orphan:
		return fmt.Sprintf("%d deployment targets are removed from machines, and their users and directories stay, as their namespace services say", len(leaves))
	case forMachines(first.record.Backend):
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

// namespaces returns those of a cluster type's folders by deployment target;
// folders may be nil where no assignment failed.
func (e *Environment) namespaces(n int, folders []tree.Folder) map[string]string {
	out := map[string]string{}
	if folders == nil {
		for i := e.spans[n].first; i < e.spans[n].next; i++ {
			out[e.Schedule.Assignments[i].Target.FullName] = e.Plan.Namespaces[i]
		}
	}
	for _, f := range folders {
		out[f.Info.DeploymentTarget] = f.Info.Namespace
	}
	return out
}

// reportIndex warns of a cluster type whose folders are no longer applied by an
// object each, as they are with gitops: the objects go, with what they applied.
func (e *Environment) reportIndex(before *tree.ClusterTypeRecord) {
	if _, had := before.Files[backends.AssignmentsFile]; !had || e.Model.GitOps != nil {
		return
	}
	ref := model.Ref{Collection: "environments", Name: e.Name}
	e.report(diag.New(diag.IndexGoes, fmt.Sprintf("cluster type %s loses its %s, as environment %s has no gitops any more", before.Name, backends.AssignmentsFile, e.Name)).
		At(ref, "").On(ref.String()).
		Hinting("the reconciler deletes what that file applied before it applies it again: restore gitops, or suspend pruning for the change"))
}
