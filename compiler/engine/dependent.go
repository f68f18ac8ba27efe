package engine

import (
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
)

// failDependents fails the emissions that cannot be built beside what the failure of
// others leaves: a folder that is kept still has its namespace and its reconciler's
// objects, and one that is not there cannot be waited for. Each failure may
// cause others of its cluster type, until nothing changes.
func failDependents(s *scope, as *assignments, k *keeper, out *reports) {
	for n, at := range s.in.spans {
		ct := &s.in.Model.ClusterTypes[n]
		if !s.builds(ct.Name) {
			continue
		}
		d := &dependents{as.in, as, ct, at, k}
		for d.mayFail() {
			ds := d.fail()
			if len(ds) == 0 {
				break
			}
			out.add(ds...)
		}
	}
}

// dependents are the assignments of a cluster type, which depend on what each other's
// folders hold.
type dependents struct {
	in          *Inputs
	assignments *assignments
	ct          *model.ClusterType
	at          span
	keeper      *keeper
}

// mayFail says whether there is anything to look at: where nothing failed and
// nothing may be kept there is not.
func (d *dependents) mayFail() bool {
	for i := d.at.first; i < d.at.next; i++ {
		if d.assignments.rows[i].failed {
			return true
		}
	}
	return len(d.keeper.keptOf(d.ct.Name)) > 0
}

// fail fails the emissions that cannot be built, and returns why.
func (d *dependents) fail() (ds []diag.Diagnostic) {
	kept := d.kept()
	there := map[string]bool{}
	owner := map[string]string{} // namespace -> the kept folder that has it
	for _, f := range kept {
		there[f.DeploymentTarget] = true
		owner[f.Namespace] = f.DeploymentTarget
	}
	for i := d.at.first; i < d.at.next; i++ {
		target := d.in.Schedule.Assignments[i].Target.FullName
		there[target] = there[target] || !d.assignments.rows[i].failed
	}
	for i := d.at.first; i < d.at.next; i++ {
		if d.assignments.rows[i].failed {
			continue
		}
		a := &d.in.Schedule.Assignments[i]
		if why, cannot := d.cannotBuild(a, d.assignments.folder(i, emissionSummary{}), kept, owner, there); cannot {
			ds = append(ds, why.For(a.ID(d.in.Name)))
			d.assignments.rows[i].failed = true
		}
	}
	return ds
}

func (d *dependents) cannotBuild(a *schedule.Assignment, f backends.Folder, kept []backends.Folder,
	owner map[string]string, there map[string]bool) (diag.Diagnostic, bool) {
	ref := a.Workload.TargetRef(a.Target.Name)
	if i := slices.IndexFunc(kept, func(k backends.Folder) bool { return k.Backend != f.Backend }); i >= 0 {
		return diag.New(diag.ReconcilerChange,
			fmt.Sprintf("cluster type %s cannot go from %s to %s while %s keeps its last good folder",
				d.ct.Name, kept[i].Backend, f.Backend, kept[i].DeploymentTarget)).
			At(d.ct.Ref().At("reconciler"), "").
			Hinting("correct the errors of " + kept[i].DeploymentTarget +
				" first").Following(d.id(kept[i].DeploymentTarget)), true
	}
	if other := owner[f.Namespace]; other != "" && other != f.DeploymentTarget {
		return diag.New(diag.NamespaceCollision,
			fmt.Sprintf("the namespace %s is still that of %s, which keeps its last good folder", f.Namespace, other)).
			At(ref, "").Hinting("correct the errors of " + other + " first").Following(d.id(other)), true
	}
	for _, target := range f.DependsOn {
		if !there[target] {
			return diag.New(diag.DependsOn,
				fmt.Sprintf("%s depends on %s, which has errors and was never built", f.DeploymentTarget, target)).
				At(ref.At("dependsOn"), "").Hinting("correct the errors of " + target + " first").Following(d.id(target)), true
		}
	}
	return diag.Diagnostic{}, false
}

// id names the assignment of a deployment target on the cluster type.
func (d *dependents) id(target string) string {
	return d.in.Name + "/" + d.ct.Name + "/" + target
}

// kept returns the folders that would be kept.
func (d *dependents) kept() []backends.Folder {
	var out []backends.Folder
	known := map[string]bool{}
	for i := d.at.first; i < d.at.next; i++ {
		a := &d.in.Schedule.Assignments[i]
		known[a.Target.FullName] = true
		if folder, kept := d.keeper.assignment(a); kept && d.assignments.rows[i].failed {
			out = append(out, folder.Info)
		}
	}
	for _, f := range d.keeper.others(d.ct.Name, known) {
		known[f.Info.DeploymentTarget] = true
		out = append(out, f.Info)
	}
	return append(out, d.keeper.needed(d.ct.Name, out, known)...)
}
