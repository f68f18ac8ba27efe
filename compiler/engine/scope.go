package engine

import (
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// scope is which cluster types a build is about, and what there is of them.
type scope struct {
	in     *Inputs
	record *tree.Record    // of the output; nil for none
	same   map[string]bool // cluster types that are left out
	// beside returns what there was of a cluster type; nil for nothing.
	beside       func(clusterType string) (*tree.ClusterTypeRecord, error)
	lostClusters map[string]*lostType // by cluster type
}

// builds says whether a cluster type is a part of this build.
func (s *scope) builds(clusterType string) bool {
	return s.in.request.Shard.Has(clusterType) && !s.same[clusterType] && s.inRing(clusterType)
}

// inRing says whether a cluster type is of the ring that is built. One that the
// platform does not have any more is of the ring that built it.
func (s *scope) inRing(clusterType string) bool {
	if s.in.request.Ring == "" {
		return true
	}
	if slices.ContainsFunc(s.in.Model.ClusterTypes, func(ct model.ClusterType) bool { return ct.Name == clusterType }) {
		return s.in.rings[clusterType] == s.in.request.Ring
	}
	ring := s.record.RingOf(clusterType)
	return ring == "" || ring == s.in.request.Ring
}

// has says whether an assignment is of a cluster type of this build.
func (s *scope) has(assignment int) bool {
	return s.builds(s.in.Schedule.Assignments[assignment].ClusterType.Name)
}

// lostType are the recorded clusters of a cluster type that errors hide, and that have no entries.
type lostType struct {
	clusters []string // sorted
	// facts are what the record says of the cluster type's clusters, and held says that the
	// cluster type stays as it is, because it says nothing.
	facts []tree.ClusterFacts
	held  bool
}

// has says whether a cluster is lost; nil has none.
func (l *lostType) has(cluster string) bool {
	if l == nil {
		return false
	}
	_, found := slices.BinarySearch(l.clusters, cluster)
	return found
}

// lost says whether errors may be why a recorded cluster is none of its type any more.
func (s *scope) lost(clusterType, cluster string) bool {
	if s.in.Model.Invalid[model.Ref{Collection: clusters, Name: cluster}] {
		return true
	}
	return (s.in.Model.Incomplete || s.in.Model.ClustersIncomplete) && s.in.Model.Cluster(cluster) == nil
}

// holdsLost says whether a cluster type stays as it is because of clusters that errors hide.
func (s *scope) holdsLost(clusterType string) bool {
	l := s.lostClusters[clusterType]
	return l != nil && l.held
}

// facts returns what of the clusters of a type is in its files, as the record has it; nil where
// no cluster is listed, or where they have entries, which are recorded themselves.
func (s *scope) facts(ct *model.ClusterType) []tree.ClusterFacts {
	of, l := s.in.clusters[ct.Name], s.lostClusters[ct.Name]
	if l != nil && l.held {
		return l.facts
	}
	if len(of) == 0 || ct.Entries == model.ClusterEntries {
		return nil
	}
	out := make([]tree.ClusterFacts, 0, 1)
	b := s.in.backend(ct)
	if b == nil {
		return out
	}
	for i := range of {
		c := &of[i]
		f := tree.ClusterFacts{Cluster: c.Name, Values: c.Values, Composed: c.Composed, Kept: l.has(c.Name)}
		if b.Traits().Machines { // its inventory has more of them
			f.Address, f.Labels = c.Address, c.Labels
		}
		if !f.IsEmpty() {
			out = append(out, f)
		}
	}
	return out
}

// recordedClusters returns the names of the clusters that pull the folder of a type, sorted,
// with those that errors hide.
func (s *scope) recordedClusters(clusterType string) []string {
	names := s.in.clusterNames(clusterType)
	if lost := s.lostClusters[clusterType]; lost != nil {
		names = slices.Compact(slices.Sorted(slices.Values(slices.Concat(names, lost.clusters))))
	}
	return names
}
