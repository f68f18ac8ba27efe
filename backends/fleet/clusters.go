package fleet

import (
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// onCluster returns the values as they are on a cluster, and whether it has any
// of its own that differ.
func onCluster(values model.Value, c model.Cluster) (model.Value, bool) {
	if c.Values == nil {
		return values, false
	}
	merged := delivery.Merge(values, *c.Values)
	return merged, !merged.Equal(values)
}

// valuesOf refers to the values of a cluster.
func valuesOf(c model.Cluster) model.Ref {
	return model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}
}
