package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// unmet lets assignments fail whose folders would take values that they did not take before,
// where an entry stays as it is that has none: the cluster would get nothing in their place. It
// returns whether there are any.
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
					e.reports.add(e.lacking(ct, staying[ct.Name], a.Target.FullName, value).For(as.in.id(i)))
					break
				}
			}
		}
	}
	return found, nil
}

// lacking says that the entry of a cluster has no value that a folder would take from it.
func (e *entries) lacking(ct *model.ClusterType, cluster, target, value string) diag.Diagnostic {
	ref := model.Ref{Collection: clusters, Name: cluster}
	return diag.New(diag.ClusterValues,
		fmt.Sprintf("%s takes a new value from each cluster, %s, and the entry of cluster %s stays as "+
			"it is, without one", target, value, cluster)).
		At(ct.Ref(), "").At(ref, "").On(ref.String()).
		Hinting(fmt.Sprintf("correct what is wrong with %s, list it again, or remove it: environments: "+
			"%s: removals: clusters: [%q]", cluster, model.Label(e.in.Name), cluster))
}
