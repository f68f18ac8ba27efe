-- What kalypso-observability-hub keeps, in our own words: its tables as far as the report reads them, their keys, and no other index.
CREATE TABLE workspace (id SERIAL PRIMARY KEY, name VARCHAR(30) NOT NULL UNIQUE);
CREATE TABLE application (id SERIAL PRIMARY KEY, workspace_id INT NOT NULL REFERENCES workspace, name VARCHAR(30) NOT NULL, UNIQUE (workspace_id, name));
CREATE TABLE workload (id SERIAL PRIMARY KEY, application_id INT NOT NULL REFERENCES application, name VARCHAR(30) NOT NULL, UNIQUE (application_id, name));
CREATE TABLE workload_version (id SERIAL PRIMARY KEY, workload_id INT NOT NULL REFERENCES workload, version VARCHAR(30) NOT NULL, UNIQUE (workload_id, version));
CREATE TABLE environment (id SERIAL PRIMARY KEY, name VARCHAR(30) NOT NULL UNIQUE);
CREATE TABLE deployment_target (
	id SERIAL PRIMARY KEY, environment_id INT NOT NULL REFERENCES environment, workload_id INT NOT NULL REFERENCES workload,
	name VARCHAR(30) NOT NULL, manifests_endpoint TEXT NOT NULL, UNIQUE (environment_id, workload_id, name)
);
CREATE TABLE deployment_assignment (
	id SERIAL PRIMARY KEY, deployment_target_id INT NOT NULL REFERENCES deployment_target, workload_version_id INT NOT NULL REFERENCES workload_version,
	gitops_commit_id TEXT NOT NULL, UNIQUE (deployment_target_id, gitops_commit_id)
);
CREATE TABLE host (id SERIAL PRIMARY KEY, name VARCHAR(30) NOT NULL UNIQUE);
CREATE TABLE reconciler (id SERIAL PRIMARY KEY, host_id INT NOT NULL REFERENCES host, manifests_endpoint TEXT NOT NULL, UNIQUE (host_id, manifests_endpoint));
CREATE TABLE deployment (
	id SERIAL PRIMARY KEY, reconciler_id INT NOT NULL REFERENCES reconciler, gitops_commit_id TEXT NOT NULL, status VARCHAR(30) NOT NULL,
	created_on TIMESTAMP NOT NULL, UNIQUE (gitops_commit_id, reconciler_id)
);
