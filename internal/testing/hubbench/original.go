//go:build unix

package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// originalSQL is the schema of kalypso-observability-hub: the desired deployments, and the report
// of each host's reconciler about each commit.
//
//go:embed original.sql
var originalSQL string

// hostsSQL adds hosts of three environments. Each host has only one workload, which is a tenth of
// the workloads of a hub's cluster here. It has had ten versions of the workload. One in fifty
// failed to get the last version.
var hostsSQL = []string{
	`INSERT INTO workspace (name) VALUES ('team')`,
	`INSERT INTO application (workspace_id, name) VALUES (1, 'shop')`,
	`INSERT INTO workload (application_id, name) VALUES (1, 'shop')`,
	`INSERT INTO workload_version (workload_id, version) SELECT 1, 'v' || v FROM generate_series(1, 10) v`,
	`INSERT INTO environment (name) VALUES ('dev'), ('stage'), ('prod')`,
	`INSERT INTO deployment_target (environment_id, workload_id, name, manifests_endpoint) SELECT e, 1, 'main', 'https://git.example/gitops/env' || e FROM generate_series(1, 3) e`,
	`INSERT INTO deployment_assignment (deployment_target_id, workload_version_id, gitops_commit_id) SELECT e, v, 'commit-' || e || '-' || v FROM generate_series(1, 10) v, generate_series(1, 3) e`,
	`INSERT INTO host (name) SELECT 'host' || h FROM generate_series(1, HOSTS) h`,
	`INSERT INTO reconciler (host_id, manifests_endpoint) SELECT h, 'https://git.example/gitops/env' || (1 + h % 3) FROM generate_series(1, HOSTS) h`,
	`INSERT INTO deployment (reconciler_id, gitops_commit_id, status, created_on)
	SELECT h, 'commit-' || (1 + h % 3) || '-' || v, CASE WHEN v = 10 AND h % 50 = 0 THEN 'failure' ELSE 'success' END, TIMESTAMP '2026-01-01' + v * INTERVAL '1 day' + h * INTERVAL '1 millisecond'
	FROM generate_series(1, 10) v, generate_series(1, HOSTS) h`,
	`ANALYZE`,
}

// reportSQL is its report of the number of hosts by version and state. It uses the last report of
// each host's reconciler if that is about a commit that assigned a version.
const reportSQL = `SELECT e.name, w.name, v.version, d.status, COUNT(*)
FROM deployment_target t JOIN environment e ON e.id = t.environment_id JOIN workload w ON w.id = t.workload_id
JOIN deployment_assignment a ON a.deployment_target_id = t.id JOIN workload_version v ON v.id = a.workload_version_id
JOIN reconciler r ON r.manifests_endpoint = t.manifests_endpoint
JOIN deployment d ON d.reconciler_id = r.id AND d.gitops_commit_id = a.gitops_commit_id
WHERE d.created_on = (SELECT MAX(x.created_on) FROM deployment x WHERE x.reconciler_id = r.id)
GROUP BY e.name, w.name, v.version, d.status`

// longestReport bounds a report.
const longestReport = 2 * time.Minute

// original measures the report of this hub's predecessor, with increasing numbers of hosts. It
// measures the report unchanged, until that takes too long, and with the index that it would
// need. It also prints the time of this hub for the same question.
func original(ctx context.Context, o options, ours *times) error {
	c, err := hubtest.StartPostgres(o.dir)
	if err != nil {
		fmt.Println("the report of kalypso-observability-hub is not measured:", err)
		return nil
	}
	defer c.Stop()
	fmt.Printf("clusters by version and state, p50: %d with %d workloads each: %.1f ms\n", o.clusters,
		o.targets, 1000*ours.median().Seconds())
	tooLong := false
	for _, hosts := range []int{1000, 4000, 10_000, 100_000} {
		if hosts > o.clusters {
			break
		}
		db, err := hostsOn(ctx, c, hosts)
		if err != nil {
			return err
		}
		is := "not tried"
		if !tooLong {
			if is, tooLong, err = askOriginal(ctx, db); err != nil {
				return err
			}
		}
		if _, err := db.ExecContext(ctx, `CREATE INDEX ON deployment (reconciler_id, created_on)`); err != nil {
			return err
		}
		indexed, _, err := askOriginal(ctx, db)
		if err != nil {
			return err
		}
		fmt.Printf("  kalypso-observability-hub on PostgreSQL, %d with one workload each: %s; with an "+
			"index of deployments by reconciler and time: %s\n", hosts, is, indexed)
		_ = db.Close()
	}
	return nil
}

// hostsOn makes a database with so many hosts.
func hostsOn(ctx context.Context, c *hubtest.Cluster, hosts int) (*sql.DB, error) {
	address, err := c.Database(ctx)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, originalSQL); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	for _, q := range hostsSQL {
		if _, err := db.ExecContext(ctx, strings.ReplaceAll(q, "HOSTS", strconv.Itoa(hosts))); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// askOriginal returns the time that the report takes, and whether that is too long.
func askOriginal(ctx context.Context, db *sql.DB) (took string, tooLong bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestReport)
	defer cancel()
	begin := time.Now()
	rows, err := db.QueryContext(ctx, reportSQL)
	groups := 0
	if err == nil {
		for rows.Next() {
			groups++
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("more than %.0f s", longestReport.Seconds()), true, nil
	case err == nil && groups != 6:
		err = fmt.Errorf("the report has %d lines, and should have 6", groups)
	}
	return fmt.Sprintf("%.2f s", time.Since(begin).Seconds()), false, err
}
