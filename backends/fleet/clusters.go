package fleet

import (
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/backends"
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

// Divide returns the parts of a file that are for single clusters, by cluster, and with "" what
// is for all of them; nil where all of it is.
func (fleet) Divide(file string, data []byte, own bool) map[string][]byte {
	if own {
		return nil
	}
	if rest, is := strings.CutPrefix(file, overlaysFolder+"/"); is {
		cluster, _, _ := strings.Cut(rest, "/")
		return map[string][]byte{cluster: data}
	}
	if file != bundleFile && file != delivery.ReconcilerFile {
		return nil
	}
	return delivery.Divide(data, func(doc *yamlnode.Node, part func(string, *yamlnode.Node)) {
		delivery.TakeElements(delivery.Node(doc, "targetCustomizations"), "clusterName", part)
		delivery.TakeElements(delivery.Node(doc, "spec", "targets"), "clusterName", part)
	})
}

// Takes says that no own files of a cluster type have values.
func (fleet) Takes(backends.Folder, string) (string, bool) { return "", false }
