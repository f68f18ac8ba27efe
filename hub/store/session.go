package store

import (
	"context"
	"database/sql"
	"time"
)

// EndSession notes that a session, or a sign-in, has ended, which would have held until a time. Of all
// calls for one id, at all hubs of the database, first is true for exactly one.
func (s *Store) EndSession(ctx context.Context, id string, now, until time.Time) (first bool, err error) {
	const insert = `INSERT INTO ended_session (id, until) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`
	result, err := s.db.ExecContext(ctx, s.query(insert), id, until.UnixMilli())
	var n int64
	if err == nil {
		n, err = result.RowsAffected()
	}
	if err == nil { // others that would not hold any more
		_, err = s.db.ExecContext(ctx, s.query(`DELETE FROM ended_session WHERE until < ?`), now.Add(-time.Hour).UnixMilli())
	}
	if err != nil {
		return false, s.problem(err)
	}
	return n > 0, nil
}

// EndedSessions returns the sessions and the sign-ins that have ended and would hold otherwise.
func (s *Store) EndedSessions(ctx context.Context, now time.Time) (ids []string, err error) {
	err = s.rows(ctx, s.read, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT id FROM ended_session WHERE until >= ?`, now.Add(-time.Hour).UnixMilli())
	if err != nil {
		return nil, s.problem(err)
	}
	return ids, nil
}
