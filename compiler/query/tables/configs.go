package tables

import "github.com/kalypso-io/kalypso/compiler/query"

// configTables are those of policies, configs and contracts.
func configTables() []*Table {
	return []*Table{
		{
			Name: "scheduling_policies", Doc: "The scheduling policies.", Key: 2,
			Columns: []Column{
				environment,
				text("name", "the scheduling policy"),
				text("deploymentTargets", "its selector of deployment targets, as CUE"),
				text("clusterTypes", "its selector of cluster types, as CUE"),
				text("clusters", "its selector of single clusters, as CUE; empty for all"),
				jsonOf("excepted", "what its except leaves out, a list of objects with such selectors"),
				boolean("deny", "whether it takes its pairs from all others"),
				optional(jsonOf("pin", "what it pins its assignments to, an object")),
				integer("assignments", "how many assignments it makes, alone or with others"),
			},
			References: []Reference{refer("environments", "environment")},
			rows: each(query.SchedulingPolicies, func(p query.SchedulingPolicy) []any {
				var pin any
				if p.Pin != nil {
					pin = p.Pin
				}
				return []any{p.Environment, p.Name, p.DeploymentTargets, p.ClusterTypes, p.Clusters,
					append([]query.Except{}, p.Except...), p.Deny, pin, p.Assignments}
			}),
		},
		{
			Name: "configs", Doc: "The configs: containers of platform values.", Key: 2,
			Columns: []Column{
				environment,
				text("name", "the config"),
				integer("layer", "its layer"),
				text("match", "its selector of assignments, as CUE"),
				text("clusters", "its selector of single clusters, as CUE; empty for all"),
				jsonOf("keys", "the paths of its values, where they are known, a list"),
				integer("assignments", "how many assignments it matches"),
				boolean("failed", "whether it has errors"),
			},
			References: []Reference{refer("environments", "environment")},
			rows: each(query.Configs, func(c query.Config) []any {
				return []any{c.Environment, c.Name, c.Layer, c.Match, c.Clusters, c.Keys, c.Assignments, c.Failed}
			}),
		},
		{
			Name: "config_schemas", Doc: "The platform's contracts on composed values.", Key: 2,
			Columns: []Column{
				environment,
				text("name", "the config schema"),
				text("match", "its selector of assignments, as CUE"),
				text("clusters", "its selector of single clusters, as CUE; empty for all"),
				jsonOf("fields", "the paths that it names, a list"),
				boolean("failed", "whether it has errors"),
			},
			References: []Reference{refer("environments", "environment")},
			rows: each(query.ConfigSchemas, func(c query.ConfigSchema) []any {
				return []any{c.Environment, c.Name, c.Match, c.Clusters, c.Fields, c.Failed}
			}),
		},
	}
}
