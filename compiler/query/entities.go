package query

import (
	"slices"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Registration is a reference to another team's files in a repository, in one environment.
type Registration struct {
	Environment string    `json:"environment"`
	Name        string    `json:"name"`
	Workspace   string    `json:"workspace,omitempty"`
	Git         model.Git `json:"git"`
	Brings      []string  `json:"brings"`    // "workloads", "configs", or both: what it may bring
	Workloads   []string  `json:"workloads"` // the workloads that it brings
}

// Registrations lists the registrations, by environment and name.
func Registrations(b *compiler.Build) []Registration {
	out := []Registration{}
	for e := range readable(b) {
		for _, r := range e.Model.Registrations {
			item := Registration{Environment: e.Name, Name: r.Name, Workspace: r.Workspace, Git: r.Git,
				Brings: []string{}, Workloads: []string{}}
			if r.Workloads {
				item.Brings = append(item.Brings, "workloads")
			}
			if r.Configs {
				item.Brings = append(item.Brings, "configs")
			}
			for _, w := range e.Model.Workloads {
				if w.Registration == r.Name {
					item.Workloads = append(item.Workloads, w.Name)
				}
			}
			out = append(out, item)
		}
	}
	return out
}

// SchedulingPolicy assigns deployment targets to cluster types in one environment.
type SchedulingPolicy struct {
	Environment       string `json:"environment"`
	Name              string `json:"name"`
	DeploymentTargets string `json:"deploymentTargets"` // the selector, as CUE
	ClusterTypes      string `json:"clusterTypes"`      // the selector, as CUE
	// the selector of single clusters, as CUE; "" for all
	Clusters    string     `json:"clusters,omitempty"`
	Except      []Except   `json:"except,omitempty"` // the pairs that it leaves out
	Deny        bool       `json:"deny"`
	Pin         *model.Pin `json:"pin,omitempty"`
	Assignments int        `json:"assignments"` // assignments that it makes, by itself or with others
}

// Except selects pairs that a scheduling policy leaves out. Its selectors are CUE.
type Except struct {
	DeploymentTargets string `json:"deploymentTargets"`
	ClusterTypes      string `json:"clusterTypes"`
	Clusters          string `json:"clusters,omitempty"` // "" for all
}

// SchedulingPolicies lists the scheduling policies, by environment and name.
func SchedulingPolicies(b *compiler.Build) []SchedulingPolicy {
	out := []SchedulingPolicy{}
	for e := range readable(b) {
		made := map[string]int{}
		for _, a := range e.Schedule.Assignments {
			for _, name := range a.Policies {
				made[name]++
			}
		}
		for _, p := range e.Model.SchedulingPolicies {
			var except []Except
			for _, x := range p.Except {
				except = append(except,
					Except{x.DeploymentTargets.String(), x.ClusterTypes.String(), optionalSelector(x.Clusters)})
			}
			out = append(out, SchedulingPolicy{
				Environment: e.Name, Name: p.Name, DeploymentTargets: p.DeploymentTargets.String(),
				ClusterTypes: p.ClusterTypes.String(),
				Clusters:     optionalSelector(p.Clusters), Except: except, Deny: p.Deny, Pin: p.Pin,
				Assignments: made[p.Name],
			})
		}
	}
	return out
}

// optionalSelector returns a selector as CUE. It returns "" if the selector is nil.
func optionalSelector(s *model.Selector) string {
	if s == nil {
		return ""
	}
	return s.String()
}

// ConfigSchema is a contract of the platform on composed values, in one environment.
type ConfigSchema struct {
	Environment string `json:"environment"`
	Name        string `json:"name"`
	Match       string `json:"match"` // the selector, as CUE
	// the selector of single clusters, as CUE; "" for all
	Clusters string   `json:"clusters,omitempty"`
	Fields   []string `json:"fields"` // the paths that it names
	Failed   bool     `json:"failed"` // it has errors
}

// ConfigSchemas lists the config schemas, by environment and name.
func ConfigSchemas(b *compiler.Build) []ConfigSchema {
	out := []ConfigSchema{}
	for e := range readable(b) {
		for _, s := range e.Model.ConfigSchemas {
			item := ConfigSchema{Environment: e.Name, Name: s.Name, Match: s.Match.String(),
				Clusters: optionalSelector(s.Clusters), Fields: []string{}, Failed: s.Invalid}
			if s.Schema != nil {
				for _, f := range s.Schema.Fields {
					item.Fields = append(item.Fields, f.Path)
				}
			}
			out = append(out, item)
		}
	}
	return out
}

// NamespaceService makes the workspaces of assignments on clusters, in one environment.
type NamespaceService struct {
	Environment  string   `json:"environment"`
	Name         string   `json:"name"`
	ClusterTypes []string `json:"clusterTypes"` // the cluster types that use it
	Facts        []string `json:"facts"`        // the fields of #assignment that it uses
}

// NamespaceServices lists the namespace services, by environment and name.
func NamespaceServices(b *compiler.Build) []NamespaceService {
	out := []NamespaceService{}
	for e := range readable(b) {
		for _, s := range e.Model.NamespaceServices {
			out = append(out, NamespaceService{
				Environment: e.Name, Name: s.Name, Facts: append([]string{}, s.Facts...),
				ClusterTypes: clusterTypesWith(e,
					func(c *model.ClusterType) bool { return c.NamespaceService == s.Name }),
			})
		}
	}
	return out
}

// Reconciler is a configured backend, in one environment.
type Reconciler struct {
	Environment  string   `json:"environment"`
	Name         string   `json:"name"`
	Backend      string   `json:"backend"`
	ClusterTypes []string `json:"clusterTypes"` // the cluster types that use it
	Facts        []string `json:"facts"`        // the fields of #assignment that it uses
}

// Reconcilers lists the reconcilers, by environment and name.
func Reconcilers(b *compiler.Build) []Reconciler {
	out := []Reconciler{}
	for e := range readable(b) {
		for _, r := range e.Model.Reconcilers {
			out = append(out, Reconciler{
				Environment: e.Name, Name: r.Name, Backend: r.Backend, Facts: append([]string{}, r.Facts...),
				ClusterTypes: clusterTypesWith(e,
					func(c *model.ClusterType) bool { return c.Reconciler == r.Name }),
			})
		}
	}
	return out
}

// clusterTypesWith returns the names of the cluster types that meet a condition, without
// duplicates.
func clusterTypesWith(e *engine.Environment, is func(*model.ClusterType) bool) []string {
	names := []string{}
	for i := range e.Model.ClusterTypes {
		if c := &e.Model.ClusterTypes[i]; is(c) && !slices.Contains(names, c.TypeName()) {
			names = append(names, c.TypeName())
		}
	}
	return names
}

// Test is an assertion about the assignments that it matches, in one environment.
type Test struct {
	Environment string `json:"environment"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Match       string `json:"match"`
	// the selector of single clusters, as CUE; "" for all
	Clusters string `json:"clusters,omitempty"`
	// Assignments is the number of assignments that it matches.
	Assignments int  `json:"assignments"`
	Failed      bool `json:"failed"` // it has errors
}

// Tests lists the tests, by environment and name, except tests whose match excludes the
// environment.
func Tests(b *compiler.Build) []Test {
	out := []Test{}
	for e := range readable(b) {
		var tests []*model.Test
		for i := range e.Model.Tests {
			if t := &e.Model.Tests[i]; e.MayMatch(t.Match) {
				tests = append(tests, t)
			}
		}
		hits := e.SelectTested(tests)
		for i, t := range tests {
			out = append(out, Test{e.Name, t.Name, t.Description, t.Match.String(),
				optionalSelector(t.Clusters), len(hits[i]), t.Invalid})
		}
	}
	return out
}

// ClusterType is a class of clusters in one environment.
type ClusterType struct {
	Environment      string             `json:"environment"`
	Name             string             `json:"name"`
	Description      string             `json:"description,omitempty"`
	Labels           map[string]string  `json:"labels"`
	Reconciler       string             `json:"reconciler"`
	NamespaceService string             `json:"namespaceService"`
	ConfigFormat     model.ConfigFormat `json:"configFormat"`
	// KubernetesVersion and APIVersions are the versions that rendered charts see on its
	// clusters. They are empty if the platform does not declare them.
	KubernetesVersion string   `json:"kubernetesVersion,omitempty"`
	APIVersions       []string `json:"apiVersions"`
	Clusters          []string `json:"clusters"`
	// Entries determines whether clusters pull the folder of the type, or each an entry of its
	// own.
	Entries model.Entries `json:"entries"`
	// Classes are the classes of its clusters that have a folder, sorted by folder.
	Classes     []Class `json:"classes"`
	Assignments int     `json:"assignments"` // of all classes
}

// Class is a group of clusters of a type that no selector of clusters distinguishes.
type Class struct {
	Folder string `json:"folder"`
	// Selectors are the names of the selectors of clusters that select them, sorted.
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
					KubernetesVersion: c.KubernetesVersion, APIVersions: append([]string{}, c.APIVersions...),
					Entries: c.Entries,
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

// Cluster is one physical cluster or host, in one environment.
type Cluster struct {
	Environment string            `json:"environment"`
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	ClusterType string            `json:"clusterType"`
	Folder      string            `json:"folder"` // of its cluster type, or of its class
	Address     string            `json:"address,omitempty"`
	Inventory   string            `json:"inventory,omitempty"` // the inventory that has it as a row
	Labels      map[string]string `json:"labels"`
	// Workloads are the workloads assigned to it, sorted. Clusters of one folder share the slice.
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
	Where       string `json:"where,omitempty"`       // of the rows that are clusters
	ClusterType string `json:"clusterType,omitempty"` // of rows without a cluster type
	Clusters    int    `json:"clusters"`              // the number of rows that are clusters
}

// Inventories lists the inventories, by environment and name.
func Inventories(b *compiler.Build) []Inventory {
	out := []Inventory{}
	for e := range readable(b) {
		rows := map[string]int{}
		for _, c := range e.Model.Clusters {
			rows[c.Inventory]++
		}
		for i := range e.Model.Inventories {
			inv := &e.Model.Inventories[i]
			item := Inventory{
				Environment: e.Name, Name: inv.Name, Description: inv.Description, File: inv.File,
				ClusterType: inv.ClusterType, Clusters: rows[inv.Name],
			}
			if inv.Where.Op != model.OpAll {
				item.Where = inv.Where.String()
			}
			out = append(out, item)
		}
	}
	return out
}
