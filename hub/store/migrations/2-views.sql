-- The views are a stable contract: dashboards and reports are made of them.
CREATE VIEW v_assignments AS
SELECT e.text AS environment, r.text AS ring, ct.text AS cluster_type, c.text AS cluster, w.text AS workload, t.text AS deployment_target,
	CASE a.state WHEN 0 THEN 'ok' WHEN 1 THEN 'progressing' WHEN 2 THEN 'behind' WHEN 3 THEN 'drifted' WHEN 4 THEN 'stale' WHEN 5 THEN 'missing' ELSE 'failed' END AS state,
	v.text AS version, b.text AS base, m.text AS message, a.changed AS changed_ms, a.observed AS observed_ms
FROM assignment a JOIN wanted_target x ON x.environment = a.environment AND x.folder = a.folder AND x.target = a.target
JOIN term e ON e.id = a.environment JOIN term r ON r.id = x.ring JOIN term ct ON ct.id = x.cluster_type JOIN term c ON c.id = a.cluster
JOIN term w ON w.id = x.workload JOIN term t ON t.id = a.target JOIN term v ON v.id = x.version JOIN term b ON b.id = x.base JOIN term m ON m.id = a.message;

CREATE VIEW v_rollout AS
SELECT e.text AS environment, r.text AS ring, ct.text AS cluster_type, w.text AS workload, v.text AS version, b.text AS base, x.at AS at_ms,
	x.ok + x.progressing + x.behind + x.drifted + x.stale + x.missing + x.failed AS wanted,
	x.ok, x.progressing, x.behind, x.drifted, x.stale, x.missing, x.failed
FROM tally x JOIN part p ON p.id = x.part
JOIN term e ON e.id = p.environment JOIN term r ON r.id = p.ring JOIN term ct ON ct.id = p.cluster_type JOIN term w ON w.id = p.workload
JOIN term v ON v.id = p.version JOIN term b ON b.id = p.base;

CREATE VIEW v_drift AS
SELECT environment, ring, cluster_type, cluster, workload, deployment_target, state, message, changed_ms FROM v_assignments WHERE state IN ('behind', 'drifted');

CREATE VIEW v_history AS
SELECT h.change, h.at AS at_ms, e.text AS environment, ct.text AS cluster_type, c.text AS cluster, w.text AS workload, t.text AS deployment_target,
	CASE h.state WHEN 0 THEN 'ok' WHEN 1 THEN 'progressing' WHEN 2 THEN 'behind' WHEN 3 THEN 'drifted' WHEN 4 THEN 'stale' WHEN 5 THEN 'missing' WHEN 6 THEN 'failed' ELSE 'gone' END AS state,
	v.text AS version, m.text AS message
FROM transition h
JOIN term e ON e.id = h.environment JOIN term ct ON ct.id = h.cluster_type JOIN term c ON c.id = h.cluster
JOIN term w ON w.id = h.workload JOIN term t ON t.id = h.target JOIN term v ON v.id = h.version JOIN term m ON m.id = h.message;

CREATE VIEW v_releases AS
SELECT environment, ring, revision, base, own, author, subject, committed AS committed_ms, at AS at_ms, completed AS completed_ms, failed AS failed_ms FROM release;
