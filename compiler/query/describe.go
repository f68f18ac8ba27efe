package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Description is the information about an entity in one environment, in addition to its fields.
type Description struct {
	// Positions are its positions in the files.
	Positions []model.Position `json:"positions"`
	// Assignments are the assignments that it concerns, for explain, in the order of Assignments.
	Assignments []string `json:"assignments"`
	// Diagnostics are the diagnostics about it, and those that point to it, one line each.
	Diagnostics []string `json:"diagnostics"`
}

// Describe returns the information about an entity, or about a deployment target, in an
// environment. It returns empty lists if the environment cannot be read.
func Describe(b *compiler.Build, environment string, of model.Ref) Description {
	about := Description{Positions: []model.Position{}, Assignments: []string{},
		Diagnostics: []string{}}
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
			about.Diagnostics = append(about.Diagnostics,
				fmt.Sprintf("%s[%s]: %s", d.Severity, d.Code, d.Message))
		}
	}
	return about
}

// isAbout reports whether a diagnostic is about an entity or a part of it, or points there.
func isAbout(d diag.Diagnostic, of model.Ref) bool {
	within := func(path string) bool {
		return path == of.String() ||
			strings.HasPrefix(path, of.String()+".")
	}
	return within(d.Path) ||
		slices.ContainsFunc(d.Sites, func(s diag.Site) bool { return within(s.Ref.String()) })
}

// concernedBy returns a function that reports whether an entity concerns an assignment, by
// number.
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
		if n := slices.IndexFunc(e.Model.Tests,
			func(t model.Test) bool { return t.Name == of.Name }); n >= 0 {
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

// Requirement is a key that a contract names for an assignment.
type Requirement struct {
	Environment      string `json:"environment"`
	ClusterType      string `json:"clusterType"`
	DeploymentTarget string `json:"deploymentTarget"`
	Key              string `json:"key"`
	Constraint       string `json:"constraint"`
	Optional         bool   `json:"optional"`
	Enforce          string `json:"enforce"` // block or advise
	RequiredBy       Place  `json:"requiredBy"`
	// Given reports whether the key has a value. By are the origins of the value.
	Given bool     `json:"given"`
	By    []Origin `json:"by"`
}

// Requirements lists the keys that the contracts of all assignments name, by assignment, key and
// contract.
func Requirements(ctx context.Context, b *compiler.Build) ([]Requirement, error) {
	out := []Requirement{}
	for e := range readable(b) {
		for i := range e.Schedule.Assignments {
			a := &e.Schedule.Assignments[i]
			g, err := e.Graph(ctx, i)
			if err != nil {
				return nil, err
			}
			leaves := g.Leaves()
			start := len(out)
			for _, n := range g.Needs {
				r := Requirement{
					Environment: e.Name, ClusterType: a.ClusterType.Name, DeploymentTarget: a.Target.FullName,
					Key: n.Path, Constraint: n.Text, Optional: n.Optional, Enforce: "block", Given: n.Met,
					By: []Origin{},
					RequiredBy: Place{Kind: kindOf(n.Contract), Name: nameOf(n.Contract),
						Positions: positions(e, n.Contract.At(n.Path))},
				}
				if n.Advise {
					r.Enforce = "advise"
				}
				for _, leaf := range leaves {
					if leaf.Path == n.Path || strings.HasPrefix(leaf.Path, n.Path+".") {
						r.By = append(r.By, origins(e, leaf.From)...)
					}
				}
				out = append(out, r)
			}
			slices.SortStableFunc(out[start:],
				func(x, y Requirement) int { return strings.Compare(x.Key, y.Key) })
		}
	}
	return out, nil
}

func kindOf(contract model.Ref) string {
	switch {
	case contract.Collection == "configSchemas":
		return "config schema"
	case strings.HasPrefix(contract.Path, "deploymentTargets."):
		return "deployment target"
	}
	return "workload"
}

func nameOf(contract model.Ref) string {
	if rest, ok := strings.CutPrefix(contract.Path, "deploymentTargets."); ok {
		target, _, _ := strings.Cut(rest, ".requires")
		return model.FullName(contract.Name, strings.Trim(target, `"`))
	}
	return contract.Name
}

// EachValues calls f with the composed values of each assignment without errors, in the order of
// Assignments. It composes a few hundred assignments at a time, and has only their values in
// memory. It returns the first error of f.
func EachValues(ctx context.Context, b *compiler.Build, f func(*Assignment, []Value) error) error {
	for e := range readable(b) {
		var built []int
		for i := range e.Schedule.Assignments {
			if !e.Failed(i) {
				built = append(built, i)
			}
		}
		const atOnce = 256
		for some := range slices.Chunk(built, atOnce) {
			if err := valuesOfEach(ctx, e, some, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// ClusterValue is a value of a single cluster, in addition to the values of its assignments.
type ClusterValue struct {
	Environment, Cluster string
	// DeploymentTarget is the full name of the deployment target that the value is composed for.
	// It is "" for the cluster's own value, which applies to all deployment targets.
	DeploymentTarget string
	Path             string
	Value            model.Value // null if it removes a composed value
	// Positions are the positions of an own value in the files.
	Positions []model.Position
}

// EachClusterValue calls f with the values of single clusters, by environment, cluster,
// deployment target and path. It returns the first error of f.
func EachClusterValue(b *compiler.Build, f func(*ClusterValue) error) error {
	for e := range readable(b) {
		for i := range e.Model.Clusters {
			c := &e.Model.Clusters[i]
			own := model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}
			if c.Values != nil {
				err := eachLeaf("", *c.Values, func(path string, v model.Value) error {
					return f(&ClusterValue{e.Name, c.Name, "", path, v, positions(e, own.At(path))})
				})
				if err != nil {
					return err
				}
			}
			for _, target := range slices.Sorted(maps.Keys(c.Composed)) {
				err := eachLeaf("", c.Composed[target], func(path string, v model.Value) error {
					return f(&ClusterValue{Environment: e.Name, Cluster: c.Name, DeploymentTarget: target,
						Path: path, Value: v})
				})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// eachLeaf calls f with the leaves of a value, in the form to show, by path.
func eachLeaf(path string, v model.Value, f func(path string, v model.Value) error) error {
	if v.Kind() != model.Struct || path != "" && len(v.Fields()) == 0 {
		return f(path, compose.Shown(path, v))
	}
	fields := slices.SortedFunc(slices.Values(v.Fields()),
		func(x, y model.Field) int { return strings.Compare(x.Name, y.Name) })
	for _, field := range fields {
		if err := eachLeaf(model.JoinPath(path, model.Label(field.Name)), field.Value, f); err != nil {
			return err
		}
	}
	return nil
}

// valuesOfEach composes the tuples of assignments, each once.
func valuesOfEach(ctx context.Context, e *engine.Environment, assignments []int,
	f func(*Assignment, []Value) error) error {
	of := map[int32][]Value{}
	var tuples []int32
	for _, i := range assignments {
		tuples = append(tuples, e.Plan.TupleOf[i])
	}
	slices.Sort(tuples)
	err := e.Graphs(ctx, slices.Compact(tuples),
		func(tuple int32, g *compose.Graph) { of[tuple] = valuesOf(e, g.Leaves()) })
	if err != nil {
		return err
	}
	followers := followersOf(e)
	for _, i := range assignments {
		a, err := assignmentOf(ctx, e, i, followers)
		if err != nil {
			return err
		}
		if err := f(&a, of[e.Plan.TupleOf[i]]); err != nil {
			return err
		}
	}
	return nil
}
