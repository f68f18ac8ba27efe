package tree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// ClusterFacts is what of a cluster is in the files of its cluster type, so that it stays there
// while errors hide the cluster.
type ClusterFacts struct {
	Cluster string            `json:"cluster"`
	Address string            `json:"address,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Values  *model.Value      `json:"values,omitempty"`
	// Composed are the values that are composed for it alone, by deployment target.
	Composed map[string]model.Value `json:"composed,omitempty"`
	// Kept says that they are those of an earlier build.
	Kept bool `json:"kept,omitempty"`
}

// Encode returns the JSON that the record has.
func (f *ClusterFacts) Encode() ([]byte, error) { return encode(f) }

// IsEmpty says whether there is nothing but the cluster's name.
func (f *ClusterFacts) IsEmpty() bool {
	return f.Address == "" && len(f.Labels) == 0 && f.Values == nil && len(f.Composed) == 0 && !f.Kept
}

// FactsOf returns the recorded facts of a cluster, where Facts are known.
func (c *ClusterTypeRecord) FactsOf(cluster string) ClusterFacts {
	i, found := slices.BinarySearchFunc(c.Facts, cluster,
		func(f ClusterFacts, cluster string) int { return strings.Compare(f.Cluster, cluster) })
	if !found {
		return ClusterFacts{Cluster: cluster}
	}
	return c.Facts[i]
}

// checkFacts reports facts that are not sorted, or not unique.
func (c *ClusterTypeRecord) checkFacts() error {
	for i := range c.Facts {
		if i > 0 && c.Facts[i].Cluster <= c.Facts[i-1].Cluster {
			return fmt.Errorf("facts of cluster %q come after those of %q", c.Facts[i].Cluster, c.Facts[i-1].Cluster)
		}
	}
	return nil
}
