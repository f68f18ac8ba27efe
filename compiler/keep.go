package compiler

import (
	"fmt"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// keeper decides what of the previous output stays: failure never deletes.
type keeper struct {
	environment *Environment
	// records are those of cluster types of which something may have to be kept.
	records  map[string]*tree.ClusterTypeRecord
	recorded map[folderKey]*tree.AssignmentRecord
	errors   map[string][]diag.Diagnostic // assignment -> what concerns it
}

// folderKey names an assignment's folder.
type folderKey struct{ clusterType, target string }

func newKeeper(e *Environment) *keeper {
	return &keeper{environment: e, records: map[string]*tree.ClusterTypeRecord{}, recorded: map[folderKey]*tree.AssignmentRecord{}, errors: map[string][]diag.Diagnostic{}}
}

// load reads the records of cluster types of which something may have to be kept.
func (k *keeper) load() error {
	e := k.environment
	if e.record == nil {
		return nil
	}
	failed := map[string]bool{}
	for i := range e.rows {
		if e.rows[i].failed {
			failed[e.Schedule.Assignments[i].ClusterType.Name] = true
		}
	}
	for _, summary := range e.record.ClusterTypes {
		if !e.builds(summary.Name) || !failed[summary.Name] && !e.Model.Uncertain {
			continue
		}
		ct, err := e.record.ClusterType(summary.Name)
		if err != nil {
			return err
		}
		k.records[ct.Name] = ct
		for i := range ct.Assignments {
			a := &ct.Assignments[i]
			k.recorded[folderKey{ct.Name, a.DeploymentTarget}] = a
		}
	}
	return nil
}

// keptOf returns the recorded folders of a cluster type that may have to be kept.
func (k *keeper) keptOf(clusterType string) []tree.AssignmentRecord {
	if ct := k.records[clusterType]; ct != nil {
		return ct.Assignments
	}
	return nil
}

// explain lets the reasons name the codes of the errors.
func (k *keeper) explain(ds []diag.Diagnostic) {
	for _, d := range ds {
		for _, a := range d.Assignments {
			k.errors[a] = append(k.errors[a], d)
		}
	}
}

// assignment returns the last good folder of an assignment that failed.
func (k *keeper) assignment(a *schedule.Assignment) (tree.Folder, bool) {
	r, recorded := k.recorded[folderKey{a.ClusterType.Name, a.Target.FullName}]
	if !recorded {
		return tree.Folder{}, false
	}
	reason := "errors: " + codes(k.errors[a.ID(k.environment.Name)])
	return tree.Folder{Info: r.Folder, Kept: &tree.Kept{Reason: reason}}, true
}

// needed returns the recorded folders that kept ones depend on and that would go:
// what is kept would wait for them for ever. kept is all that is kept so far,
// and there what else there is.
func (k *keeper) needed(clusterType string, kept []backends.Folder, there map[string]bool) []backends.Folder {
	var out []backends.Folder
	for todo := kept; len(todo) > 0; {
		f := todo[0]
		todo = todo[1:]
		for _, target := range f.DependsOn {
			r, recorded := k.recorded[folderKey{clusterType, target}]
			if there[target] || !recorded {
				continue
			}
			there[target] = true
			out, todo = append(out, r.Folder), append(todo[:len(todo):len(todo)], r.Folder)
		}
	}
	return out
}

const uncertain = "errors hide which assignments there are"

// others returns the folders of assignments that an uncertain environment may
// only seem to have lost.
func (k *keeper) others(clusterType string, there []tree.Folder) []tree.Folder {
	if !k.environment.Model.Uncertain {
		return nil
	}
	known := map[string]bool{}
	for _, f := range there {
		known[f.Info.DeploymentTarget] = true
	}
	var out []tree.Folder
	for _, r := range k.keptOf(clusterType) {
		if !known[r.DeploymentTarget] {
			out = append(out, tree.Folder{Info: r.Folder, Kept: &tree.Kept{Reason: uncertain}})
		}
	}
	return out
}

// clusterTypes returns the cluster types that are no longer in the platform, but
// stay: whole, where an uncertain environment may only seem to have lost them, and
// those of other shards.
func (k *keeper) clusterTypes() []clusterType {
	e := k.environment
	if e.record == nil {
		return nil
	}
	known := map[string]bool{}
	for _, ct := range e.Model.ClusterTypes {
		known[ct.Name] = true
	}
	var out []clusterType
	for _, ct := range e.record.ClusterTypes {
		switch {
		case known[ct.Name]:
		case !e.builds(ct.Name):
			out = append(out, clusterType{tree: tree.ClusterType{Name: ct.Name, Outside: true}})
		case e.Model.Uncertain:
			content := &tree.Content{Kept: uncertain, Folders: k.others(ct.Name, nil)}
			kept := clusterType{
				tree:    tree.ClusterType{Name: ct.Name, Content: func() (*tree.Content, error) { return content, nil }},
				summary: Summary{ClusterTypes: 1},
			}
			kept.summary.count(content.Folders)
			out = append(out, kept)
		}
	}
	return out
}

// reportChanges warns of what goes with the previous output: namespaces, with
// everything in them, and objects that apply folders one by one.
func (e *Environment) reportChanges(k *keeper, outcomes []clusterType) error {
	if e.record == nil {
		return nil
	}
	now := map[string]int{}
	for n := range e.Model.ClusterTypes {
		now[e.Model.ClusterTypes[n].Name] = n
	}
	for _, summary := range e.record.ClusterTypes {
		n, there := now[summary.Name]
		stays := !e.builds(summary.Name) || !there && e.Model.Uncertain
		if stays || there && summary.Digest != "" && summary.Digest == outcomes[n].tree.Digest {
			continue
		}
		before, err := e.record.ClusterType(summary.Name)
		if err != nil {
			return err
		}
		namespaces := map[string]string{}
		if there {
			namespaces = e.namespaces(n, outcomes[n].folders)
		}
		e.reportNamespaces(before, namespaces)
		if there && outcomes[n].kept == "" {
			e.reportIndex(before)
		}
	}
	return nil
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

// reportNamespaces warns of namespaces of a cluster type that go; now are those
// that there are.
func (e *Environment) reportNamespaces(before *tree.ClusterTypeRecord, now map[string]string) {
	for _, a := range before.Assignments {
		namespace, there := now[a.DeploymentTarget]
		id := e.Name + "/" + before.Name + "/" + a.DeploymentTarget
		switch onMachine := forMachines(a.Backend); {
		case !there && onMachine:
			e.report(machineRemoval(before.Name, a.Folder).For(id))
		case !there || namespace != a.Namespace && !onMachine:
			e.report(removal(before.Name, a.Folder, namespace).For(id))
		}
	}
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
func (e *Environment) reportIndex(before *tree.ClusterTypeRecord) {
	if _, had := before.Files[backends.AssignmentsFile]; !had || e.Model.GitOps != nil {
		return
	}
	ref := model.Ref{Collection: "environments", Name: e.Name}
	e.report(diag.New(diag.IndexGoes, fmt.Sprintf("cluster type %s loses its %s, as environment %s has no gitops any more", before.Name, backends.AssignmentsFile, e.Name)).
		At(ref, "").On(ref.String()).
		Hinting("the reconciler deletes what that file applied before it applies it again: restore gitops, or suspend pruning for the change"))
}
