package model

// Cluster is one physical cluster or host.
type Cluster struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	ClusterType string `json:"clusterType"` // "" where labels decide
	// Folder is the Name of the ClusterType that it follows: of its cluster type, or of a
	// class of that.
	Folder string `json:"-"`
	// Inventory has the cluster as a row; "" where the platform declares it.
	Inventory string            `json:"inventory,omitempty"`
	Address   string            `json:"address"` // "" where the platform gives none
	Labels    map[string]string `json:"labels"`
	Values    *Value            `json:"values"`
	// Composed are the values that configs compose for this cluster alone, by deployment
	// target, where they use facts of single clusters; null where they take one away.
	Composed map[string]Value `json:"-"`

	// Digest identifies what it says, wherever and however that is written, and Composed.
	Digest Digest `json:"-"`
}

// Compose notes the values that are composed for the cluster alone, for a deployment target by
// its full name.
func (c *Cluster) Compose(deploymentTarget string, values Value) {
	if len(values.Fields()) == 0 {
		return
	}
	if c.Composed == nil {
		c.Composed = map[string]Value{}
	}
	c.Composed[deploymentTarget] = values
	c.Digest = DigestBytes(values.AppendBinary([]byte(string(c.Digest) + " " + deploymentTarget + " ")))
}

// ValuesOf returns the values that a deployment target has on this cluster alone: its own,
// over those that are composed for it. It is an empty struct for none.
func (c *Cluster) ValuesOf(deploymentTarget string) Value {
	out := StructOf()
	if composed, there := c.Composed[deploymentTarget]; there {
		out = composed
	}
	if c.Values != nil {
		out = Merge(out, *c.Values)
	}
	return out
}
