package tree

// Ring is the record of a part of an environment.
type Ring struct {
	Name   string `json:"name"`
	Source Source `json:"source"` // that it was compiled from
	// Hold stops promotion to the ring; nil for none.
	Hold *Hold `json:"hold,omitempty"`
	// Named is who promoted the base commit by name; nil if a policy chose it.
	Named *Named `json:"named,omitempty"`
}

// Named is who promoted a base commit by name, and why.
type Named struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// Hold says why an environment, or a ring of it, keeps what it has: after a
// rollback, above all.
type Hold struct {
	Reason string `json:"reason"`
	By     string `json:"by"`
	// Until is when it ends by itself, in RFC 3339; "" for never.
	Until string `json:"until,omitempty"`
	// Base is the base commit that was rolled back from; "" for a hold of what is there.
	Base Revision `json:"base,omitempty"`
	// Environment is the commit of own files that was rolled back from, if Base stayed; else "".
	Environment Revision `json:"environment,omitempty"`
}

// Ring returns the record of a ring; nil for nothing, as of any in a nil
// record.
func (r *Record) Ring(name string) *Ring {
	if r == nil {
		return nil
	}
	for i := range r.Rings {
		if r.Rings[i].Name == name {
			return &r.Rings[i]
		}
	}
	return nil
}

// ClustersOf returns the names of the clusters of a type, where they are known; none
// where the record, which may be nil, does not have them or cannot be read.
func (r *Record) ClustersOf(clusterType string) []string {
	ct, err := r.ClusterType(clusterType)
	if err != nil || ct == nil {
		return nil
	}
	return ct.Clusters
}

// SourceOf returns what the folder of a cluster type was compiled from, by its entry in
// the record.
func (r *Record) SourceOf(e *ClusterTypeEntry) Source {
	if e.Source != nil {
		return *e.Source
	}
	return r.Source
}

// RingOf returns the ring that a cluster type was built for; "" where it is in no ring,
// or the record, which may be nil, does not list it.
func (r *Record) RingOf(clusterType string) string {
	if e := r.entry(clusterType); e != nil {
		return e.Ring
	}
	return ""
}
