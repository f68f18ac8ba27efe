-- Where a cluster takes an assignment from, beside the path, and which commit it applied last where that is not the one that it tries. 0 is the id of no
-- text: nobody said it.
ALTER TABLE assignment ADD COLUMN applied INT NOT NULL DEFAULT 0;
ALTER TABLE assignment ADD COLUMN repository INT NOT NULL DEFAULT 0;
ALTER TABLE assignment ADD COLUMN branch INT NOT NULL DEFAULT 0;

-- What is suspended has a state of its own.
ALTER TABLE tally ADD COLUMN suspended INT NOT NULL DEFAULT 0;

DROP VIEW v_drift;
DROP VIEW v_assignments;
DROP VIEW v_rollout;
DROP VIEW v_history;

CREATE VIEW v_assignments AS
SELECT e.text AS environment, r.text AS ring, ct.text AS cluster_type, c.text AS cluster, w.text AS workload, t.text AS deployment_target,
	CASE a.state WHEN 0 THEN 'ok' WHEN 1 THEN 'progressing' WHEN 2 THEN 'behind' WHEN 3 THEN 'drifted' WHEN 4 THEN 'stale' WHEN 5 THEN 'missing' WHEN 6 THEN 'failed' ELSE 'suspended' END AS state,
	v.text AS version, b.text AS base, m.text AS message, a.changed AS changed_ms, a.observed AS observed_ms
FROM assignment a JOIN wanted_target x ON x.environment = a.environment AND x.folder = a.folder AND x.target = a.target
JOIN term e ON e.id = a.environment JOIN term r ON r.id = x.ring JOIN term ct ON ct.id = x.cluster_type JOIN term c ON c.id = a.cluster
JOIN term w ON w.id = x.workload JOIN term t ON t.id = a.target JOIN term v ON v.id = x.version JOIN term b ON b.id = x.base JOIN term m ON m.id = a.message;

CREATE VIEW v_rollout AS
SELECT e.text AS environment, r.text AS ring, ct.text AS cluster_type, w.text AS workload, v.text AS version, b.text AS base, x.at AS at_ms,
	x.ok + x.progressing + x.behind + x.drifted + x.stale + x.missing + x.failed + x.suspended AS wanted,
	x.ok, x.progressing, x.behind, x.drifted, x.stale, x.missing, x.failed, x.suspended
FROM tally x JOIN part p ON p.id = x.part
JOIN term e ON e.id = p.environment JOIN term r ON r.id = p.ring JOIN term ct ON ct.id = p.cluster_type JOIN term w ON w.id = p.workload
JOIN term v ON v.id = p.version JOIN term b ON b.id = p.base;

CREATE VIEW v_drift AS
SELECT environment, ring, cluster_type, cluster, workload, deployment_target, state, message, changed_ms FROM v_assignments WHERE state IN ('behind', 'drifted');

CREATE VIEW v_history AS
SELECT h.change, h.at AS at_ms, e.text AS environment, ct.text AS cluster_type, c.text AS cluster, w.text AS workload, t.text AS deployment_target,
	CASE h.state WHEN 0 THEN 'ok' WHEN 1 THEN 'progressing' WHEN 2 THEN 'behind' WHEN 3 THEN 'drifted' WHEN 4 THEN 'stale' WHEN 5 THEN 'missing' WHEN 6 THEN 'failed' WHEN 7 THEN 'suspended' ELSE 'gone' END AS state,
	v.text AS version, m.text AS message
FROM transition h
JOIN term e ON e.id = h.environment JOIN term ct ON ct.id = h.cluster_type JOIN term c ON c.id = h.cluster
JOIN term w ON w.id = h.workload JOIN term t ON t.id = h.target JOIN term v ON v.id = h.version JOIN term m ON m.id = h.message;

-- Reports about clusters that no environment had yet, in their order: the next branch that is read may have them.
CREATE TABLE early (change BIGINT PRIMARY KEY, cluster TEXT NOT NULL, received BIGINT NOT NULL, content TEXT NOT NULL);
CREATE INDEX early_cluster ON early (cluster);
