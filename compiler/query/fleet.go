package query

import (
	"slices"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// ClusterType is a class of clusters in one environment.
type ClusterType struct {
	Environment      string             `json:"environment"`
	Name             string             `json:"name"`
	Description      string             `json:"description,omitempty"`
	Labels           map[string]string  `json:"labels"`
	Reconciler       string             `json:"reconciler"`
	NamespaceService string             `json:"namespaceService"`
	ConfigFormat     model.ConfigFormat `json:"configFormat"`
	// KubernetesVersion and APIVersions are what charts that are rendered find on
	// its clusters, where the platform says.
	KubernetesVersion string   `json:"kubernetesVersion,omitempty"`
	APIVersions       []string `json:"apiVersions"`
	Clusters          []string `json:"clusters"`
	// Entries says what clusters pull: the folder of the type, or each an entry of its own.
	Entries model.Entries `json:"entries"`
	// Classes are those of its clusters that have a folder, sorted by folder.
	Classes     []Class `json:"classes"`
	Assignments int     `json:"assignments"` // of all classes
}

// Class are the clusters of a type that no selector of clusters tells apart.
type Class struct {
	Folder string `json:"folder"`
	// Selectors are the names of the selectors of clusters that hold for them, sorted.
	Selectors   []string `json:"selectors"`
	Clusters    int      `json:"clusters"`
	Assignments int      `json:"assignments"`
}

// ClusterTypes lists the cluster types, by environment, in the order of promotion, and name.
func ClusterTypes(b *compiler.Build) []ClusterType {
	out := []ClusterType{}
	for e := range readable(b) {
		clusters, followers, assignments := map[string][]string{}, followersOf(e), map[string]int{}
		for _, c := range e.Model.Clusters {
			clusters[c.ClusterType] = append(clusters[c.ClusterType], c.Name)
		}
		for i := range e.Schedule.Assignments {
			assignments[e.Schedule.Assignments[i].ClusterType.Name]++
		}
		for i := range e.Model.ClusterTypes {
			c := &e.Model.ClusterTypes[i]
			if n := len(out); n == 0 || out[n-1].Environment != e.Name || out[n-1].Name != c.TypeName() {
				out = append(out, ClusterType{
					Environment: e.Name, Name: c.TypeName(), Description: c.Description, Labels: labels(c.Labels),
					Reconciler:       c.Reconciler,
					NamespaceService: c.NamespaceService, ConfigFormat: c.ConfigFormat,
					Clusters:          append([]string{}, clusters[c.TypeName()]...),
					KubernetesVersion: c.KubernetesVersion, APIVersions: append([]string{}, c.APIVersions...), Entries: c.Entries,
				})
			}
			item := &out[len(out)-1]
			item.Assignments += assignments[c.Name]
			item.Classes = append(item.Classes,
				Class{c.Name, append([]string{}, c.SelectedBy...), followers[c.Name], assignments[c.Name]})
		}
	}
	return out
}

// Cluster is one physical cluster or host, as one environment knows it.
type Cluster struct {
	Environment string            `json:"environment"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	ClusterType string            `json:"clusterType"`
	Folder      string            `json:"folder"` // of its cluster type, or of its class
	Address     string            `json:"address,omitempty"`
	Inventory   string            `json:"inventory,omitempty"` // that has it as a row
	Labels      map[string]string `json:"labels"`
	// Workloads are what is assigned to it, sorted. Clusters of one folder share the slice.
	Workloads []string `json:"workloads"`
}

// Clusters lists the clusters, by environment and name.
func Clusters(b *compiler.Build) []Cluster {
	out := []Cluster{}
	for e := range readable(b) {
		workloads := map[string][]string{}
		for i := range e.Model.ClusterTypes {
			workloads[e.Model.ClusterTypes[i].Name] = []string{}
		}
		for i := range e.Schedule.Assignments {
			a := &e.Schedule.Assignments[i]
			workloads[a.ClusterType.Name] = append(workloads[a.ClusterType.Name], a.Workload.Name)
		}
		for folder, names := range workloads {
			slices.Sort(names)
			workloads[folder] = slices.Compact(names)
		}
		for _, c := range e.Model.Clusters {
			out = append(out, Cluster{
				Environment: e.Name, Name: c.Name, Description: c.Description, ClusterType: c.ClusterType,
				Folder: c.Folder, Address: c.Address,
				Inventory: c.Inventory, Labels: labels(c.Labels), Workloads: workloads[c.Folder],
			})
		}
	}
	return out
}

// Inventory is a file whose rows are clusters, in one environment.
type Inventory struct {
	Environment string `json:"environment"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	File        string `json:"file"`                  // as it is written
	ClusterType string `json:"clusterType,omitempty"` // of rows that name none
	Clusters    int    `json:"clusters"`              // rows that are clusters
}

// Inventories lists the inventories, by environment and name.
func Inventories(b *compiler.Build) []Inventory {
	out := []Inventory{}
	for e := range readable(b) {
		rows := map[string]int{}
		for _, c := range e.Model.Clusters {
			rows[c.Inventory]++
		}
		for _, i := range e.Model.Inventories {
			out = append(out, Inventory{
				Environment: e.Name, Name: i.Name, Description: i.Description, File: i.File,
				ClusterType: i.ClusterType, Clusters: rows[i.Name],
			})
		}
	}
	return out
}
