package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// About is what is known of an entity in one environment, beside its fields.
type About struct {
	// Positions are where it is written.
	Positions []model.Position `json:"positions"`
	// Assignments are those that it concerns, as for explain, in the order of Assignments.
	Assignments []string `json:"assignments"`
	// Diagnostics are those about it and those that point to it, as a line each.
	Diagnostics []string `json:"diagnostics"`
}

// Describe says what is known of an entity, or of a deployment target, in an environment;
// nothing where the environment cannot be read.
func Describe(b *compiler.Build, environment string, of model.Ref) About {
	about := About{Positions: []model.Position{}, Assignments: []string{}, Diagnostics: []string{}}
	e := find(b, environment)
	if e == nil || e.Model == nil {
		return about
	}
	about.Positions = positions(e, of)
	concerns := concernedBy(e, of)
	for i := range e.Schedule.Assignments {
		if concerns(i) {
			about.Assignments = append(about.Assignments, e.Schedule.Assignments[i].ID(environment))
		}
	}
	for _, d := range b.Diagnostics {
		if (d.Environment == "" || d.Environment == environment) && isAbout(d, of) {
			about.Diagnostics = append(about.Diagnostics, fmt.Sprintf("%s[%s]: %s", d.Severity, d.Code, d.Message))
		}
	}
	return about
}

// isAbout says whether a diagnostic is about an entity or something in it, or points there.
func isAbout(d diag.Diagnostic, of model.Ref) bool {
	within := func(path string) bool { return path == of.String() || strings.HasPrefix(path, of.String()+".") }
	return within(d.Path) || slices.ContainsFunc(d.Sites, func(s diag.Site) bool { return within(s.Ref.String()) })
}

// concernedBy returns what says whether an entity concerns an assignment, by its number.
func concernedBy(e *engine.Environment, of model.Ref) func(int) bool {
	all := e.Schedule.Assignments
	switch of.Collection {
	case "environments":
		return func(int) bool { return true }
	case "clusterTypes":
		return func(i int) bool { return all[i].ClusterType.TypeName() == of.Name }
	case "clusters":
		c := e.Model.Cluster(of.Name)
		return func(i int) bool { return c != nil && all[i].ClusterType.Name == c.Folder }
	case "inventories":
		types := map[string]bool{}
		for _, c := range e.Model.Clusters {
			if c.Inventory == of.Name {
				types[c.Folder] = true
			}
		}
		return func(i int) bool { return types[all[i].ClusterType.Name] }
	case "workspaces":
		return func(i int) bool { return all[i].Workload.Workspace == of.Name }
	case "workloads":
		return func(i int) bool {
			target := all[i].Workload.TargetRef(all[i].Target.Name)
			return of == target || of == target.Entity()
		}
	case "registrations":
		return func(i int) bool { return all[i].Workload.Registration == of.Name }
	case "schedulingPolicies":
		return func(i int) bool { return slices.Contains(all[i].Policies, of.Name) }
	case "configs":
		return func(i int) bool { return slices.Contains(e.Plan.Configs(i), of.Name) }
	case "configSchemas":
		return func(i int) bool { return slices.Contains(e.Plan.ConfigSchemas(i), of.Name) }
	case "tests":
		var hits []int
		if n := slices.IndexFunc(e.Model.Tests, func(t model.Test) bool { return t.Name == of.Name }); n >= 0 {
			hits = e.SelectTested([]*model.Test{&e.Model.Tests[n]})[0]
		}
		return func(i int) bool { return slices.Contains(hits, i) }
	case "namespaceServices":
		return func(i int) bool { return all[i].ClusterType.NamespaceService == of.Name }
	case "reconcilers":
		return func(i int) bool { return all[i].ClusterType.Reconciler == of.Name }
	}
	panic("no collection " + of.Collection)
}
