package compiler

import (
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
)

// settle fails the emissions that cannot stand beside what the failure of others
// leaves: a folder that is kept still has its namespace and its reconciler's
// objects, and one that is not there cannot be waited for. Each failure may
// cause others, until nothing changes.
func (e *Environment) settle(emissions []emission, k *keeper) {
	for settled := false; !settled; {
		settled = true
		for ct, at := range e.spans {
			s := &standing{e, ct, e.Schedule.Assignments[at.first:at.next], emissions[at.first:at.next], k}
			if s.fail() {
				settled = false
			}
		}
	}
}

// standing is what a cluster type's folder would hold.
type standing struct {
	*Environment
	ct          *model.ClusterType
	assignments []schedule.Assignment
	emissions   []emission
	keeper      *keeper
}

// fail fails the emissions that cannot stand, and returns whether there were some.
func (s *standing) fail() bool {
	kept := s.kept()
	failed := false
	there := map[string]bool{}
	owner := map[string]string{} // namespace -> the kept folder that has it
	for _, f := range kept {
		there[f.DeploymentTarget] = true
		owner[f.Namespace] = f.DeploymentTarget
	}
	for i := range s.emissions {
		there[s.assignments[i].Target.FullName] = there[s.assignments[i].Target.FullName] || !s.emissions[i].failed
	}
	for i := range s.emissions {
		if s.emissions[i].failed {
			continue
		}
		if d, cannot := s.cannotStand(&s.assignments[i], s.emissions[i].folder, kept, owner, there); cannot {
			s.report([]diag.Diagnostic{d.For(s.assignments[i].ID(s.Name))})
			s.emissions[i].failed, failed = true, true
		}
	}
	return failed
}

func (s *standing) cannotStand(a *schedule.Assignment, f backends.Folder, kept []backends.Folder, owner map[string]string, there map[string]bool) (diag.Diagnostic, bool) {
	ref := a.Workload.TargetRef(a.Target.Name)
	if i := slices.IndexFunc(kept, func(k backends.Folder) bool { return k.Backend != f.Backend }); i >= 0 {
		return diag.New(diag.ReconcilerChange, fmt.Sprintf("cluster type %s cannot go from %s to %s while %s keeps its last good folder", s.ct.Name, kept[i].Backend, f.Backend, kept[i].DeploymentTarget)).
			At(model.Ref{Collection: "clusterTypes", Name: s.ct.Name, Path: "reconciler"}, "").
			Hinting("correct the errors of " + kept[i].DeploymentTarget + " first"), true
	}
	if other := owner[f.Namespace]; other != "" && other != f.DeploymentTarget {
		return diag.New(diag.NamespaceCollision, fmt.Sprintf("the namespace %s is still that of %s, which keeps its last good folder", f.Namespace, other)).
			At(ref, "").Hinting("correct the errors of " + other + " first"), true
	}
	for _, target := range f.DependsOn {
		if !there[target] {
			return diag.New(diag.DependsOn, fmt.Sprintf("%s depends on %s, which has errors and was never built", f.DeploymentTarget, target)).
				At(ref.At("dependsOn"), "").Hinting("correct the errors of " + target + " first"), true
		}
	}
	return diag.Diagnostic{}, false
}

// kept returns the folders that would be kept.
func (s *standing) kept() []backends.Folder {
	var out []backends.Folder
	known := map[string]bool{}
	for i := range s.assignments {
		known[s.assignments[i].Target.FullName] = true
		if folder, kept := s.keeper.assignment(&s.assignments[i]); kept && s.emissions[i].failed {
			out = append(out, folder.Info)
		}
	}
	if !s.Model.Uncertain {
		there := map[string]bool{}
		for i := range s.assignments {
			there[s.assignments[i].Target.FullName] = true
		}
		return append(out, s.keeper.needed(s.ct.Name, out, there)...)
	}
	for _, ct := range s.keeper.clusterTypeRecords() {
		if ct.Name != s.ct.Name {
			continue
		}
		for _, a := range ct.Assignments {
			if !known[a.DeploymentTarget] {
				out = append(out, a.Folder)
			}
		}
	}
	return out
}
