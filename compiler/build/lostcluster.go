package build

import (
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// lostClusters finds the clusters that the record lists and that errors hide, by cluster
// type. What a cluster type has for all of its clusters, an inventory or a list of
// destinations, would take away from them what they run: so such a cluster type stays as
// it is. The diagnostics of the errors are reported already; this one says what they hold up.
func lostClusters(s *scope, out *reports) (map[string][]string, error) {
	if s.record == nil || !s.Model.HidesClusters() {
		return nil, nil
	}
	lost := map[string][]string{}
	for n := range s.spans {
		ct := &s.Model.ClusterTypes[n]
		if !s.builds(ct.Name) || ct.Entries == model.ClusterEntries { // their entries stay
			continue
		}
		r, err := s.record.ClusterType(ct.Name)
		if err != nil {
			return nil, err
		}
		if r == nil {
			continue
		}
		for _, name := range r.Clusters {
			if s.lost(ct.Name, name) {
				lost[ct.Name] = append(lost[ct.Name], name)
			}
		}
		if len(lost[ct.Name]) > 0 {
			s.hold(n)
			out.add(s.lostOf(n, lost[ct.Name]))
		}
	}
	return lost, nil
}

const clusters = "clusters"

// lost says whether errors may be why a recorded cluster is none of its type any more.
func (s *scope) lost(clusterType, cluster string) bool {
	if s.Model.Invalid[model.Ref{Collection: clusters, Name: cluster}] {
		return true
	}
	return (s.Model.Incomplete || s.Model.ClustersIncomplete) && s.Model.Cluster(cluster) == nil
}

func (s *scope) lostOf(n int, names []string) diag.Diagnostic {
	ct := s.Model.ClusterTypes[n].Name
	which := "cluster " + names[0]
	if len(names) > 1 {
		which = fmt.Sprintf("clusters %s and %d more", names[0], len(names)-1)
	}
	d := diag.New(diag.LostCluster, fmt.Sprintf("errors hide what is to run on %s of cluster type %s, which stays as it is", which, ct))
	for _, name := range names[:min(len(names), 3)] {
		d = d.At(model.Ref{Collection: clusters, Name: name}, "")
	}
	d = d.On(s.Model.ClusterTypes[n].Ref().String()).Hinting("correct the errors of " + names[0] + " first, or remove it from the platform")
	for i := s.spans[n].first; i < s.spans[n].next; i++ {
		d.Assignments = append(d.Assignments, s.id(i))
	}
	slices.Sort(d.Assignments)
	return d
}
