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

// The ids of texts in a made history: texts of environments, of targets, which are workloads too,
// of versions, of messages, and of clusters from 1000 on.
const textsSQL = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 101000)
INSERT INTO term (id, text) SELECT i, CASE WHEN i = 1 THEN '' WHEN i < 10 THEN 'env' || i WHEN i < 100 THEN 'w' || i || '-main' WHEN i < 500 THEN 'version-' || i || '-0123456789012345678901234567' WHEN i < 1000 THEN 'message ' || i ELSE 'cluster' || i END FROM n`

// historySQL makes as many transitions as there are, over 180 days. A cluster is of one of three
// environments and has ten assignments.
const historySQL = `WITH RECURSIVE n(i) AS (SELECT CAST(FIRST AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < LAST),
x(i, c, t) AS (SELECT i, (i * 7919 + i / 100000 * 13) % 100000, i % 10 FROM n)
INSERT INTO transition (change, at, environment, workload, cluster, target, cluster_type, folder, was, state, version, wanted, ran, revision, message)
SELECT i, 1700000000000 + i * (15552000000 / TOTAL), 2 + c % 3, 10 + t, 1000 + c, 10 + t, 30 + c / 3 % 30, 30 + c / 3 % 30, i % 7, (i / 3) % 7, 100 + i % 300, 100 + i % 300, 100 + i % 299, 100 + i % 301, CASE WHEN i % 10 = 0 THEN 500 + i % 499 ELSE 1 END FROM x`

// partsSQL makes the parts that are counted, in 20 generations of 9 days each. In each
// generation, ten workloads have a new version, on each of 30 cluster types in ten rings of three
// environments.
const partsSQL = `WITH RECURSIVE n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 17999),
x(i, g, c) AS (SELECT i, i / 900, i % 900 FROM n)
INSERT INTO part (id, environment, ring, cluster_type, workload, version, base, opened, newest, closed)
SELECT i + 1, 2 + c % 3, 20 + c / 3 % 10, 30 + c / 3 % 30, 10 + c / 90, 100 + g, 200 + g, 1700000000000 + g * 777600000, 1700000000000 + g * 777600000 + 59 * 60000, CASE WHEN g < 19 THEN 1700000000000 + (g + 1) * 777600000 ELSE 0 END FROM x`

// talliesSQL makes an hour in which the counts of each part change every minute.
const talliesSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59)
INSERT INTO tally (part, at, ok, progressing, behind, drifted, stale, missing, failed)
SELECT id, opened + i * 60000, 18 * i, 10, 1090 - 18 * i, 1, 2, 3, 4 FROM part CROSS JOIN n`

// foldersSQL makes the history of the folders of 30 cluster types of each environment: another
// base 1,800 times, ten times a day.
const foldersSQL = `WITH RECURSIVE n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 161999),
x(i, g, c) AS (SELECT i, i / 90, i % 90 FROM n)
INSERT INTO folder_history (environment, folder, at, ring, base)
SELECT 2 + c % 3, 30 + c / 3, 1700000000000 + g * 8640000, 20 + c / 3 % 10, 200 + g % 300 FROM x`

// The time of a made history.
var (
	historyBegin  = time.UnixMilli(1_700_000_000_000)
	historyMiddle = historyBegin.Add(90 * 24 * time.Hour)
)

// history measures the size of a database with many transitions, and the time of its answers.
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
	if err := makeHistory(ctx, o, db, total); err != nil {
		return err
	}
	for _, q := range questionsOfThePast(ctx, s) {
		took, rows := &times{}, 0
		for range 20 {
			begin := time.Now()
			if rows, err = q.ask(); err != nil {
				return err
			}
			took.add(time.Since(begin))
		}
		took.print(fmt.Sprintf("%s (%d)", q.name, rows), 0)
	}
	return sweep(ctx, s)
}

// makeHistory fills a database.
func makeHistory(ctx context.Context, o options, db *sql.DB, total int) error {
	for _, q := range []string{textsSQL, partsSQL, talliesSQL, foldersSQL} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	before := size(ctx, o, db)
	const step = 1_000_000
	for from := 1; from <= total; from += step {
		q := strings.NewReplacer("FIRST", fmt.Sprint(from), "LAST", fmt.Sprint(min(total, from+step-1)),
			"TOTAL", fmt.Sprint(total)).Replace(historySQL)
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	settle := "PRAGMA wal_checkpoint(TRUNCATE)"
	if o.postgres {
		settle = "VACUUM ANALYZE"
	}
	for _, q := range []string{fmt.Sprint("UPDATE change SET number = ", total), settle} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	fmt.Printf("%d transitions on %s: %d bytes each\n", total, kindOf(o), (size(ctx, o, db)-before)/int64(total))
	return nil
}

// pastQuestion is a question to a store. The answer is the number of rows.
type pastQuestion struct {
	name string
	ask  func() (int, error)
}

func questionsOfThePast(ctx context.Context, s *store.Store) (all []pastQuestion) {
	workload := state.Filter{Environments: state.In("env2"), Workload: "w13-main"}
	failed := workload
	failed.States = []state.State{state.Failed}
	cluster := state.Filter{Cluster: "cluster5000"}
	// The names of rings have the ids of targets, and the names of bases the ids of versions.
	ring := state.Filter{Environments: state.In("env2"), Ring: "w23-main"}
	base, rare, part := ring, ring, workload
	base.Ring, base.Base, part.Ring = "", "version-200-0123456789012345678901234567", ring.Ring
	rare.ClusterType = "w34-main" // which has another ring
	for _, q := range []struct {
		name   string
		filter store.Filter
	}{
		{"history, the newest 100", store.Filter{}},
		{"history of an environment's workload, 100", store.Filter{Filter: workload}},
		{"... before the middle", store.Filter{Filter: workload, Until: historyMiddle}},
		{"history of a cluster, 100", store.Filter{Filter: cluster}},
		{"history of a ring, 100", store.Filter{Filter: ring}},
		{"... of what is nowhere", store.Filter{Filter: rare}},
	} {
		all = append(all, pastQuestion{q.name,
			func() (int, error) { x, _, err := s.History(ctx, q.filter, 100); return len(x), err }})
	}
	for _, q := range []struct {
		name   string
		filter state.Filter
	}{
		{"a cluster in the middle", cluster}, {"an environment's workload in the middle, 100", workload},
		{"... those that failed", failed},
		{"... of a ring", part}, {"an environment's ring in the middle, 100", ring},
		{"a base in the middle, 100", base}, {"... what is nowhere", rare},
	} {
		all = append(all, pastQuestion{q.name, func() (int, error) {
			x, _, err := s.At(ctx, q.filter, historyMiddle, store.Place{}, 0, 100)
			return len(x), err
		}})
	}
	all = append(all, pastQuestion{"... counted by state", func() (int, error) {
		x, _, err := s.CountAt(ctx, workload, historyMiddle)
		return x.Wanted(), err
	}})
	for _, q := range []struct {
		name string
		of   state.Environments
	}{
		{"counts in the middle", nil}, {"... of an environment", state.In("env2")},
	} {
		all = append(all, pastQuestion{q.name,
			func() (int, error) { x, err := s.PartsAt(ctx, historyMiddle, q.of); return len(x), err }})
	}
	return all
}

// sweep removes the rows that were replaced in the first tenth of a history.
func sweep(ctx context.Context, s *store.Store) error {
	begin, steps := time.Now(), 0
	longest := time.Duration(0)
	for more := true; more; steps++ {
		step, err := time.Now(), error(nil)
		if more, err = s.Sweep(ctx, historyBegin.Add(18*24*time.Hour)); err != nil {
			return err
		}
		longest = max(longest, time.Since(step))
	}
	fmt.Printf("a tenth of them is swept in %.1f s, in %d steps of at most %d ms\n",
		time.Since(begin).Seconds(), steps, longest.Milliseconds())
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
