package compiler

import (
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// keeper decides what of the previous output stays: failure never deletes.
type keeper struct {
	environment *Environment
	record      *tree.Record
	recorded    map[folderKey]*tree.AssignmentRecord
	errors      map[string][]diag.Diagnostic // assignment -> what concerns it
}

// folderKey names an assignment's folder.
type folderKey struct{ clusterType, target string }

func newKeeper(e *Environment, record *tree.Record) *keeper {
	k := &keeper{environment: e, record: record, recorded: map[folderKey]*tree.AssignmentRecord{}, errors: map[string][]diag.Diagnostic{}}
	for _, ct := range k.clusterTypeRecords() {
		for i := range ct.Assignments {
			a := &ct.Assignments[i]
			k.recorded[folderKey{ct.Name, a.DeploymentTarget}] = a
		}
	}
	return k
}

// explain lets the reasons name the codes of the errors.
func (k *keeper) explain(ds []diag.Diagnostic) {
	for _, d := range ds {
		for _, a := range d.Assignments {
			k.errors[a] = append(k.errors[a], d)
		}
	}
}

func (k *keeper) clusterTypeRecords() []tree.ClusterTypeRecord {
	if k.record == nil {
		return nil
	}
	return k.record.ClusterTypes
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
	for _, ct := range k.clusterTypeRecords() {
		if ct.Name != clusterType {
			continue
		}
		for _, r := range ct.Assignments {
			if !known[r.DeploymentTarget] {
				out = append(out, tree.Folder{Info: r.Folder, Kept: &tree.Kept{Reason: uncertain}})
			}
		}
	}
	return out
}

// clusterTypes returns the cluster types that an uncertain environment may only
// seem to have lost, whole.
func (k *keeper) clusterTypes() []tree.ClusterType {
	if !k.environment.Model.Uncertain {
		return nil
	}
	known := map[string]bool{}
	for _, ct := range k.environment.Model.ClusterTypes {
		known[ct.Name] = true
	}
	var out []tree.ClusterType
	for _, ct := range k.clusterTypeRecords() {
		if !known[ct.Name] {
			out = append(out, tree.ClusterType{Name: ct.Name, Kept: uncertain, Folders: k.others(ct.Name, nil)})
		}
	}
	return out
}

// reportNamespaces warns of namespaces that go, with everything in them.
func (e *Environment) reportNamespaces(record *tree.Record) {
	if record == nil {
		return
	}
	now := map[folderKey]string{}
	for _, ct := range e.Tree.ClusterTypes {
		for _, f := range ct.Folders {
			now[folderKey{ct.Name, f.Info.DeploymentTarget}] = f.Info.Namespace
		}
	}
	for _, ct := range record.ClusterTypes {
		for _, a := range ct.Assignments {
			namespace, there := now[folderKey{ct.Name, a.DeploymentTarget}]
			if there && namespace == a.Namespace {
				continue
			}
			id := e.Name + "/" + ct.Name + "/" + a.DeploymentTarget
			e.report([]diag.Diagnostic{removal(ct.Name, a.Folder, namespace).For(id)})
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

// reportIndexes warns of cluster types whose folders are no longer applied by an
// object each, as they are with gitops: the objects go, with what they applied.
func (e *Environment) reportIndexes(record *tree.Record) {
	if record == nil || e.Model.GitOps != nil {
		return
	}
	for _, ct := range record.ClusterTypes {
		_, had := ct.Files[backends.AssignmentsFile]
		i := slices.IndexFunc(e.Tree.ClusterTypes, func(c tree.ClusterType) bool { return c.Name == ct.Name })
		if !had || i < 0 || e.Tree.ClusterTypes[i].Kept != "" {
			continue
		}
		ref := model.Ref{Collection: "environments", Name: e.Name}
		e.report([]diag.Diagnostic{diag.New(diag.IndexGoes, fmt.Sprintf("cluster type %s loses its %s, as environment %s has no gitops any more", ct.Name, backends.AssignmentsFile, e.Name)).
			At(ref, "").On(ref.String()).
			Hinting("the reconciler deletes what that file applied before it applies it again: restore gitops, or suspend pruning for the change")})
	}
}
