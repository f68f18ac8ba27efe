package tables

import (
	"context"

	"github.com/kalypso-io/kalypso/compiler/query"
)

// placeTables are those of where something runs.
func placeTables() []*Table {
	return []*Table{
		{
			Name: "environments", Doc: "The environments, in the order of promotion.", Key: 1,
			Columns: []Column{
				text("name", "the environment"),
				integer("position", "its place in the order of promotion, from 1"),
				text("description", "what the platform says about it"),
				jsonOf("after", "the environments that it is promoted from, a list"),
				integer("clusterTypes", "how many folders of cluster types and of their classes it has"),
				integer("assignments", "how many assignments it has"),
				boolean("readable", "false where errors hide all of it: then no other table has anything of it"),
			},
			rows: environments,
		},
		{
			Name: "reconcilers", Doc: "The configured backends.", Key: 2,
			Columns: []Column{
				environment,
				text("name", "the reconciler"),
				text("backend", "the backend, such as flux"),
			},
			References: []Reference{refer("environments", "environment")},
			rows: each(query.Reconcilers, func(r query.Reconciler) []any {
				return []any{r.Environment, r.Name, r.Backend}
			}),
		},
		{
			Name: "cluster_types", Doc: "The cluster types.", Key: 2,
			Columns: []Column{
				environment,
				text("name", "the cluster type"),
				text("description", "what the platform says about it"),
				jsonOf("labels", "its labels, an object"),
				text("reconciler", "the reconciler that its clusters have"),
				text("namespaceService", "the namespace service of its assignments"),
				text("configFormat", "how its assignments get platform values"),
				text("kubernetesVersion", "the version that rendered charts find, where the platform says"),
				text("entries", "what clusters pull: type for its folder, cluster for an entry of their own"),
				integer("clusters", "how many clusters are listed"),
				integer("assignments", "how many assignments are on it, those of all classes"),
			},
			References: []Reference{refer("environments", "environment")},
			rows: each(query.ClusterTypes, func(c query.ClusterType) []any {
				return []any{c.Environment, c.Name, c.Description, c.Labels, c.Reconciler, c.NamespaceService,
					string(c.ConfigFormat), c.KubernetesVersion, string(c.Entries), len(c.Clusters), c.Assignments}
			}),
		},
		{
			Name: "classes", Doc: "The classes of cluster types: the clusters that no selector tells " +
				"apart, which follow one folder. " +
				"A cluster type without selectors of clusters is one class.", Key: 2,
			Columns: []Column{
				environment,
				text("folder", "the class's folder, which assignments call their cluster type"),
				text("clusterType", "the cluster type"),
				jsonOf("selectors", "the selectors of clusters that hold for it, a list"),
				integer("clusters", "how many listed clusters follow it"),
				integer("assignments", "how many assignments are on it"),
			},
			References: []Reference{refer("cluster_types", "environment", "clusterType")},
			rows:       classes,
		},
		{
			Name: "clusters", Doc: "The clusters that the platform or an inventory lists.", Key: 2,
			Columns: []Column{
				environment,
				text("name", "the cluster"),
				text("description", "what the platform says about it"),
				text("clusterType", "its cluster type"),
				optional(text("folder", "the folder that it follows, of its cluster type or of its class")),
				text("address", "its address"),
				text("inventory", "the inventory that has it as a row; empty where CUE lists it"),
				jsonOf("labels", "its own labels, an object"),
			},
			References: []Reference{refer("classes", "environment", "folder")},
			rows: each(query.Clusters, func(c query.Cluster) []any {
				var folder any
				if c.Folder != "" { // else errors hide its cluster type
					folder = c.Folder
				}
				return []any{c.Environment, c.Name, c.Description, c.ClusterType, folder, c.Address, c.Inventory, c.Labels}
			}),
		},
	}
}

func classes(_ context.Context, s *Source, yield func(...any) error) error {
	for _, ct := range query.ClusterTypes(s.Build) {
		for _, c := range ct.Classes {
			if err := yield(ct.Environment, c.Folder, ct.Name, c.Selectors, c.Clusters, c.Assignments); err != nil {
				return err
			}
		}
	}
	return nil
}

func environments(_ context.Context, s *Source, yield func(...any) error) error {
	for i, e := range query.Environments(s.Build) {
		if err := yield(e.Name, i+1, e.Description, e.After, e.ClusterTypes, e.Assignments, e.Readable); err != nil {
			return err
		}
	}
	return nil
}
