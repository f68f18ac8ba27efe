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
// cause others of its cluster type, until nothing changes.
func (e *Environment) settle(k *keeper) {
	for n, at := range e.spans {
		ct := &e.Model.ClusterTypes[n]
		if !e.builds(ct.Name) {
			continue
		}
		s := &standing{e, ct, at, k}
		for s.mayFail() && s.fail() {
		}
	}
}

// standing is what a cluster type's folder would hold.
type standing struct {
	*Environment
	ct     *model.ClusterType
	at     span
	keeper *keeper
}

// mayFail says whether there is anything to settle: where nothing failed and
// nothing may be kept there is not.
func (s *standing) mayFail() bool {
	for i := s.at.first; i < s.at.next; i++ {
		if s.rows[i].failed {
			return true
		}
	}
	return len(s.keeper.keptOf(s.ct.Name)) > 0
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
	for i := s.at.first; i < s.at.next; i++ {
		target := s.Schedule.Assignments[i].Target.FullName
		there[target] = there[target] || !s.rows[i].failed
	}
	for i := s.at.first; i < s.at.next; i++ {
		if s.rows[i].failed {
			continue
		}
		a := &s.Schedule.Assignments[i]
		if d, cannot := s.cannotStand(a, s.folder(i, emissionHead{}), kept, owner, there); cannot {
			s.report(d.For(a.ID(s.Name)))
			s.rows[i].failed, failed = true, true
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
	for i := s.at.first; i < s.at.next; i++ {
		a := &s.Schedule.Assignments[i]
		known[a.Target.FullName] = true
		if folder, kept := s.keeper.assignment(a); kept && s.rows[i].failed {
			out = append(out, folder.Info)
		}
	}
	for _, f := range s.keeper.others(s.ct.Name, known) {
		known[f.Info.DeploymentTarget] = true
		out = append(out, f.Info)
	}
	return append(out, s.keeper.needed(s.ct.Name, out, known)...)
}
