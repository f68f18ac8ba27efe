package database

import "github.com/kalypso-io/kalypso/compiler/query/tables"

// Views returns the views, each after the views that it reads.
func Views() []View {
	environment := column("environment", tables.Text, "the environment")
	workload := column("workload", tables.Text, "the workload")
	clusterType := column("clusterType", tables.Text,
		"the folder of the cluster type, or of the class of one")
	deploymentTarget := column("deploymentTarget", tables.Text,
		"the full name of the deployment target")
	return []View{
		{
			Name: "v_fleet",
			Doc:  "Which versions of each workload run in each environment, and on how much.",
			Columns: []tables.Column{
				environment, workload, column("workspace", tables.Text, "the workspace that owns it"),
				column("versions", tables.Text, "its versions, sorted as text, with commas between them"),
				column("assignments", tables.Integer, "how many assignments it has"),
				column("failed", tables.Integer, "how many of them have errors"),
				column("clusters", tables.Integer, "how many listed clusters it is on"),
			},
			of: []string{"workloads", "versions", "assignments", "classes"},
			query: `SELECT w.environment, w.name, w.workspace, coalesce(group_concat(nullif(v.version, ''), ', '), ''),
  coalesce(sum(v.assignments), 0), coalesce(sum(v.failed), 0),
  (SELECT coalesce(sum(c.clusters), 0) FROM classes c
    WHERE c.environment = w.environment AND c.folder IN (SELECT a.clusterType FROM assignments a
      WHERE a.environment = w.environment AND a.workload = w.name))
FROM workloads w LEFT JOIN versions v ON v.environment = w.environment AND v.workload = w.name
GROUP BY w.environment, w.name`,
		},
		{
			Name: "v_lagging",
			Doc: "Workloads that have other versions in an environment than in one that it is promoted " +
				"from.",
			Columns: []tables.Column{
				environment, workload, column("versions", tables.Text, "its versions there"),
				column("promotedFrom", tables.Text, "an environment that this one comes after"),
				column("versionsBefore", tables.Text, "its versions in that one"),
			},
			of: []string{"environments", "workloads", "versions", "assignments", "classes"},
			query: `SELECT f.environment, f.workload, f.versions, b.environment, b.versions
FROM environments e, json_each(e.after) j
JOIN v_fleet f ON f.environment = e.name
JOIN v_fleet b ON b.environment = j.value AND b.workload = f.workload
WHERE f.versions <> b.versions`,
		},
		{
			Name: "v_assignment_clusters", Doc: "What runs on each listed cluster: each assignment once " +
				"for each cluster that follows its folder.",
			Columns: []tables.Column{
				environment, column("cluster", tables.Text, "the cluster"), clusterType, deploymentTarget,
				workload,
				column("version", tables.Text, "the version of the assignment"),
				column("namespace", tables.Text, "the namespace that it runs in"),
				column("failed", tables.Boolean, "whether it has errors"),
			},
			of: []string{"clusters", "assignments"},
			query: `SELECT c.environment, c.name, a.clusterType, a.deploymentTarget, a.workload, a.version, a.namespace, a.failed
FROM clusters c JOIN assignments a ON a.environment = c.environment AND a.clusterType = c.folder`,
		},
		{
			Name: "v_values_by_config",
			Doc:  "What each config sets: the values that come from it, and in how many assignments.",
			Columns: []tables.Column{
				environment, column("config", tables.Text, "the config"),
				column("path", tables.Text, "the value's path"),
				column("assignments", tables.Integer, "how many assignments have the value from it"),
				column("different", tables.Integer, "how many different values these are"),
			},
			of: []string{"assignment_values"},
			query: `SELECT environment, setBy, path, count(*), count(DISTINCT value)
FROM assignment_values WHERE layer IS NOT NULL GROUP BY environment, setBy, path`,
		},
		{
			Name: "v_failures", Doc: "The assignments with errors, and what these are.",
			Columns: []tables.Column{
				environment, clusterType, deploymentTarget, workload,
				column("workspace", tables.Text, "the workspace that owns it"),
				column("code", tables.Text, "the code of the error"),
				column("message", tables.Text, "what is wrong"),
				column("file", tables.Text, "the file of the first position"),
				column("line", tables.Integer, "the line in the file"),
			},
			of: []string{"diagnostics", "assignments"},
			query: `SELECT a.environment, a.clusterType, a.deploymentTarget, a.workload, a.workspace, f.code, f.message, f.file, f.line
FROM (SELECT d.*, j.value AS assignment, instr(j.value, '/') AS one,
    instr(j.value, '/') + instr(substr(j.value, instr(j.value, '/') + 1), '/') AS two
  FROM diagnostics d, json_each(d.assignments) j WHERE d.severity = 'error') f
JOIN assignments a ON a.environment = substr(f.assignment, 1, f.one - 1)
  AND a.clusterType = substr(f.assignment, f.one + 1, f.two - f.one - 1) AND a.deploymentTarget = substr(f.assignment, f.two + 1)`,
		},
		{
			Name: "v_last_changes",
			Doc:  "The newest commit that changed each assignment, of those that the history has.",
			Columns: []tables.Column{
				environment, clusterType, deploymentTarget,
				column("change", tables.Text, "added, changed or removed"),
				column("version", tables.Text, "the version since then"),
				column("time", tables.Text, "when that was"),
				column("commitId", tables.Text, "the commit of the GitOps repository"),
				column("author", tables.Text, "its author"),
				column("subject", tables.Text, "the first line of its message"),
			},
			of: []string{"history"},
			query: `SELECT environment, clusterType, deploymentTarget, change, version, time, commitId, author, subject
FROM history h WHERE number = (SELECT min(number) FROM history n
  WHERE n.environment = h.environment AND n.clusterType = h.clusterType AND n.deploymentTarget = h.deploymentTarget)`,
		},
	}
}

// indexes are the indexes that make views fast, by table.
var indexes = map[string]string{
	"assignments": "CREATE INDEX assignments_by_workload ON assignments (environment, workload)",
	"history": "CREATE INDEX history_by_assignment ON history (environment, clusterType, " +
		"deploymentTarget, number)",
}
