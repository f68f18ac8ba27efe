-- With the state in it, the index has all that counting what was at a time takes.
DROP INDEX transition_workload;
CREATE INDEX transition_workload ON transition (environment, workload, change, at, cluster, target, state);
