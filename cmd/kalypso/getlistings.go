package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
)

// lister is a list of any type.
type lister interface {
	command(*global) *cobra.Command
	describe(*global) *cobra.Command
}

// listings are those of each collection, and of what the compiler makes of them.
func listings() []lister {
	return slices.Concat(placeListings(), settingListings(), workloadListings(), policyListings(), configListings())
}

// placeListings are those of where something runs.
func placeListings() []lister {
	return []lister{
		listing[query.Environment]{
			name: "environments", short: "env", kind: "EnvironmentList", what: "the environments", of: query.Environments,
			header: []string{"ENVIRONMENT", "AFTER", "CLUSTER TYPES", "ASSIGNMENTS", "DESCRIPTION"},
			cells: func(e query.Environment) []any {
				return []any{e.Name, join(e.After), e.ClusterTypes, e.Assignments, e.Description}
			},
			facets: func(e query.Environment) facets { return facets{id: e.Name} },
			ref: func(i query.Environment) (string, model.Ref) {
				return i.Name, model.Ref{Collection: "environments", Name: i.Name}
			},
		},
		listing[query.ClusterType]{
			name: "cluster-types", short: "ct", kind: "ClusterTypeList", what: "the cluster types", of: query.ClusterTypes,
			header: []string{"ENVIRONMENT", "CLUSTER TYPE", "RECONCILER", "NAMESPACE SERVICE", "CONFIG",
				"CLUSTERS", "ASSIGNMENTS", "LABELS", "ENTRIES", "CLASSES", "KUBERNETES", "DESCRIPTION"}, wide: 4,
			cells: func(c query.ClusterType) []any {
				return []any{c.Environment, c.Name, c.Reconciler, c.NamespaceService, c.ConfigFormat,
					len(c.Clusters), c.Assignments, labels(c.Labels), c.Entries, len(c.Classes),
					c.KubernetesVersion, c.Description}
			},
			facets:  func(c query.ClusterType) facets { return facets{id: c.Name, labels: []map[string]string{c.Labels}} },
			filters: []string{byLabels},
			ref: func(i query.ClusterType) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "clusterTypes", Name: i.Name}
			},
		},
		listing[query.Cluster]{
			name: "clusters", short: "cl", kind: "ClusterList", what: "the clusters", of: query.Clusters,
			header: []string{"ENVIRONMENT", "CLUSTER", "CLUSTER TYPE", "ADDRESS", "LABELS", "FOLDER",
				"WORKLOADS", "DESCRIPTION"}, wide: 3,
			cells: func(c query.Cluster) []any {
				return []any{c.Environment, c.Name, c.ClusterType, c.Address, labels(c.Labels), c.Folder,
					join(c.Workloads), c.Description}
			},
			facets: func(c query.Cluster) facets {
				return facets{id: c.Name, clusterTypes: []string{c.Folder}, workloads: c.Workloads,
					labels: []map[string]string{c.Labels}}
			},
			filters: []string{byLabels, byWorkload, byClusterType},
			ref: func(i query.Cluster) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "clusters", Name: i.Name}
			},
		},
		listing[query.Inventory]{
			name: "inventories", short: "inv", kind: "InventoryList", what: "the inventories", of: query.Inventories,
			header: []string{"ENVIRONMENT", "INVENTORY", "FILE", "CLUSTER TYPE", "CLUSTERS", "DESCRIPTION"}, wide: 1,
			cells: func(i query.Inventory) []any {
				return []any{i.Environment, i.Name, i.File, i.ClusterType, i.Clusters, i.Description}
			},
			facets: func(i query.Inventory) facets { return facets{id: i.Name} },
			ref: func(i query.Inventory) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "inventories", Name: i.Name}
			},
		},
	}
}

// settingListings are those of how something runs there.
func settingListings() []lister {
	return []lister{
		listing[query.NamespaceService]{
			name: "namespace-services", short: "ns", kind: "NamespaceServiceList",
			what: "the namespace services", of: query.NamespaceServices,
			header: []string{"ENVIRONMENT", "NAMESPACE SERVICE", "CLUSTER TYPES"},
			cells: func(s query.NamespaceService) []any {
				return []any{s.Environment, s.Name, join(s.ClusterTypes)}
			},
			facets: func(s query.NamespaceService) facets {
				return facets{id: s.Name, clusterTypes: s.ClusterTypes}
			},
			filters: []string{byClusterType},
			ref: func(i query.NamespaceService) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "namespaceServices", Name: i.Name}
			},
		},
		listing[query.Reconciler]{
			name: "reconcilers", short: "rec", kind: "ReconcilerList", what: "the reconcilers", of: query.Reconcilers,
			header: []string{"ENVIRONMENT", "RECONCILER", "BACKEND", "CLUSTER TYPES"},
			cells: func(r query.Reconciler) []any {
				return []any{r.Environment, r.Name, r.Backend, join(r.ClusterTypes)}
			},
			facets:  func(r query.Reconciler) facets { return facets{id: r.Name, clusterTypes: r.ClusterTypes} },
			filters: []string{byClusterType},
			ref: func(i query.Reconciler) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "reconcilers", Name: i.Name}
			},
		},
	}
}

// workloadListings are those of what runs, and of whose it is.
func workloadListings() []lister {
	return []lister{
		workspaceListing,
		listing[query.Workload]{
			name: "workloads", short: "wl", kind: "WorkloadList",
			what: "the workloads with deployment targets", of: query.Workloads,
			header: []string{"ENVIRONMENT", "WORKLOAD", "WORKSPACE", "APPLICATION", "DEPLOYMENT TARGETS",
				"CLUSTERS", "LABELS", "DESCRIPTION"}, wide: 3,
			cells: func(w query.Workload) []any {
				return []any{w.Environment, w.Name, w.Workspace, w.Application, join(w.DeploymentTargets),
					w.Clusters, labels(w.Labels), w.Description}
			},
			facets: func(w query.Workload) facets {
				return facets{id: w.Name, workloads: []string{w.Name}, labels: []map[string]string{w.Labels}}
			},
			filters: []string{byLabels, byWorkload},
			ref: func(i query.Workload) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "workloads", Name: i.Name}
			},
		},
		listing[query.DeploymentTarget]{
			name: "deployment-targets", short: "dt", kind: "DeploymentTargetList",
			what: "the deployment targets", of: query.DeploymentTargets,
			header: []string{"ENVIRONMENT", "DEPLOYMENT TARGET", "WORKSPACE", "VERSION", "CLUSTER TYPES",
				"LABELS", "CLUSTERS", "WORKLOAD", "DEPENDS ON", "FOLDERS"}, wide: 4,
			cells: func(t query.DeploymentTarget) []any {
				return []any{t.Environment, t.DeploymentTarget, t.Workspace, t.Version, typesOf(t.ClusterTypes),
					labels(t.Labels), t.Clusters, t.Workload, join(t.DependsOn), join(t.ClusterTypes)}
			},
			facets: func(t query.DeploymentTarget) facets {
				return facets{id: t.DeploymentTarget, workloads: []string{t.Workload},
					clusterTypes: t.ClusterTypes, labels: []map[string]string{t.Labels}}
			},
			filters: []string{byLabels, byWorkload, byClusterType},
			ref: func(i query.DeploymentTarget) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "workloads", Name: i.Workload,
					Path: "deploymentTargets." + model.Label(i.Name)}
			},
		},
		listing[query.Registration]{
			name: "registrations", short: "reg", kind: "RegistrationList", what: "the registrations, by " +
				"which other teams bring workloads and configs", of: query.Registrations,
			header: []string{"ENVIRONMENT", "REGISTRATION", "WORKSPACE", "REPOSITORY", "BRINGS", "WORKLOADS"},
			cells: func(r query.Registration) []any {
				return []any{r.Environment, r.Name, r.Workspace, r.Git.Repo, join(r.Brings), join(r.Workloads)}
			},
			facets: func(r query.Registration) facets { return facets{id: r.Name} },
			ref: func(i query.Registration) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "registrations", Name: i.Name}
			},
		},
	}
}

// policyListings are those of what is assigned where.
func policyListings() []lister {
	return []lister{
		listing[query.SchedulingPolicy]{
			name: "scheduling-policies", short: "sp", kind: "SchedulingPolicyList",
			what: "the scheduling policies", of: query.SchedulingPolicies,
			header: []string{"ENVIRONMENT", "SCHEDULING POLICY", "DEPLOYMENT TARGETS", "CLUSTER TYPES", "DENY", "ASSIGNMENTS"},
			cells: func(p query.SchedulingPolicy) []any {
				return []any{p.Environment, p.Name, p.DeploymentTargets, p.ClusterTypes, p.Deny, p.Assignments}
			},
			facets: func(p query.SchedulingPolicy) facets { return facets{id: p.Name} },
			ref: func(i query.SchedulingPolicy) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "schedulingPolicies", Name: i.Name}
			},
		},
		listing[query.Assignment]{
			name: "assignments", short: "as", kind: "AssignmentList", what: "what is assigned where", of: query.Assignments,
			header: []string{"ENVIRONMENT", "CLUSTER TYPE", "DEPLOYMENT TARGET", "WORKSPACE", "VERSION",
				"NAMESPACE", "POLICIES", "STATE", "CLUSTERS", "RECONCILER", "WORKLOAD", "DEPENDS ON", "FOLDER"}, wide: 5,
			cells: func(a query.Assignment) []any {
				return []any{a.Environment, model.TypeOfFolder(a.ClusterType), a.DeploymentTarget, a.Workspace,
					a.Version, a.Namespace, join(a.Policies), facets{failed: a.Failed}.state(), a.Clusters,
					a.Reconciler, a.Workload, join(a.DependsOn), a.ClusterType}
			},
			facets:  assignmentFacets,
			filters: []string{byLabels, byWorkload, byClusterType, byCluster, byState},
			byCluster: &listing[query.Assignment]{
				kind: "AssignmentList", of: query.ClusterAssignments,
				header: []string{"ENVIRONMENT", "CLUSTER", "CLUSTER TYPE", "DEPLOYMENT TARGET", "WORKSPACE",
					"VERSION", "NAMESPACE", "POLICIES", "STATE", "FOLDER"}, wide: 1,
				cells: func(a query.Assignment) []any {
					return []any{a.Environment, a.Cluster, model.TypeOfFolder(a.ClusterType), a.DeploymentTarget,
						a.Workspace, a.Version, a.Namespace, join(a.Policies), facets{failed: a.Failed}.state(), a.ClusterType}
				},
				facets: func(a query.Assignment) facets {
					f := assignmentFacets(a)
					f.id, f.cluster = a.Environment+"/"+a.Cluster+"/"+a.DeploymentTarget, a.Environment+"/"+a.Cluster
					return f
				},
			},
		},
	}
}

// typesOf lists the cluster types of folders, each once.
func typesOf(folders []string) string {
	var out []string
	for _, f := range folders {
		out = append(out, model.TypeOfFolder(f))
	}
	slices.Sort(out)
	return join(slices.Compact(out))
}

// configListings are those of configuration.
func configListings() []lister {
	return []lister{
		listing[query.Config]{
			name: "configs", short: "cfg", kind: "ConfigList", what: "the configs", of: query.Configs,
			header: []string{"ENVIRONMENT", "CONFIG", "LAYER", "MATCH", "ASSIGNMENTS", "KEYS"},
			cells: func(c query.Config) []any {
				return []any{c.Environment, c.Name, c.Layer, c.Match, c.Assignments, join(c.Keys)}
			},
			facets:  func(c query.Config) facets { return facets{id: c.Name, failed: c.Failed} },
			filters: []string{byState},
			ref: func(i query.Config) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "configs", Name: i.Name}
			},
		},
		listing[query.ConfigSchema]{
			name: "config-schemas", short: "cs", kind: "ConfigSchemaList", what: "the config schemas", of: query.ConfigSchemas,
			header: []string{"ENVIRONMENT", "CONFIG SCHEMA", "MATCH", "FIELDS"},
			cells: func(s query.ConfigSchema) []any {
				return []any{s.Environment, s.Name, s.Match, join(s.Fields)}
			},
			facets:  func(s query.ConfigSchema) facets { return facets{id: s.Name, failed: s.Failed} },
			filters: []string{byState},
			ref: func(i query.ConfigSchema) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "configSchemas", Name: i.Name}
			},
		},
		listing[query.Test]{
			name: "tests", short: "ts", kind: "TestList", what: "the tests", of: query.Tests,
			header: []string{"ENVIRONMENT", "TEST", "MATCH", "ASSIGNMENTS", "DESCRIPTION"}, wide: 1,
			cells: func(t query.Test) []any {
				return []any{t.Environment, t.Name, t.Match, t.Assignments, t.Description}
			},
			facets:  func(t query.Test) facets { return facets{id: t.Name, failed: t.Failed} },
			filters: []string{byState},
			ref: func(i query.Test) (string, model.Ref) {
				return i.Environment, model.Ref{Collection: "tests", Name: i.Name}
			},
		},
	}
}

// assignmentFacets finds an assignment by labels of its deployment target and its cluster
// type. Where both have a label, either value will do, as for the configs that match it.
func assignmentFacets(a query.Assignment) facets {
	over := func(below, above map[string]string) map[string]string {
		both := map[string]string{}
		maps.Copy(both, below)
		maps.Copy(both, above)
		return both
	}
	return facets{
		id:        a.Environment + "/" + a.ClusterType + "/" + a.DeploymentTarget,
		workloads: []string{a.Workload}, clusterTypes: []string{a.ClusterType},
		labels: []map[string]string{over(a.ClusterTypeLabels, a.TargetLabels),
			over(a.TargetLabels, a.ClusterTypeLabels)}, failed: a.Failed,
	}
}
