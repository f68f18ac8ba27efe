package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// settle fails the assignments that depend on failed ones, and lets clusters stay with the
// folders that they follow. Each step may cause the other, so settle repeats both until nothing
// changes.
func settle(s *scope, as *assignments, r *retainedOutput, entries *entries, out *reports) (*keeper,
	error) {
	for {
		k, err := newKeeper(s, as, r, entries)
		if err != nil {
			return nil, err
		}
		failDependents(s, as, k, out)
		more, err := entries.holdBack(as, k)
		if err == nil && !more {
			more, err = entries.unmet(as)
		}
		if err == nil && !more {
			entries.reportWaits()
		}
		if err != nil || !more {
			return k, err
		}
	}
}

// keeper decides which parts of the previous output stay. A failure never deletes anything.
type keeper struct {
	in       *Inputs
	scope    *scope
	retained *retainedOutput
	entries  *entries
	// records are the records of the cluster types that may have to keep something, by name.
	records  map[string]*tree.ClusterTypeRecord
	recorded map[folderKey]*tree.AssignmentRecord
	errors   map[string][]diag.Diagnostic // assignment -> the diagnostics about it
}

// folderKey names an assignment's folder.
type folderKey struct{ clusterType, target string }

// newKeeper reads the records of the cluster types that may have to keep something.
func newKeeper(s *scope, as *assignments, r *retainedOutput, e *entries) (*keeper, error) {
	k := &keeper{in: s.in, scope: s, retained: r, entries: e,
		records:  map[string]*tree.ClusterTypeRecord{},
		recorded: map[folderKey]*tree.AssignmentRecord{}, errors: map[string][]diag.Diagnostic{}}
	if s.record == nil {
		return k, nil
	}
	failed := map[string]bool{}
	for n, at := range s.in.spans {
		failed[s.in.Model.ClusterTypes[n].Name] = as.failedIn(at)
	}
	for _, entry := range s.record.ClusterTypes {
		if tree.IsShard(entry.Name) || !s.builds(entry.Name) {
			continue
		}
		gone := e.types[entry.Name] == nil && e.followed[entry.Name]
		if !failed[entry.Name] && !s.in.Model.Incomplete && r.folders[entry.Name] == nil &&
			!s.holdsLost(entry.Name) && e.needed[entry.Name] == nil && !gone {
			continue
		}
		ct, err := s.record.ClusterType(entry.Name)
		if err != nil {
			return nil, err
		}
		k.records[ct.Name] = ct
		for i := range ct.Assignments {
			a := &ct.Assignments[i]
			k.recorded[folderKey{ct.Name, a.DeploymentTarget}] = a
		}
	}
	return k, nil
}

// keptOf returns the recorded folders of a cluster type that may have to be kept.
func (k *keeper) keptOf(clusterType string) []tree.AssignmentRecord {
	if ct := k.records[clusterType]; ct != nil {
		return ct.Assignments
	}
	return nil
}

// assignment returns the last good folder of an assignment that failed.
func (k *keeper) assignment(a *schedule.Assignment) (tree.Folder, bool) {
	r, recorded := k.recorded[folderKey{a.ClusterType.Name, a.Target.FullName}]
	if !recorded {
		return tree.Folder{}, false
	}
	why := failedAssignment.kept(codes(k.errors[a.ID(k.in.Name)]))
	return tree.Folder{Info: r.Folder, Kept: &tree.Retention{Reason: why}}, true
}

// needed returns the recorded folders that kept folders depend on and that would be removed.
// Without them, the kept folders would wait for their dependencies forever. kept are the kept
// folders so far, and there has the deployment targets of all folders so far.
func (k *keeper) needed(clusterType string, kept []backends.Folder,
	there map[string]bool) []backends.Folder {
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

// stays returns why a recorded folder stays although no policy assigns it. It returns "" if the
// folder is removed.
func (k *keeper) stays(clusterType, target string) string {
	switch {
	case k.in.Model.Incomplete:
		return hiddenAssignments.kept("")
	case k.retained.folders[clusterType][target]:
		return emptySelector.kept("")
	case k.gone(clusterType):
		return namedByEntries.kept("")
	case k.entries.needed[clusterType][target]:
		return neededByClusters.kept("")
	}
	return ""
}

// gone reports whether a cluster type has left the platform while entries of clusters name its
// folder.
func (k *keeper) gone(clusterType string) bool {
	return k.entries.types[clusterType] == nil && k.entries.followed[clusterType]
}

// pulledByEntries reports whether clusters pull a cluster type by entries. Then a cluster of it
// without an entry pulls nothing.
func (k *keeper) pulledByEntries(clusterType string) bool {
	for folder := range k.entries.followed {
		if model.TypeOfFolder(folder) == model.TypeOfFolder(clusterType) {
			return true
		}
	}
	return false
}

// others returns the recorded folders that stay although no policy assigns them. An uncertain
// environment may only seem to have lost their assignments, or a selector selected them and now
// selects nothing. there has the deployment targets of the assigned folders.
func (k *keeper) others(clusterType string, there map[string]bool) []tree.Folder {
	var out []tree.Folder
	for _, r := range k.keptOf(clusterType) {
		if why := k.stays(clusterType, r.DeploymentTarget); why != "" && !there[r.DeploymentTarget] {
			out = append(out, tree.Folder{Info: r.Folder, Kept: &tree.Retention{Reason: why}})
		}
	}
	return out
}

// keepReason returns why a cluster type that has left the platform stays whole. It returns "" if
// the cluster type is removed.
func (k *keeper) keepReason(clusterType string) string {
	switch {
	case k.in.Model.Incomplete:
		return hiddenAssignments.kept("")
	case k.retained.folders[clusterType] != nil:
		return emptySelector.kept("")
	case k.gone(clusterType):
		return namedByEntries.kept("")
	}
	return ""
}

// failDependents fails the emissions that cannot be built after other failures. A kept folder
// still has its namespace and its reconciler's objects, and nothing can wait for a missing
// folder. Each failure may cause other failures in its cluster type, so failDependents repeats
// until nothing changes.
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

// dependents are the assignments of a cluster type, which depend on the content of each other's
// folders.
type dependents struct {
	in          *Inputs
	assignments *assignments
	ct          *model.ClusterType
	at          span
	keeper      *keeper
}

// mayFail reports whether there is anything to check: a failed assignment, or a folder that may
// be kept.
func (d *dependents) mayFail() bool {
	for i := d.at.first; i < d.at.next; i++ {
		if d.assignments.rows[i].failed {
			return true
		}
	}
	return len(d.keeper.keptOf(d.ct.Name)) > 0
}

// fail fails the emissions that cannot be built, and returns the reasons.
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
		if why, cannot := d.cannotBuild(a, d.assignments.folder(i, emissionSummary{}), kept, owner,
			there); cannot {
			ds = append(ds, why.For(a.ID(d.in.Name)))
			d.assignments.rows[i].failed = true
		}
	}
	return ds
}

// cannotBuild reports whether an assignment cannot be built beside the kept folders, and why.
// owner has the deployment target of each kept namespace. there has the deployment targets with a
// folder.
func (d *dependents) cannotBuild(a *schedule.Assignment, f backends.Folder, kept []backends.Folder,
	owner map[string]string, there map[string]bool) (diag.Diagnostic, bool) {
	ref := a.Workload.TargetRef(a.Target.Name)
	s := subject{clusterType: d.ct.Name, targets: []string{f.DeploymentTarget}, value: f.Namespace,
		to: f.Backend}
	why := otherReconciler
	if i := slices.IndexFunc(kept,
		func(k backends.Folder) bool { return k.Backend != f.Backend }); i >= 0 {
		s.from, s.other, ref = kept[i].Backend, kept[i].DeploymentTarget, d.ct.Ref().At("reconciler")
	} else if other := owner[f.Namespace]; other != "" && other != f.DeploymentTarget {
		why, s.other = keptNamespace, other
	} else if i := slices.IndexFunc(f.DependsOn,
		func(target string) bool { return !there[target] }); i >= 0 {
		why, s.other, ref = unbuiltDependency, f.DependsOn[i], ref.At("dependsOn")
	} else {
		return diag.Diagnostic{}, false
	}
	return why.diagnostic(s).At(ref, "").Following(d.in.Name + "/" + d.ct.Name + "/" + s.other), true
}

// kept returns the folders that the previous output would keep.
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

// holdBack lets clusters stay with their folders if their next folder lacks an assignment because
// of errors. Otherwise the cluster would lose its deployment. If a folder keeps something, the
// entries that name the folder stay too, because the kept files may need their values. holdBack
// reports whether it has held back more clusters than before.
func (e *entries) holdBack(as *assignments, k *keeper) (bool, error) {
	// Deployment targets by folder: the missing ones, the kept ones, and the kept ones that take
	// values from each cluster.
	lacks, keeps, takes := map[string][]string{}, map[string][]string{}, map[string][]string{}
	for n, at := range e.in.spans {
		for i := at.first; i < at.next; i++ {
			a, folder := &as.in.Schedule.Assignments[i], e.in.Model.ClusterTypes[n].Name
			if !as.rows[i].failed {
				continue
			}
			r, kept := k.recorded[folderKey{folder, a.Target.FullName}]
			if !kept {
				lacks[folder] = append(lacks[folder], a.Target.FullName)
				continue
			}
			keeps[folder] = append(keeps[folder], a.Target.FullName)
			b, needs := e.in.backend(a.ClusterType).(backends.Needing)
			if e.in.Plan.Tuples[e.in.Plan.TupleOf[i]].PerCluster || needs && len(b.Needs(r.Shared)) > 0 {
				takes[folder] = append(takes[folder], a.Target.FullName)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.shards)) {
		sh := e.shards[name]
		for _, r := range sh.recorded {
			if len(keeps[r.Folder]) == 0 {
				continue
			}
			if n, listed := sh.find(r.Cluster); listed && sh.entries[n].Folder == r.Folder &&
				!sh.entries[n].Kept && e.changes(sh, n, r) {
				e.wait(wait{e.types[r.Folder].TypeName(), r.Folder, ownValuesKept}, r.Cluster,
					keeps[r.Folder]...)
				e.stay(sh, n, r)
			}
		}
	}
	// A cluster that comes new does not have the values that a kept assignment takes.
	e.fresh = slices.DeleteFunc(e.fresh, func(m move) bool {
		if len(takes[m.to]) > 0 {
			e.wait(wait{e.types[m.to].TypeName(), m.to, noEntry}, m.from.Cluster, takes[m.to]...)
			m.shard.drop(m.from.Cluster)
		}
		return len(takes[m.to]) > 0
	})
	before := len(e.moves)
	var failed error
	e.moves = slices.DeleteFunc(e.moves, func(m move) bool {
		if len(lacks[m.to])+len(takes[m.to]) == 0 || failed != nil {
			return false
		}
		had, err := e.scope.record.ClusterType(m.from.Folder)
		failed = err
		of := wait{clusterType: e.types[m.to].TypeName(), folder: m.to}
		stays := len(takes[m.to]) > 0
		if stays {
			of.reason = keptWithValues
			e.wait(of, m.from.Cluster, takes[m.to]...)
		}
		for _, target := range lacks[m.to] {
			if had.Assignment(target) != nil {
				e.need(m.from.Folder, target)
				of.reason, stays = missingAssignment, true
				e.wait(of, m.from.Cluster, target)
			}
		}
		if stays {
			n, _ := m.shard.find(m.from.Cluster)
			e.stay(m.shard, n, m.from)
		}
		return stays
	})
	return len(e.moves) < before, failed
}

// changes reports whether an entry, by its number in the shard, has other files than the record.
func (e *entries) changes(sh *shard, n int, r tree.EntryRecord) bool {
	return tree.OfFiles(tree.FilesOf(e.makers[r.Folder](sh.clusters[n]))) != tree.TreeID(r.Files)
}

// need keeps a recorded folder of an assignment.
func (e *entries) need(folder, target string) {
	if e.needed[folder] == nil {
		e.needed[folder] = map[string]bool{}
	}
	e.needed[folder][target] = true
}

// unmet fails assignments whose folders would take new values from an entry that stays as it is.
// The entry does not have these values, so the cluster would get nothing in their place. unmet
// reports whether there are any such assignments.
func (e *entries) unmet(as *assignments) (bool, error) {
	staying := map[string]string{} // a cluster by the folder that its entry names
	for _, name := range slices.Sorted(maps.Keys(e.shards)) {
		for _, entry := range e.shards[name].entries {
			if entry.Kept {
				staying[entry.Folder] = entry.Cluster
			}
		}
	}
	found := false
	for n, at := range e.in.spans {
		ct := &e.in.Model.ClusterTypes[n]
		b, needs := e.in.backend(ct).(backends.Needing)
		if staying[ct.Name] == "" || !needs || e.scope.record == nil {
			continue
		}
		before, err := e.scope.record.ClusterType(ct.Name)
		if err != nil {
			return false, err
		}
		for i := at.first; i < at.next; i++ {
			summary, emitted := decodeSummary(as.rows[i].summary)
			if as.rows[i].failed || !emitted {
				continue
			}
			if _, err := summary.decodeShared(); err != nil {
				return false, err
			}
			a, had := &as.in.Schedule.Assignments[i], []string(nil)
			if before != nil {
				if r := before.Assignment(a.Target.FullName); r != nil {
					had = b.Needs(r.Shared)
				}
			}
			for _, value := range b.Needs(summary.shared) {
				if !slices.Contains(had, value) {
					as.rows[i].failed, found = true, true
					ref := model.Ref{Collection: clusters, Name: staying[ct.Name]}
					e.reports.add(newValueInEntry.diagnostic(subject{environment: e.in.Name, value: value,
						clusters: []string{ref.Name}, targets: []string{a.Target.FullName}}).
						At(ct.Ref(), "").At(ref, "").On(ref.String()).For(as.in.id(i)))
					break
				}
			}
		}
	}
	return found, nil
}

// reportWaits warns of clusters whose entries stay as they are because of errors. It also warns
// of clusters that will follow folders of another cluster type.
func (e *entries) reportWaits() {
	waits := slices.SortedFunc(maps.Keys(e.waits), func(a, b wait) int {
		return cmp.Or(cmp.Compare(a.clusterType, b.clusterType), cmp.Compare(a.folder, b.folder),
			cmp.Compare(a.reason, b.reason))
	})
	for _, of := range waits {
		ref := model.Ref{Collection: "clusterTypes", Name: of.clusterType}
		e.reports.add(of.reason.diagnostic(subject{clusterType: of.clusterType, folder: of.folder,
			clusters: slices.Sorted(maps.Keys(e.waits[of].clusters)),
			targets:  slices.Sorted(maps.Keys(e.waits[of].targets))}).At(ref, "").On(ref.String()))
	}
	moved := map[[2]string][]string{} // clusters, by their cluster types before and after
	for _, m := range e.moves {
		if from, to := model.TypeOfFolder(m.from.Folder), model.TypeOfFolder(m.to); from != to {
			moved[[2]string{from, to}] = append(moved[[2]string{from, to}], m.from.Cluster)
		}
	}
	for _, types := range slices.SortedFunc(maps.Keys(moved),
		func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		s := subject{environment: e.in.Name, from: types[0], to: types[1],
			clusters: slices.Sorted(slices.Values(moved[types]))}
		ref := model.Ref{Collection: clusters, Name: s.clusters[0]}
		e.reports.add(otherClusterType.diagnostic(s).At(ref, "").On(ref.At("clusterType").String()))
	}
}
