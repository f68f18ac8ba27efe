package engine

import (
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// scope determines the cluster types of a build, and has the record of the output.
type scope struct {
	in     *Inputs
	record *tree.Record    // of the output; nil if it has no record
	same   map[string]bool // the cluster types that the build leaves out
	// beside returns the record of a cluster type in the output or in another one; nil if the
	// cluster type is not in it. beside is nil if there is no such output.
	beside       func(clusterType string) (*tree.ClusterTypeRecord, error)
	lostClusters map[string]*lostType // by cluster type
}

// builds reports whether a cluster type is part of this build.
func (s *scope) builds(clusterType string) bool {
	return s.in.request.Shard.Has(clusterType) && !s.same[clusterType] && s.inRing(clusterType)
}

// inRing reports whether a cluster type is in the ring of this build. A cluster type that has
// left the platform is in the ring that built it.
func (s *scope) inRing(clusterType string) bool {
	if s.in.request.Ring == "" {
		return true
	}
	if slices.ContainsFunc(s.in.Model.ClusterTypes,
		func(ct model.ClusterType) bool { return ct.Name == clusterType }) {
		return s.in.rings[clusterType] == s.in.request.Ring
	}
	ring := s.record.RingOf(clusterType)
	return ring == "" || ring == s.in.request.Ring
}

// has reports whether an assignment is on a cluster type of this build.
func (s *scope) has(assignment int) bool {
	return s.builds(s.in.Schedule.Assignments[assignment].ClusterType.Name)
}

// lostType has the recorded clusters of a cluster type that errors hide and that have no entries.
type lostType struct {
	clusters []string // sorted
	// facts are the recorded facts of the cluster type's clusters. held reports whether the
	// cluster type stays as it is, because the record has no facts.
	facts []tree.ClusterFacts
	held  bool
}

// has reports whether a cluster is lost. A nil lostType has no clusters.
func (l *lostType) has(cluster string) bool {
	if l == nil {
		return false
	}
	_, found := slices.BinarySearch(l.clusters, cluster)
	return found
}

// lost reports whether errors may be the cause that a recorded cluster has left its type.
func (s *scope) lost(clusterType, cluster string) bool {
	if s.in.Model.Invalid[model.Ref{Collection: clusters, Name: cluster}] {
		return true
	}
	return (s.in.Model.Incomplete || s.in.Model.ClustersIncomplete) &&
		s.in.Model.Cluster(cluster) == nil
}

// holdsLost reports whether a cluster type stays as it is because of clusters that errors hide.
func (s *scope) holdsLost(clusterType string) bool {
	l := s.lostClusters[clusterType]
	return l != nil && l.held
}

// facts returns the parts of a type's clusters that its files contain, in the form of the record.
// It returns nil if no cluster is listed. It also returns nil if the clusters have entries,
// because the record has those instead.
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
		f := tree.ClusterFacts{Cluster: c.Name, Values: c.Values, Composed: c.Composed,
			Kept: l.has(c.Name)}
		if b.Traits().Machines { // an inventory contains these too
			f.Address, f.Labels = c.Address, c.Labels
		}
		if !f.IsEmpty() {
			out = append(out, f)
		}
	}
	return out
}

// recordedClusters returns the names of the clusters that pull the folder of a type, sorted. It
// includes the clusters that errors hide.
func (s *scope) recordedClusters(clusterType string) []string {
	names := s.in.clusterNames(clusterType)
	if lost := s.lostClusters[clusterType]; lost != nil {
		names = slices.Compact(slices.Sorted(slices.Values(slices.Concat(names, lost.clusters))))
	}
	return names
}
