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
	ClusterType string `json:"clusterType"` // "" if labels decide
	// Folder is the Name of the ClusterType that the cluster follows: its cluster type, or a
	// class of its cluster type.
	Folder string `json:"-"`
	// Inventory is the inventory whose row declares the cluster; "" if the platform declares
	// it.
	Inventory string            `json:"inventory,omitempty"`
	Address   string            `json:"address"` // "" if the platform declares no address
	Labels    map[string]string `json:"labels"`
	Values    *Value            `json:"values"`
	// Composed are the values that configs compose only for this cluster, because they use
	// facts of single clusters. The keys are deployment targets. A null removes a value.
	Composed map[string]Value `json:"-"`

	// Digest identifies the cluster's content and Composed. It does not depend on positions or
	// formatting.
	Digest Digest `json:"-"`
}

// Compose records the values that are composed only for this cluster, for the deployment target
// with a full name.
func (c *Cluster) Compose(deploymentTarget string, values Value) {
	if len(values.Fields()) == 0 {
		return
	}
	if c.Composed == nil {
		c.Composed = map[string]Value{}
	}
	c.Composed[deploymentTarget] = values
	c.Digest = DigestBytes(
		values.AppendBinary([]byte(string(c.Digest) + " " + deploymentTarget + " ")))
}

// ValuesOf returns the values of a deployment target that are specific to this cluster: the
// cluster's own values over its composed ones. It returns an empty struct if there are no such
// values.
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

// Entries describes what the clusters of a cluster type pull.
type Entries string

// The entries of cluster types.
const (
	TypeEntries    Entries = "type"    // the folder of their type
	ClusterEntries Entries = "cluster" // an entry for each cluster, which names a folder
)

// Cluster returns the cluster with a name. It returns nil if there is no such cluster.
func (e *Environment) Cluster(name string) *Cluster {
	i, found := slices.BinarySearchFunc(e.Clusters, name,
		func(c Cluster, name string) int { return strings.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return &e.Clusters[i]
}

// TypeName returns the name of the cluster type in the platform's declaration.
func (c *ClusterType) TypeName() string { return TypeOfFolder(c.Name) }

// Ref returns the reference to the cluster type in the platform's declaration.
func (c *ClusterType) Ref() Ref { return Ref{Collection: "clusterTypes", Name: c.TypeName()} }

// Selects reports whether the selector of clusters with this name holds for the clusters of the
// type. A nil selector always holds.
func (c *ClusterType) Selects(s *Selector, name string) bool {
	if s == nil {
		return true
	}
	_, found := slices.BinarySearch(c.SelectedBy, name)
	return found
}

// TypeOfFolder returns the name of the cluster type of a folder <type> or <type>.<class>. The
// name of a cluster type contains no dot.
func TypeOfFolder(folder string) string {
	name, _, _ := strings.Cut(folder, ".")
	return name
}

// WithoutClass returns the id of an assignment, <environment>/<folder>/<target>, with the name
// of the cluster type instead of the folder.
func WithoutClass(assignment string) string {
	parts := strings.Split(assignment, "/")
	if len(parts) == 3 {
		parts[1] = TypeOfFolder(parts[1])
	}
	return strings.Join(parts, "/")
}

// ClusterFact is the fact of an assignment that differs on each cluster.
const ClusterFact = "cluster"

// ClusterSelector is a selector of clusters.
type ClusterSelector struct {
	// Of is the declaration that has the selector: the policy, a part of its except, the config
	// or the config schema.
	Of Ref
	*Selector
	// ClusterTypes selects the cluster types whose clusters the selector distinguishes by name
	// and labels. Match selects the assignments instead. The other one is nil.
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
			add(ref.At(x.Path), x.Clusters,
				&Selector{Op: OpAnd, Args: []Selector{p.ClusterTypes, x.ClusterTypes}}, nil)
		}
	}
	return out
}

// SelectorOf returns the name of the selector of clusters at a reference. The selector of a
// policy, the most common one, has only the policy's name. Other names begin with the kind of
// selector. All names differ, because the name of an entity contains no underscore.
func SelectorOf(of Ref) string {
	switch of.Collection {
	case "configs":
		return "config_" + of.Name
	case "configSchemas":
		return "schema_" + of.Name
	}
	if strings.HasPrefix(of.Path, "except") { // such as except or except[2]
		return strings.NewReplacer("[", "-", "]", "").Replace(of.Path) + "_" + of.Name
	}
	return of.Name
}

// ClassOf returns the name of the class of clusters for which exactly these selectors of clusters
// hold, given by their sorted names. It returns "" if there are no selectors, and shortens a
// long name with a hash.
func ClassOf(selectors []string) string { return ShortName(strings.Join(selectors, "."), MaxLabel) }

// Inventory is a file whose rows are clusters.
type Inventory struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	File        string `json:"file"` // relative to the folder of the CUE file that names it
	// From is the remote source of the file; nil if the platform contains the file.
	From      *InventorySource `json:"from"`
	Format    InventoryFormat  `json:"format"` // "" if the file extension decides
	Separator string           `json:"separator"`
	// the field with the list; "" if the file is the list
	Rows        string  `json:"rows"`
	ClusterType string  `json:"clusterType"` // of rows that name none; "" if labels decide
	Columns     Columns `json:"columns"`
	// Labels select the valid rows: the labels of each row must match.
	Labels Selector `json:"-"`
	// The rows of the environment match Where by the names of columns. Other rows are ignored.
	Where      Selector `json:"-"`
	AllowEmpty bool     `json:"allowEmpty"`

	// Digest identifies the inventory's content. It does not depend on positions or formatting.
	Digest Digest `json:"-"`
}

// InventorySource is the remote source of an inventory's file. Exactly one field is set.
type InventorySource struct {
	Git *Git `json:"git"`
	OCI *OCI `json:"oci"`
}

// Manifests returns the source in the form of a workload's source.
func (s *InventorySource) Manifests() Manifests { return Manifests{Git: s.Git, OCI: s.OCI} }

// InventoryFormat is the format of an inventory's file.
type InventoryFormat string

// The formats of inventories.
const (
	CSVInventory    InventoryFormat = "csv"
	JSONInventory   InventoryFormat = "json"
	NDJSONInventory InventoryFormat = "ndjson"
	YAMLInventory   InventoryFormat = "yaml"
)

// Columns map the fields of a cluster to the columns of a row.
type Columns struct {
	Name        string `json:"name"`
	ClusterType string `json:"clusterType"`
	Address     string `json:"address"`
	Description string `json:"description"`
	// Labels are the columns by label, and Values the columns by value. They are nil if the
	// columns are named labels.<label> and values.<value>.
	Labels map[string]string `json:"labels"`
	Values map[string]Column `json:"values"`
}

// Column is the position of a value in a row, and the type of its text: string, int, number,
// bool or json.
type Column struct {
	Column string `json:"column"`
	Type   string `json:"type"`
}

// UnmarshalJSON reads either the name of a column or an object.
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
