package compiler

import (
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// keeper decides what of the previous output stays: failure never deletes.
type keeper struct {
	environment *Environment
	record      *tree.Record
	codes       map[string][]diag.Diagnostic // assignment -> its errors
}

func newKeeper(e *Environment, record *tree.Record) *keeper {
	k := &keeper{e, record, map[string][]diag.Diagnostic{}}
	for _, d := range e.diagnostics {
		for _, a := range d.Assignments {
			k.codes[a] = append(k.codes[a], d)
		}
	}
	return k
}

func (k *keeper) recorded(clusterType string) []tree.AssignmentRecord {
	if k.record == nil {
		return nil
	}
	for _, ct := range k.record.ClusterTypes {
		if ct.Name == clusterType {
			return ct.Assignments
		}
	}
	return nil
}

// assignment returns the last good folder of an assignment that failed.
func (k *keeper) assignment(a *schedule.Assignment) (tree.Folder, bool) {
	reason := "errors: " + codes(k.codes[a.ID(k.environment.Name)])
	for _, r := range k.recorded(a.ClusterType.Name) {
		if r.DeploymentTarget == a.Target.FullName {
			return tree.Folder{Info: r.Folder, Kept: &tree.Kept{Reason: reason}}, true
		}
	}
	return tree.Folder{}, false
}

const uncertain = "errors hide which assignments there are"

// others returns the folders of assignments that an uncertain environment may
// only seem to have lost.
func (k *keeper) others(clusterType string, there []tree.Folder) []tree.Folder {
	if !k.environment.Model.Uncertain {
		return nil
	}
	var out []tree.Folder
	for _, r := range k.recorded(clusterType) {
		if !slices.ContainsFunc(there, func(f tree.Folder) bool { return f.Info.DeploymentTarget == r.DeploymentTarget }) {
			out = append(out, tree.Folder{Info: r.Folder, Kept: &tree.Kept{Reason: uncertain}})
		}
	}
	return out
}

// clusterTypes returns the cluster types that an uncertain environment may only
// seem to have lost, whole.
func (k *keeper) clusterTypes() []tree.ClusterType {
	if !k.environment.Model.Uncertain || k.record == nil {
		return nil
	}
	var out []tree.ClusterType
	for _, ct := range k.record.ClusterTypes {
		known := slices.ContainsFunc(k.environment.Model.ClusterTypes, func(c model.ClusterType) bool { return c.Name == ct.Name })
		if !known {
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
	now := map[string]string{}
	for _, ct := range e.Tree.ClusterTypes {
		for _, f := range ct.Folders {
			now[ct.Name+"/"+f.Info.DeploymentTarget] = f.Info.Namespace
		}
	}
	for _, ct := range record.ClusterTypes {
		for _, a := range ct.Assignments {
			namespace, there := now[ct.Name+"/"+a.DeploymentTarget]
			id := e.Name + "/" + ct.Name + "/" + a.DeploymentTarget
			var message string
			switch {
			case !there:
				message = fmt.Sprintf("namespace %s of cluster type %s is removed with its assignment", a.Namespace, ct.Name)
			case namespace != a.Namespace:
				message = fmt.Sprintf("namespace %s of cluster type %s is renamed to %s", a.Namespace, ct.Name, namespace)
			default:
				continue
			}
			e.report([]diag.Diagnostic{diag.New(diag.RemovesNamespace, message).For(id).
				Hinting("everything in the namespace goes with it; deletion: \"orphan\" on the namespace service leaves it on the cluster")})
		}
	}
}
