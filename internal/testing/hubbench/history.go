//go:build unix

package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// The ids of texts in a made history: those of environments, of targets, which are workloads
// too, of versions, of messages, and of clusters from 1000 on.
const textsSQL = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 101000)
INSERT INTO term (id, text) SELECT i, CASE WHEN i = 1 THEN '' WHEN i < 10 THEN 'env' || i WHEN i < 100 THEN 'w' || i || '-main' WHEN i < 500 THEN 'version-' || i || '-0123456789012345678901234567' WHEN i < 1000 THEN 'message ' || i ELSE 'cluster' || i END FROM n`

// historySQL makes as many transitions as there are, over 180 days. A cluster is of one of three
// environments and has ten assignments.
const historySQL = `WITH RECURSIVE n(i) AS (SELECT CAST(FIRST AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < LAST),
x(i, c, t) AS (SELECT i, (i * 7919 + i / 100000 * 13) % 100000, i % 10 FROM n)
INSERT INTO transition (change, at, environment, workload, cluster, target, cluster_type, was, state, version, wanted, ran, revision, message)
SELECT i, 1700000000000 + i * (15552000000 / TOTAL), 2 + c % 3, 10 + t, 1000 + c, 10 + t, 2, i % 7, (i / 3) % 7, 100 + i % 300, 100 + i % 300, 100 + i % 299, 100 + i % 301, CASE WHEN i % 10 = 0 THEN 500 + i % 499 ELSE 1 END FROM x`

// history measures what a database with many transitions takes, and how long its answers do.
func history(ctx context.Context, o options, total int) error {
	s, err := store.Open(ctx, o.database)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	driver, name := "sqlite", "file:"+o.database+"?_pragma=synchronous(OFF)&_pragma=cache_size(-200000)"
	if o.postgres {
		driver, name = "pgx", o.database
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, textsSQL); err != nil {
		return err
	}
	before := size(ctx, o, db)
	const step = 1_000_000
	for from := 1; from <= total; from += step {
		q := strings.NewReplacer("FIRST", fmt.Sprint(from), "LAST", fmt.Sprint(min(total, from+step-1)), "TOTAL", fmt.Sprint(total)).Replace(historySQL)
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	if _, err := db.ExecContext(ctx, fmt.Sprint("UPDATE change SET number = ", total)); err != nil {
		return err
	}
	if o.postgres {
		_, err = db.ExecContext(ctx, "VACUUM ANALYZE transition")
	} else {
		_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d transitions on %s: %d bytes each\n", total, kindOf(o), (size(ctx, o, db)-before)/int64(total))
	middle := time.UnixMilli(1_700_000_000_000).Add(90 * 24 * time.Hour)
	for _, q := range []struct {
		name string
		ask  func() (int, error)
	}{
		{"history, the newest 100", func() (int, error) { x, err := s.History(ctx, store.Filter{}, 100); return len(x), err }},
		{"history of an environment's workload, 100", func() (int, error) {
			x, err := s.History(ctx, store.Filter{Environments: state.In("env2"), Workload: "w13-main"}, 100)
			return len(x), err
		}},
		{"... before the middle", func() (int, error) {
			x, err := s.History(ctx, store.Filter{Environments: state.In("env2"), Workload: "w13-main", Until: middle}, 100)
			return len(x), err
		}},
		{"history of a cluster, 100", func() (int, error) {
			x, err := s.History(ctx, store.Filter{Cluster: "cluster5000"}, 100)
			return len(x), err
		}},
		{"a cluster in the middle", func() (int, error) {
			x, err := s.At(ctx, store.Filter{Cluster: "cluster5000"}, middle, 1000)
			return len(x), err
		}},
		{"an environment's workload in the middle, 100", func() (int, error) {
			x, err := s.At(ctx, store.Filter{Environments: state.In("env2"), Workload: "w13-main"}, middle, 100)
			return len(x), err
		}},
		{"... those that failed", func() (int, error) {
			x, err := s.At(ctx, store.Filter{Environments: state.In("env2"), Workload: "w13-main", States: []state.State{state.Failed}}, middle, 100)
			return len(x), err
		}},
	} {
		took, rows := &times{}, 0
		for range 5 {
			begin := time.Now()
			if rows, err = q.ask(); err != nil {
				return err
			}
			took.add(time.Since(begin))
		}
		took.print(fmt.Sprintf("%s (%d)", q.name, rows), 0)
	}
	begin, steps := time.Now(), 0
	longest := time.Duration(0)
	for more := true; more; steps++ {
		step := time.Now()
		if more, err = s.Sweep(ctx, time.UnixMilli(1_700_000_000_000).Add(18*24*time.Hour)); err != nil {
			return err
		}
		longest = max(longest, time.Since(step))
	}
	fmt.Printf("a tenth of them is swept in %.1f s, in %d steps of at most %d ms\n", time.Since(begin).Seconds(), steps, longest.Milliseconds())
	return nil
}

// size returns how large a database is.
func size(ctx context.Context, o options, db *sql.DB) (bytes int64) {
	if o.postgres {
		_ = db.QueryRowContext(ctx, "SELECT pg_total_relation_size('transition')").Scan(&bytes)
		return bytes
	}
	if info, err := os.Stat(o.database); err == nil {
		bytes = info.Size()
	}
	return bytes
}
