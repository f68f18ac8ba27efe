package tree

// Ring is the record of a part of an environment.
type Ring struct {
	Name   string `json:"name"`
	Source Source `json:"source"` // of its last build
	// Hold stops promotion to the ring; nil if there is no hold.
	Hold *Hold `json:"hold,omitempty"`
	// Named identifies the person who promoted the base commit by name; nil if a policy chose it.
	Named *NamedPromotion `json:"named,omitempty"`
}

// NamedPromotion records the person who promoted a base commit by name, and the reason.
type NamedPromotion struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// Hold says why an environment, or a ring of it, keeps its commit, usually after a rollback.
type Hold struct {
	Reason string `json:"reason"`
	By     string `json:"by"`
	// Until is when the hold ends by itself, in RFC 3339; "" if it has no end.
	Until string `json:"until,omitempty"`
	// Base is the base commit that was rolled back; "" for a hold of the current commit.
	Base Revision `json:"base,omitempty"`
	// Environment is the rolled back commit of own files, if Base stayed the same; else "".
	Environment Revision `json:"environment,omitempty"`
}

// Ring returns the record of a ring; nil if the record is nil or does not list the ring.
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

// ClustersOf returns the names of the clusters of a type. It returns nil if they are not known, or
// if kalypso cannot read the record, which may be nil.
func (r *Record) ClustersOf(clusterType string) []string {
	ct, err := r.ClusterType(clusterType)
	if err != nil || ct == nil {
		return nil
	}
	return ct.Clusters
}

// SourceOf returns the source of the folder of a cluster type, by its entry in the record.
func (r *Record) SourceOf(e *ClusterTypeEntry) Source {
	if e.Source != nil {
		return *e.Source
	}
	return r.Source
}

// RingOf returns the ring of a cluster type's build. It returns "" if the cluster type is in no
// ring, or if the record, which may be nil, does not list it.
func (r *Record) RingOf(clusterType string) string {
	if e := r.entry(clusterType); e != nil {
		return e.Ring
	}
	return ""
}
