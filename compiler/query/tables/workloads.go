package tables

import "github.com/kalypso-io/kalypso/compiler/query"

// workloadTables are those of what runs.
func workloadTables() []*Table {
	return []*Table{
		{
			Name: "workloads", Doc: "The workloads that have deployment targets in the environment.", Key: 2,
			Columns: []Column{
				environment,
				text("name", "the workload"),
				text("description", "what the platform says about it"),
				text("workspace", "the workspace that owns it"),
				text("application", "the application that it is a part of"),
				jsonOf("labels", "its labels, an object"),
			},
			References: []Reference{refer("environments", "environment")},
			rows: each(query.Workloads, func(w query.Workload) []any {
				return []any{w.Environment, w.Name, w.Description, w.Workspace, w.Application, w.Labels}
			}),
		},
		{
			Name: "deployment_targets", Doc: "The deployment targets, also those that are assigned to nothing.", Key: 2,
			Columns: []Column{
				environment,
				text("deploymentTarget", "its full name, WORKLOAD-TARGET"),
				text("name", "its short name"),
				text("workload", "the workload"),
				text("workspace", "the workspace that owns it"),
				text("version", "its version"),
				jsonOf("labels", "its labels, an object"),
				jsonOf("manifests", "where its manifests are, an object"),
				boolean("render", "whether the build renders the manifests"),
				jsonOf("dependsOn", "the deployment targets that it waits for, a list"),
			},
			References: []Reference{refer("workloads", "environment", "workload")},
			rows: each(query.DeploymentTargets, func(t query.DeploymentTarget) []any {
				return []any{t.Environment, t.DeploymentTarget, t.Name, t.Workload, t.Workspace, t.Version,
					t.Labels, t.Manifests, t.Render, t.DependsOn}
			}),
		},
	}
}
