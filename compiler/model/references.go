package model

// DeploymentTargets stands among collections for the deployment targets of all workloads, by
// their full names, and TargetNames for them by their short ones.
const (
	DeploymentTargets = "deploymentTargets"
	TargetNames       = "deploymentTargets.name"
)

// References are the fields of the schema, each as <definition>.<field>, whose value, or whose
// elements, are names, and the collection of what they name. Those of #Assignment are the facts
// that a match constrains.
var References = map[string]string{
	"#Environment.after":    "environments",
	"#SoakGate.environment": "environments",

	"#ClusterType.reconciler":       "reconcilers",
	"#ClusterType.namespaceService": "namespaceServices",
	"#Cluster.clusterType":          "clusterTypes",
	"#Inventory.clusterType":        "clusterTypes",

	"#Workspace.environments": "environments",
	"#Workspace.clusterTypes": "clusterTypes",
	"#Workspace.policies":     "schedulingPolicies",

	"#Workload.workspace":           "workspaces",
	"#DeploymentTarget.environment": "environments",
	"#DeploymentTarget.dependsOn":   DeploymentTargets,
	"#Registration.workspace":       "workspaces",

	"#DeploymentTargetSelector.name":        TargetNames,
	"#DeploymentTargetSelector.workload":    "workloads",
	"#DeploymentTargetSelector.workspace":   "workspaces",
	"#DeploymentTargetSelector.environment": "environments",
	"#ClusterTypeSelector.name":             "clusterTypes",
	"#ClusterSelector.name":                 "clusters",

	"#Assignment.environment":      "environments",
	"#Assignment.workspace":        "workspaces",
	"#Assignment.workload":         "workloads",
	"#Assignment.deploymentTarget": DeploymentTargets,
	"#Assignment.clusterType":      "clusterTypes",

	"#TestedAssignment.environment":      "environments",
	"#TestedAssignment.workspace":        "workspaces",
	"#TestedAssignment.workload":         "workloads",
	"#TestedAssignment.deploymentTarget": DeploymentTargets,
	"#TestedAssignment.clusterType":      "clusterTypes",
	"#TestedAssignment.dependsOn":        DeploymentTargets,
	"#TestedAssignment.policies":         "schedulingPolicies",
	"#TestedAssignment.configs":          "configs",
	"#TestedAssignment.configSchemas":    "configSchemas",
	"#TestedAssignment.reconciler":       "reconcilers",
}
