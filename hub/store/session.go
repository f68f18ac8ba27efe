package store

import (
	"context"
	"database/sql"
	"time"
)

// EndSession notes that a session has ended, which would have held until a time.
func (s *Store) EndSession(ctx context.Context, id string, now, until time.Time) error {
	_, err := s.db.ExecContext(ctx, s.query(`INSERT INTO ended_session (id, until) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`), id, until.UnixMilli())
	if err == nil { // others that would not hold any more
		_, err = s.db.ExecContext(ctx, s.query(`DELETE FROM ended_session WHERE until < ?`), now.Add(-time.Hour).UnixMilli())
	}
	if err != nil {
		return s.problem(err)
	}
	return nil
}

// EndedSessions returns the sessions that have ended and would hold otherwise.
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
