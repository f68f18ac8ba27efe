package tables

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/query"
)

// Environments lists the environments, in the order of promotion.
func Environments() *List[query.Environment] {
	return list(read(query.Environments), Table{
		Name: "environments", Doc: "The environments, in the order of promotion.", Key: 1,
		Columns: []Column{
			text("name", "the environment").head("ENVIRONMENT"),
			integer("position", "its place in the order of promotion, from 1"),
			text("description", "what the platform says about it").head("DESCRIPTION"),
			jsonOf("after", "the environments that it is promoted from, a list").head("AFTER"),
			integer("clusterTypes", "how many folders of cluster types and of their classes it has").
				head("CLUSTER TYPES"),
			integer("assignments", "how many assignments it has").head("ASSIGNMENTS"),
			boolean("readable", "false where errors hide all of it: then no other table has anything of it"),
		},
	}, "name after clusterTypes assignments description", "")
}

// ClusterTypes lists the cluster types.
func ClusterTypes() *List[query.ClusterType] {
	return list(read(query.ClusterTypes), Table{
		Name: "cluster_types", Doc: "The cluster types.", Key: 2,
		Columns: []Column{
			environment,
			text("name", "the cluster type").head("CLUSTER TYPE"),
			text("description", "what the platform says about it").head("DESCRIPTION"),
			jsonOf("labels", "its labels, an object").head("LABELS"),
			text("reconciler", "the reconciler that its clusters have").head("RECONCILER"),
			text("namespaceService", "the namespace service of its assignments").head("NAMESPACE SERVICE"),
			text("configFormat", "how its assignments get platform values").head("CONFIG"),
			text("kubernetesVersion", "the version that rendered charts find, where the platform says").
				head("KUBERNETES"),
			text("entries", "what clusters pull: type for its folder, cluster for an entry of their own").
				head("ENTRIES"),
			integer("clusters", "how many clusters are listed").head("CLUSTERS"),
			integer("assignments",
				"how many assignments are on it, those of all classes").head("ASSIGNMENTS"),
			shown("classes", "CLASSES", Integer),
		},
		References: []Reference{refer("environments", "environment")},
	}, "environment name reconciler namespaceService configFormat clusters assignments labels",
		"entries classes kubernetesVersion description")
}

// Clusters lists the clusters. A cluster has no folder if errors hide its cluster type.
func Clusters() *List[query.Cluster] {
	return list(read(query.Clusters), Table{
		Name: "clusters", Doc: "The clusters that the platform or an inventory lists.", Key: 2,
		Columns: []Column{
			environment,
			text("name", "the cluster").head("CLUSTER"),
			text("description", "what the platform says about it").head("DESCRIPTION"),
			text("clusterType", "its cluster type").head("CLUSTER TYPE"),
			optional(text("folder", "the folder that it follows, of its cluster type or of its class")).head(
				"FOLDER"),
			text("address", "its address").head("ADDRESS"),
			text("inventory", "the inventory that has it as a row; empty where CUE lists it"),
			jsonOf("labels", "its own labels, an object").head("LABELS"),
			shown("workloads", "WORKLOADS", JSON),
		},
		References: []Reference{refer("classes", "environment", "folder")},
	}, "environment name clusterType address labels", "folder workloads description")
}

// Inventories lists the inventories, for get only.
func Inventories() *List[query.Inventory] {
	return list(read(query.Inventories), Table{Name: "inventories", Columns: []Column{
		environment, shown("name", "INVENTORY", Text), shown("file", "FILE", Text),
		shown("where", "WHERE", Text),
		shown("clusterType", "CLUSTER TYPE", Text), shown("clusters", "CLUSTERS", Integer),
		shown("description", "DESCRIPTION", Text),
	}}, "environment name file where clusterType clusters", "description")
}

// NamespaceServices lists the namespace services, for get only.
func NamespaceServices() *List[query.NamespaceService] {
	return list(read(query.NamespaceServices), Table{Name: "namespace_services", Columns: []Column{
		environment, shown("name", "NAMESPACE SERVICE", Text),
		shown("clusterTypes", "CLUSTER TYPES", JSON),
	}}, "environment name clusterTypes", "")
}

// Reconcilers lists the reconcilers.
func Reconcilers() *List[query.Reconciler] {
	return list(read(query.Reconcilers), Table{
		Name: "reconcilers", Doc: "The configured backends.", Key: 2,
		Columns: []Column{
			environment,
			text("name", "the reconciler").head("RECONCILER"),
			text("backend", "the backend, such as flux").head("BACKEND"),
			shown("clusterTypes", "CLUSTER TYPES", JSON),
		},
		References: []Reference{refer("environments", "environment")},
	}, "environment name backend clusterTypes", "")
}

// Workspaces lists the workspaces, for get only.
func Workspaces() *List[query.Workspace] {
	return list(read(query.Workspaces), Table{Name: "workspaces", Columns: []Column{
		environment, shown("name", "WORKSPACE", Text), shown("profile", "PROFILE", Text),
		shown("workloads", "WORKLOADS", Integer), shown("registrations", "REGISTRATIONS", JSON),
		shown("assignments", "ASSIGNMENTS", Integer), shown("failed", "FAILED", Integer),
		shown("owners", "OWNERS", JSON), shown("description", "DESCRIPTION", Text),
	}}, "environment name profile workloads registrations assignments failed owners", "description")
}

// Workloads lists the workloads that have deployment targets in an environment.
func Workloads() *List[query.Workload] {
	return list(read(query.Workloads), Table{
		Name: "workloads", Doc: "The workloads that have deployment targets in the environment.", Key: 2,
		Columns: []Column{
			environment,
			text("name", "the workload").head("WORKLOAD"),
			text("description", "what the platform says about it").head("DESCRIPTION"),
			text("workspace", "the workspace that owns it").head("WORKSPACE"),
			text("application", "the application that it is a part of").head("APPLICATION"),
			jsonOf("labels", "its labels, an object").head("LABELS"),
			shown("deploymentTargets", "DEPLOYMENT TARGETS", JSON),
			shown("clusters", "CLUSTERS", Integer),
		},
		References: []Reference{refer("environments", "environment")},
	}, "environment name workspace application deploymentTargets", "clusters labels description")
}

// DeploymentTargets lists the deployment targets. get shows the cluster types that a deployment
// target is assigned to, and with -o wide their folders. A cluster type with classes has several
// folders.
func DeploymentTargets() *List[query.DeploymentTarget] {
	return list(read(query.DeploymentTargets), Table{
		Name: "deployment_targets",
		Doc:  "The deployment targets, also those that are assigned to nothing.", Key: 2,
		Columns: []Column{
			environment,
			text("deploymentTarget", "its full name, WORKLOAD-TARGET").head("DEPLOYMENT TARGET"),
			text("name", "its short name"),
			text("workload", "the workload").head("WORKLOAD"),
			text("workspace", "the workspace that owns it").head("WORKSPACE"),
			text("version", "its version").head("VERSION"),
			text("versionFrom", "what the version was derived from: chart, tag, digest or commit; empty "+
				"if the platform names it"),
			jsonOf("labels", "its labels, an object").head("LABELS"),
			jsonOf("manifests", "where its manifests are, an object"),
			boolean("render", "whether the build renders the manifests"),
			jsonOf("dependsOn", "the deployment targets that it waits for, a list").head("DEPENDS ON"),
			shown("clusterTypes", "CLUSTER TYPES", JSON).withText(typesOfFolders),
			shown("folders", "FOLDERS", JSON).withKey("clusterTypes"),
			shown("clusters", "CLUSTERS", Integer),
		},
		References: []Reference{refer("workloads", "environment", "workload")},
	}, "environment deploymentTarget workspace version clusterTypes labels",
		"clusters workload dependsOn folders")
}

// typesOfFolders lists the cluster types of folders, each once.
func typesOfFolders(folders any) string {
	var out []string
	for _, folder := range folders.([]string) {
		out = append(out, model.TypeOfFolder(folder))
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

// Registrations lists the registrations, for get only.
func Registrations() *List[query.Registration] {
	return list(read(query.Registrations), Table{Name: "registrations", Columns: []Column{
		environment, shown("name", "REGISTRATION", Text), shown("workspace", "WORKSPACE", Text),
		shown("repository", "REPOSITORY", Text).withKey("git.repo"), shown("brings", "BRINGS", JSON),
		shown("workloads", "WORKLOADS", JSON),
	}}, "environment name workspace repository brings workloads", "")
}

// SchedulingPolicies lists the scheduling policies.
func SchedulingPolicies() *List[query.SchedulingPolicy] {
	return list(read(query.SchedulingPolicies), Table{
		Name: "scheduling_policies", Doc: "The scheduling policies.", Key: 2,
		Columns: []Column{
			environment,
			text("name", "the scheduling policy").head("SCHEDULING POLICY"),
			text("deploymentTargets",
				"its selector of deployment targets, as CUE").head("DEPLOYMENT TARGETS"),
			text("clusterTypes", "its selector of cluster types, as CUE").head("CLUSTER TYPES"),
			text("clusters", "its selector of single clusters, as CUE; empty for all"),
			jsonOf("excepted",
				"what its except leaves out, a list of objects with such selectors").withKey("except"),
			boolean("deny", "whether it takes its pairs from all others").head("DENY"),
			optional(jsonOf("pin", "what it pins its assignments to, an object")),
			integer("assignments",
				"how many assignments it makes, alone or with others").head("ASSIGNMENTS"),
		},
		References: []Reference{refer("environments", "environment")},
	}, "environment name deploymentTargets clusterTypes deny assignments", "")
}

// Configs lists the configs.
func Configs() *List[query.Config] {
	return list(read(query.Configs), Table{
		Name: "configs", Doc: "The configs: containers of platform values.", Key: 2,
		Columns: []Column{
			environment,
			text("name", "the config").head("CONFIG"),
			integer("layer", "its layer").head("LAYER"),
			text("match", "its selector of assignments, as CUE").head("MATCH"),
			text("clusters", "its selector of single clusters, as CUE; empty for all"),
			jsonOf("keys", "the paths of its values, where they are known, a list").head("KEYS"),
			integer("assignments", "how many assignments it matches").head("ASSIGNMENTS"),
			boolean("failed", "whether it has errors"),
		},
		References: []Reference{refer("environments", "environment")},
	}, "environment name layer match assignments keys", "")
}

// ConfigSchemas lists the config schemas.
func ConfigSchemas() *List[query.ConfigSchema] {
	return list(read(query.ConfigSchemas), Table{
		Name: "config_schemas", Doc: "The platform's contracts on composed values.", Key: 2,
		Columns: []Column{
			environment,
			text("name", "the config schema").head("CONFIG SCHEMA"),
			text("match", "its selector of assignments, as CUE").head("MATCH"),
			text("clusters", "its selector of single clusters, as CUE; empty for all"),
			jsonOf("fields", "the paths that it names, a list").head("FIELDS"),
			boolean("failed", "whether it has errors"),
		},
		References: []Reference{refer("environments", "environment")},
	}, "environment name match fields", "")
}

// Tests lists the tests, for get only.
func Tests() *List[query.Test] {
	return list(read(query.Tests), Table{Name: "tests", Columns: []Column{
		environment, shown("name", "TEST", Text), shown("match", "MATCH", Text),
		shown("assignments", "ASSIGNMENTS", Integer), shown("description", "DESCRIPTION", Text),
	}}, "environment name match assignments", "description")
}

// assignmentKey are the columns that name an assignment. get shows the cluster type of its
// folder, and with -o wide the folder.
func assignmentKey() []Column {
	return []Column{
		environment,
		text("clusterType",
			"the folder of the cluster type, or of the class of one").head("CLUSTER TYPE").
			withText(func(folder any) string { return model.TypeOfFolder(folder.(string)) }),
		text("deploymentTarget", "the full name of the deployment target").head("DEPLOYMENT TARGET"),
	}
}

func assignmentTable() Table {
	return Table{
		Name: "assignments", Doc: "The assignments: one deployment target on one cluster type, or on " +
			"one class of it.", Key: 3,
		Columns: slices.Concat(assignmentKey(), []Column{
			text("workload", "the workload").head("WORKLOAD"),
			text("workspace", "the workspace that owns it").head("WORKSPACE"),
			text("application", "the application that it is a part of"),
			text("namespace", "the namespace that it runs in").head("NAMESPACE"),
			text("version", "its version").head("VERSION"),
			text("versionFrom", "what the version was derived from: chart, tag, digest or commit; empty "+
				"if the platform names it"),
			jsonOf("policies", "the scheduling policies that make it, a list").head("POLICIES"),
			text("reconciler", "the reconciler that delivers it").head("RECONCILER"),
			boolean("render", "whether the build renders its manifests"),
			jsonOf("dependsOn", "the deployment targets that it waits for, a list").head("DEPENDS ON"),
			text("configuration", "the digest of its composed values; empty where it failed"),
			boolean("failed", "whether errors concern it, so that it is not built").head("STATE").
				withText(func(failed any) string { return State(failed.(bool)) }),
			shown("cluster", "CLUSTER", Text),
			shown("clusters", "CLUSTERS", Integer),
			shown("folder", "FOLDER", Text).withKey("clusterType"),
		}),
		References: []Reference{
			refer("classes", "environment", "clusterType"),
			refer("deployment_targets", "environment", "deploymentTarget"),
			refer("workloads", "environment", "workload"),
		},
	}
}

// Assignments lists the assignments.
func Assignments() *List[query.Assignment] {
	return list(query.Assignments, assignmentTable(),
		"environment clusterType deploymentTarget workspace version namespace policies failed",
		"clusters reconciler workload dependsOn folder")
}

// ClusterAssignments lists the assignments once for each cluster, for get only.
func ClusterAssignments() *List[query.Assignment] {
	return list(query.ClusterAssignments, assignmentTable(),
		"environment cluster clusterType deploymentTarget workspace version namespace policies failed",
		"folder")
}

// The states of an item that errors may concern.
const (
	StateOK     = "ok"
	StateFailed = "failed"
)

// State returns the state of an item.
func State(failed bool) string {
	if failed {
		return StateFailed
	}
	return StateOK
}
