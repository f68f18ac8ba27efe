package store

import (
	"context"
)

// Secret returns the secret of a name. Where there is none, it keeps the given one, and returns
// that: all hubs of a database get the same.
func (s *Store) Secret(ctx context.Context, name, otherwise string) (string, error) {
	if _, err := s.db.ExecContext(ctx,
		s.query(`INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`), name, otherwise); err != nil {
		return "", s.problem(err)
	}
	var value string
	if err := s.db.QueryRowContext(ctx, s.query(`SELECT value FROM secret WHERE name = ?`),
		name).Scan(&value); err != nil {
		return "", s.problem(err)
	}
	return value, nil
}
