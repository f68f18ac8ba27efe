package rollout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

var backendsByName = all.Backends()

// WantedOf returns the assignments of an environment's record in some cluster types, sorted by
// ID. It merges the assignments of the classes of a cluster type, and includes retained folders,
// because clusters run them. clusterTypes reports whether a cluster type counts; nil for all.
// clusters returns the clusters that the platform lists for a cluster type, or nil. If a cluster
// type's record cannot be read, WantedOf returns only an error.
func WantedOf(record *tree.Record, clusterTypes func(name string) bool,
	clusters func(clusterType string) []string) ([]Assignment, error) {
	var out []Assignment
	for _, entry := range record.ClusterTypes {
		if clusterTypes != nil && !clusterTypes(entry.Name) {
			continue
		}
		c, err := record.ClusterType(entry.Name)
		if err != nil {
			return nil, fmt.Errorf("reading what environment %s wants of cluster type %s: %w",
				record.Environment, entry.Name, err)
		}
		var listed []string
		if clusters != nil {
			listed = slices.Compact(slices.Sorted(slices.Values(clusters(entry.Name))))
		}
		for i := range c.Assignments {
			out = append(out,
				assignmentOf(record.Environment, model.TypeOfFolder(entry.Name), c.Assignments[i].Folder,
					listed))
		}
	}
	slices.SortStableFunc(out, func(a, b Assignment) int { return strings.Compare(a.ID, b.ID) })
	return merged(out), nil
}

// merged makes one of the assignments of several classes of a cluster type: their objects
// have the same names, and are on the clusters of all of them.
func merged(sorted []Assignment) []Assignment {
	out := sorted[:0]
	for _, a := range sorted {
		n := len(out) - 1
		if n < 0 || out[n].ID != a.ID {
			out = append(out, a)
			continue
		}
		out[n].Clusters = slices.Compact(
			slices.Sorted(slices.Values(slices.Concat(out[n].Clusters, a.Clusters))))
		if out[n].Version != a.Version {
			out[n].Version = "" // each class has its own
		}
	}
	return out
}

// TargetsOf is WantedOf for the record of an application's tree: each folder of a cluster
// type is a target with the ID <environment>/<target>. The clusters and the objects for it
// are not known: reports name it by its ID.
func TargetsOf(record *tree.Record, targets func(name string) bool) []Assignment {
	var out []Assignment
	for _, entry := range record.ClusterTypes {
		if targets == nil || targets(entry.Name) {
			out = append(out, Assignment{ID: record.Environment + "/" + entry.Name, ClusterType: entry.Name,
				Workload: record.Platform, Target: entry.Name})
		}
	}
	return out
}

func assignmentOf(environment, clusterType string, f backends.Folder,
	clusters []string) Assignment {
	a := Assignment{
		ID:          environment + "/" + clusterType + "/" + f.DeploymentTarget,
		ClusterType: clusterType, Workload: f.Workload, Version: f.Version, Target: f.DeploymentTarget,
		Backend: f.Backend, Namespace: f.Namespace, Clusters: clusters,
	}
	if b := backendsByName[f.Backend]; b != nil { // nil for a backend of a later version
		is := b.Reconciled(environment, clusterType, f)
		a.Object, a.Objects = is.Object, is.Objects
	}
	return a
}
