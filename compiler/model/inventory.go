package model

import (
	"encoding/json"
	"fmt"
)

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
