package tables

import (
	"context"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
)

// assignmentTables are those of what runs where, with which values.
func assignmentTables() []*Table {
	assignment := []Column{
		environment,
		text("clusterType", "the folder of the cluster type, or of the class of one"),
		text("deploymentTarget", "the full name of the deployment target"),
	}
	return []*Table{
		{
			Name: "assignments", Doc: "The assignments: one deployment target on one cluster type, or on " +
				"one class of it.", Key: 3,
			Columns: slices.Concat(assignment, []Column{
				text("workload", "the workload"),
				text("workspace", "the workspace that owns it"),
				text("application", "the application that it is a part of"),
				text("namespace", "the namespace that it runs in"),
				text("version", "its version"),
				jsonOf("policies", "the scheduling policies that make it, a list"),
				text("reconciler", "the reconciler that delivers it"),
				boolean("render", "whether the build renders its manifests"),
				jsonOf("dependsOn", "the deployment targets that it waits for, a list"),
				text("configuration", "the digest of its composed values; empty where it failed"),
				boolean("failed", "whether errors concern it, so that it is not built"),
			}),
			References: []Reference{
				refer("classes", "environment", "clusterType"), refer("deployment_targets", "environment", "deploymentTarget"),
				refer("workloads", "environment", "workload"),
			},
			rows: each(query.Assignments, func(a query.Assignment) []any {
				return []any{a.Environment, a.ClusterType, a.DeploymentTarget, a.Workload, a.Workspace,
					a.Application, a.Namespace, a.Version, a.Policies, a.Reconciler, a.Render, a.DependsOn,
					string(a.Configuration), a.Failed}
			}),
		},
		{
			Name: "assignment_values", Doc: "The composed values of assignments without errors, with " +
				"where they come from. What looks like a " +
				"plaintext secret is masked. What single clusters have is in cluster_values.", Key: 4,
			Columns: slices.Concat(assignment, []Column{
				text("path", "the value's path"),
				jsonOf("value", "the value"),
				text("type", "what the value is: string, int, float, bool, list, struct, null, or secret for a reference to one"),
				text("kind", "how it was set: value, default, override, contract default or constraint"),
				text("setBy", "the config that set it, else the contract"),
				optional(integer("layer", "the config's layer")),
				text("file", "the file that it is written in"),
				optional(integer("line", "the line in the file")),
				jsonOf("alsoSetBy", "others that set the same value, a list"),
				jsonOf("replaced", "those whose value it replaced, a list"),
			}),
			References: []Reference{refer("assignments", "environment", "clusterType", "deploymentTarget")},
			rows:       values,
		},
		{
			Name: "cluster_values", Doc: "The values that single clusters have for themselves: their own, " +
				"and those that configs compose of facts of " +
				"single clusters. For the cluster they replace those of assignment_values, a composed one " +
				"its own path, an own one all at or below its first field.", Key: 4,
			Columns: []Column{
				environment,
				text("cluster", "the cluster"),
				text("deploymentTarget", "the full name of the one that it is composed for; empty for a "+
					"value of the cluster's own"),
				text("path", "the value's path"),
				jsonOf("value", "the value; null where one of the assignment is taken away"),
				text("type", "what the value is, as in assignment_values"),
				text("file", "the file that the cluster's own value is written in"),
				optional(integer("line", "the line in the file")),
			},
			References: []Reference{refer("clusters", "environment", "cluster")},
			rows:       clusterValues,
		},
		{
			Name: "versions", Doc: "How many assignments of a workload have which version.", Key: 3,
			Columns: []Column{
				environment,
				text("workload", "the workload"),
				text("version", "the version; empty for assignments without one"),
				integer("assignments", "how many assignments have it"),
				integer("failed", "how many of them have errors"),
			},
			References: []Reference{refer("workloads", "environment", "workload")},
			rows:       versions,
		},
	}
}

func values(ctx context.Context, s *Source, yield func(...any) error) error {
	return query.EachValues(ctx, s.Build, func(a *query.Assignment, values []query.Value) error {
		for _, v := range values {
			var from query.Origin // the zero Origin where none is known
			if len(v.From) > 0 {
				from = v.From[0]
			}
			var layer any
			if from.Layer != nil {
				layer = *from.Layer
			}
			file, line := first(from.Positions)
			err := yield(a.Environment, a.ClusterType, a.DeploymentTarget, v.Path, v.Value,
				v.Value.Kind().String(), string(from.Kind), from.Name, layer, file, line,
				others(v.From[min(1, len(v.From)):], from.Name), others(v.Replaced, ""))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func clusterValues(_ context.Context, s *Source, yield func(...any) error) error {
	return query.EachClusterValue(s.Build, func(v *query.ClusterValue) error {
		file, line := first(v.Positions)
		return yield(v.Environment, v.Cluster, v.DeploymentTarget, v.Path, v.Value, v.Value.Kind().String(), file, line)
	})
}

// first returns the file and line of the first of some positions; "" and nil for none.
func first(of []model.Position) (file string, line any) {
	if len(of) == 0 {
		return "", nil
	}
	return of[0].File, of[0].Line
}

// others returns the names of origins that have another one, each once.
func others(of []query.Origin, than string) []string {
	names := []string{}
	for _, o := range of {
		if o.Name != than && !slices.Contains(names, o.Name) {
			names = append(names, o.Name)
		}
	}
	return names
}

// version counts the assignments of a workload that have a version.
type version struct{ assignments, failed int }

// versions returns the versions that workloads have, by environment, workload and version.
func versions(_ context.Context, s *Source, yield func(...any) error) error {
	counted := map[[3]string]version{}
	for _, a := range query.Assignments(s.Build) {
		key := [3]string{a.Environment, a.Workload, a.Version}
		v := counted[key]
		v.assignments++
		if a.Failed {
			v.failed++
		}
		counted[key] = v
	}
	for _, key := range slices.SortedFunc(maps.Keys(counted),
		func(x, y [3]string) int { return slices.Compare(x[:], y[:]) }) {
		if err := yield(key[0], key[1], key[2], counted[key].assignments, counted[key].failed); err != nil {
			return err
		}
	}
	return nil
}
