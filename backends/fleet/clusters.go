package fleet

import (
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// onCluster returns the values as they are on a cluster, and those of its own; differs says
// whether there are any that are others than the composed ones.
func (f *folder) onCluster(c *model.Cluster) (merged, own model.Value, differs bool) {
	own = c.ValuesOf(f.assignment.DeploymentTarget)
	merged = delivery.Merge(f.assignment.Values, own)
	return merged, own, !merged.Equal(f.assignment.Values)
}

// valuesOf refers to the values of a cluster.
func valuesOf(c *model.Cluster) model.Ref {
	return model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}
}
