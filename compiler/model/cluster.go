package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

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

// Entries says what the clusters of a cluster type pull.
type Entries string

// The entries of cluster types.
const (
	TypeEntries    Entries = "type"    // the folder of their type
	ClusterEntries Entries = "cluster" // each an entry of its own, which names a folder
)

// Cluster returns the cluster with a name; nil for none.
func (e *Environment) Cluster(name string) *Cluster {
	i, found := slices.BinarySearchFunc(e.Clusters, name,
		func(c Cluster, name string) int { return strings.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return &e.Clusters[i]
}

// TypeName returns the name of the cluster type that the platform declares.
func (c *ClusterType) TypeName() string { return TypeOfFolder(c.Name) }

// Ref of the cluster type, as the platform declares it.
func (c *ClusterType) Ref() Ref { return Ref{Collection: "clusterTypes", Name: c.TypeName()} }

// Selects reports whether the selector of clusters with this name holds for the clusters of
// the type; so does every nil one.
func (c *ClusterType) Selects(s *Selector, name string) bool {
	if s == nil {
		return true
	}
	_, found := slices.BinarySearch(c.SelectedBy, name)
	return found
}

// TypeOfFolder returns the name of the cluster type of a folder <type> or <type>.<class>:
// a dot is no part of a cluster type's name.
func TypeOfFolder(folder string) string {
	name, _, _ := strings.Cut(folder, ".")
	return name
}

// WithoutClass returns the id of an assignment, <environment>/<folder>/<target>, with the name of the cluster type in
// the place of the folder.
func WithoutClass(assignment string) string {
	parts := strings.Split(assignment, "/")
	if len(parts) == 3 {
		parts[1] = TypeOfFolder(parts[1])
	}
	return strings.Join(parts, "/")
}

// ClusterFact is the fact of an assignment that is another one on each cluster.
const ClusterFact = "cluster"

// ClusterSelector is a selector of clusters.
type ClusterSelector struct {
	// Of is the policy, a part of its except, the config or the config schema that it is in.
	Of Ref
	*Selector
	// ClusterTypes are those whose clusters it may tell apart, by name and labels, or Match
	// the assignments; the other one is nil.
	ClusterTypes, Match *Selector
}

// ClusterSelectors returns the selectors of clusters of an environment: of configs, config
// schemas and policies, each sorted by name.
func (e *Environment) ClusterSelectors() []ClusterSelector {
	var out []ClusterSelector
	add := func(of Ref, s, clusterTypes, match *Selector) {
		if s != nil {
			out = append(out, ClusterSelector{of, s, clusterTypes, match})
		}
	}
	for i := range e.Configs {
		c := &e.Configs[i]
		add(Ref{Collection: "configs", Name: c.Name}, c.Clusters, nil, &c.Match)
	}
	for i := range e.ConfigSchemas {
		s := &e.ConfigSchemas[i]
		add(Ref{Collection: "configSchemas", Name: s.Name}, s.Clusters, nil, &s.Match)
	}
	for i := range e.SchedulingPolicies {
		p := &e.SchedulingPolicies[i]
		ref := Ref{Collection: "schedulingPolicies", Name: p.Name}
		add(ref, p.Clusters, &p.ClusterTypes, nil)
		for _, x := range p.Except {
			add(ref.At(x.Path), x.Clusters, &Selector{Op: OpAnd, Args: []Selector{p.ClusterTypes, x.ClusterTypes}}, nil)
		}
	}
	return out
}

// SelectorOf names the selector of clusters at a reference: of a policy by the policy's
// name alone, as most are, and of others with what they are. No two have the same name: an
// underscore is no part of an entity's name.
func SelectorOf(of Ref) string {
	switch of.Collection {
	case "configs":
		return "config_" + of.Name
	case "configSchemas":
		return "schema_" + of.Name
	}
	if strings.HasPrefix(of.Path, "except") { // except, or except[2]
		return strings.NewReplacer("[", "-", "]", "").Replace(of.Path) + "_" + of.Name
	}
	return of.Name
}

// ClassOf names the class of clusters for which selectors of clusters hold: by their names,
// which are sorted, alone. It is "" for none, and cut with a hash where it is long.
func ClassOf(selectors []string) string { return ShortName(strings.Join(selectors, "."), MaxLabel) }

// Inventory is a file whose rows are clusters.
type Inventory struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	File        string `json:"file"` // from the folder of the CUE file that names it
	// From is what holds the file; nil for the platform.
	From        *InventorySource `json:"from"`
	Format      InventoryFormat  `json:"format"` // "" for what the file's ending says
	Separator   string           `json:"separator"`
	Rows        string           `json:"rows"`        // the field that holds the list; "" where the file is the list
	ClusterType string           `json:"clusterType"` // of rows that name none; "" where labels decide
	Columns     Columns          `json:"columns"`
	// Labels are what the labels of each row must satisfy.
	Labels     Selector `json:"-"`
	AllowEmpty bool     `json:"allowEmpty"`

	// Digest identifies what it says, wherever and however that is written.
	Digest Digest `json:"-"`
}

// InventorySource is what holds the file of an inventory: exactly one of both.
type InventorySource struct {
	Git *Git `json:"git"`
	OCI *OCI `json:"oci"`
}

// Manifests returns the source as those of workloads are.
func (s *InventorySource) Manifests() Manifests { return Manifests{Git: s.Git, OCI: s.OCI} }

// InventoryFormat is what an inventory's file is.
type InventoryFormat string

// The formats of inventories.
const (
	CSVInventory    InventoryFormat = "csv"
	JSONInventory   InventoryFormat = "json"
	NDJSONInventory InventoryFormat = "ndjson"
	YAMLInventory   InventoryFormat = "yaml"
)

// Columns say where a cluster's fields are in a row.
type Columns struct {
	Name        string `json:"name"`
	ClusterType string `json:"clusterType"`
	Address     string `json:"address"`
	Description string `json:"description"`
	// Labels and Values are by label and by value; nil for those that are named
	// labels.<label> and values.<value>.
	Labels map[string]string `json:"labels"`
	Values map[string]Column `json:"values"`
}

// Column is where a value is, and what its text is: string, int, number, bool or json.
type Column struct {
	Column string `json:"column"`
	Type   string `json:"type"`
}

// UnmarshalJSON reads a column's name alone, or an object.
func (c *Column) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		c.Type = "string"
		return json.Unmarshal(b, &c.Column)
	}
	type plain Column
	if err := json.Unmarshal(b, (*plain)(c)); err != nil {
		return fmt.Errorf("a column: %w", err)
	}
	return nil
}
