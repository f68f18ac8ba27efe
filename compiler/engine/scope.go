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
