package query

import (
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"slices"
)

// Registration is a reference to what another team keeps in a repository, in one
// environment.
type Registration struct {
	Environment string    `json:"environment"`
	Name        string    `json:"name"`
	Workspace   string    `json:"workspace,omitempty"`
	Git         model.Git `json:"git"`
	Brings      []string  `json:"brings"`    // "workloads" and "configs", those that it may
	Workloads   []string  `json:"workloads"` // that it brings
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
	Environment       string     `json:"environment"`
	Name              string     `json:"name"`
	DeploymentTargets string     `json:"deploymentTargets"`  // the selector, as CUE
	ClusterTypes      string     `json:"clusterTypes"`       // the selector, as CUE
	Clusters          string     `json:"clusters,omitempty"` // the selector of single clusters, as CUE; "" for all
	Except            []Except   `json:"except,omitempty"`   // what it leaves out
	Deny              bool       `json:"deny"`
	Pin               *model.Pin `json:"pin,omitempty"`
	Assignments       int        `json:"assignments"` // that it makes, alone or with others
}

// Except is what a scheduling policy leaves out: selectors, as CUE.
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
				except = append(except, Except{x.DeploymentTargets.String(), x.ClusterTypes.String(), optionalSelector(x.Clusters)})
			}
			out = append(out, SchedulingPolicy{
				Environment: e.Name, Name: p.Name, DeploymentTargets: p.DeploymentTargets.String(),
				ClusterTypes: p.ClusterTypes.String(),
				Clusters:     optionalSelector(p.Clusters), Except: except, Deny: p.Deny, Pin: p.Pin, Assignments: made[p.Name],
			})
		}
	}
	return out
}

// optionalSelector returns a selector as CUE, "" for none.
func optionalSelector(s *model.Selector) string {
	if s == nil {
		return ""
	}
	return s.String()
}

// ConfigSchema is a contract of the platform on composed values, in one environment.
type ConfigSchema struct {
	Environment string   `json:"environment"`
	Name        string   `json:"name"`
	Match       string   `json:"match"`              // the selector, as CUE
	Clusters    string   `json:"clusters,omitempty"` // the selector of single clusters, as CUE; "" for all
	Fields      []string `json:"fields"`             // the paths that it names
	Failed      bool     `json:"failed"`             // it has errors
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
	ClusterTypes []string `json:"clusterTypes"` // that use it
	Facts        []string `json:"facts"`        // fields of #assignment that it uses
}

// NamespaceServices lists the namespace services, by environment and name.
func NamespaceServices(b *compiler.Build) []NamespaceService {
	out := []NamespaceService{}
	for e := range readable(b) {
		for _, s := range e.Model.NamespaceServices {
			out = append(out, NamespaceService{
				Environment: e.Name, Name: s.Name, Facts: append([]string{}, s.Facts...),
				ClusterTypes: clusterTypesWith(e, func(c *model.ClusterType) bool { return c.NamespaceService == s.Name }),
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
	ClusterTypes []string `json:"clusterTypes"` // that use it
	Facts        []string `json:"facts"`        // fields of #assignment that it uses
}

// Reconcilers lists the reconcilers, by environment and name.
func Reconcilers(b *compiler.Build) []Reconciler {
	out := []Reconciler{}
	for e := range readable(b) {
		for _, r := range e.Model.Reconcilers {
			out = append(out, Reconciler{
				Environment: e.Name, Name: r.Name, Backend: r.Backend, Facts: append([]string{}, r.Facts...),
				ClusterTypes: clusterTypesWith(e, func(c *model.ClusterType) bool { return c.Reconciler == r.Name }),
			})
		}
	}
	return out
}

// clusterTypesWith returns the names of the cluster types of which something is true.
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
	Clusters    string `json:"clusters,omitempty"` // the selector of single clusters, as CUE; "" for all
	// Assignments are how many it matches.
	Assignments int  `json:"assignments"`
	Failed      bool `json:"failed"` // it has errors
}

// Tests lists the tests, by environment and name, without those whose match leaves the
// environment out.
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
