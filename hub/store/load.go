package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
)

// Loader takes what was written by others, or before: what is wanted first, in the order of
// environments, then clusters, then assignments.
type Loader interface {
	Wanted(*state.Wanted)
	Cluster(Cluster)
	Assignment(environment, cluster, target string, s state.Stored)
}

// Load gives a Loader what changed after a number, and returns the number of the last change. It
// sees the database at one moment.
func (s *Store) Load(ctx context.Context, after int64, into Loader) (int64, error) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: s.postgres})
	if err != nil {
		return 0, s.problem(err)
	}
	defer func() { _ = tx.Rollback() }()
	var last int64
	if err := tx.QueryRowContext(ctx, `SELECT number FROM change`).Scan(&last); err != nil {
		return 0, s.problem(err)
	}
	if last == after {
		return last, nil
	}
	if err := s.load(ctx, tx, after, into); err != nil {
		return 0, s.problem(err)
	}
	return last, nil
}

// Load gives a Loader what others have changed after a number.
func (t *Tx) Load(ctx context.Context, after int64, into Loader) error {
	if after == t.began {
		return nil
	}
	if err := t.store.load(ctx, t.tx, after, into); err != nil {
		return t.store.problem(err)
	}
	return nil
}

func (s *Store) load(ctx context.Context, on querier, after int64, into Loader) error {
	err := s.rows(ctx, on, func(r *sql.Rows) error {
		var content []byte
		if err := r.Scan(&content); err != nil {
			return err
		}
		w, err := unpack(content)
		if err == nil {
			into.Wanted(w)
		}
		return err
	}, `SELECT content FROM wanted WHERE change > ? ORDER BY position`, after)
	if err != nil {
		return err
	}
	err = s.rows(ctx, on, func(r *sql.Rows) error {
		var c Cluster
		var seen, snapshot int64
		if err := r.Scan(&c.Cluster, &seen, &snapshot, &c.Digest, &c.By); err != nil {
			return err
		}
		c.Last, c.Snapshot = instant(seen), instant(snapshot)
		into.Cluster(c)
		return nil
	}, `SELECT name, seen, snapshot, digest, reporter FROM cluster WHERE change > ?`, after)
	if err != nil {
		return err
	}
	return s.assignments(ctx, on, after, into)
}

// assignments reads rows in two steps: first the ids, then the texts that are not known, because
// a join of eight texts for each row takes longer than all else.
func (s *Store) assignments(ctx context.Context, on querier, after int64, into Loader) error {
	texts := map[int64]string{}
	if after == 0 {
		err := s.rows(ctx, on, func(r *sql.Rows) error {
			var id int64
			var text string
			if err := r.Scan(&id, &text); err != nil {
				return err
			}
			texts[id] = text
			return nil
		}, `SELECT id, text FROM term WHERE id IN (SELECT environment FROM assignment UNION SELECT cluster FROM assignment UNION SELECT target FROM assignment UNION SELECT cluster_type FROM assignment
			UNION SELECT ran FROM assignment UNION SELECT digest FROM assignment UNION SELECT revision FROM assignment UNION SELECT path FROM assignment UNION SELECT message FROM assignment UNION SELECT reporter FROM assignment)`)
		if err != nil {
			return err
		}
	}
	var rows []row
	give := func(r row) {
		st, t := r.s, func(i int) string { return texts[r.ids[i]] }
		st.ClusterType, st.Ran, st.Digest, st.Commit, st.Path, st.Message, st.By = t(3), t(4), t(5), t(6), t(7), t(8), t(9)
		into.Assignment(t(0), t(1), t(2), st)
	}
	err := s.rows(ctx, on, func(r *sql.Rows) error {
		var x row
		if err := r.Scan(&x.ids[0], &x.ids[1], &x.ids[2], &x.ids[3], &x.ids[4], &x.ids[5], &x.ids[6], &x.ids[7], &x.ids[8], &x.ids[9],
			&x.s.State, &x.s.Changed, &x.s.Reported, &x.s.At, &x.s.Since); err != nil {
			return err
		}
		if after == 0 {
			give(x)
		} else {
			rows = append(rows, x)
		}
		return nil
	}, `SELECT environment, cluster, target, cluster_type, ran, digest, revision, path, message, reporter, state, changed, reported, observed, since FROM assignment WHERE change > ?`, after)
	if err != nil {
		return err
	}
	for i := range rows {
		for _, id := range rows[i].ids {
			if _, known := texts[id]; known {
				continue
			}
			var text string
			if err := s.rows(ctx, on, func(r *sql.Rows) error { return r.Scan(&text) }, `SELECT text FROM term WHERE id = ?`, id); err != nil {
				return err
			}
			texts[id] = text
		}
		give(rows[i])
	}
	return nil
}

// row is a row of assignment, with the ids of its texts.
type row struct {
	ids [10]int64
	s   state.Stored
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
