package store

import (
	"context"
	"database/sql"
	"time"
)

// Notification is what is kept of a message to people. Reference says how far it is; its
// meaning is that of who sends.
type Notification struct {
	Key       string
	At        time.Time
	Reference string
}

// Notifications returns those whose keys have a prefix, by key.
func (s *Store) Notifications(ctx context.Context, prefix string) (map[string]Notification, error) {
	out := map[string]Notification{}
	err := s.rows(ctx, s.read, func(r *sql.Rows) error {
		var n Notification
		var at int64
		err := r.Scan(&n.Key, &at, &n.Reference)
		n.At = instant(at)
		out[n.Key] = n
		return err
	}, `SELECT key, at, reference FROM notification WHERE SUBSTR(key, 1, CAST(? AS INT)) = ?`, len([]rune(prefix)), prefix)
	if err != nil {
		return nil, s.problem(err)
	}
	return out, nil
}

// AddNotification adds one, and more with it. It adds nothing, and returns false, where the
// first one is there: one hub alone can add it.
func (s *Store) AddNotification(ctx context.Context, first Notification, more ...Notification) (added bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, s.problem(err)
	}
	defer func() { _ = tx.Rollback() }()
	result, err := tx.ExecContext(ctx,
		s.query(`INSERT INTO notification (key, at, reference) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING`), first.Key, first.At.UnixMilli(), first.Reference)
	if err != nil {
		return false, s.problem(err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	var values []any
	for _, n := range more {
		values = append(values, n.Key, n.At.UnixMilli(), n.Reference)
	}
	if err := s.insert(ctx, tx, "notification", "key, at, reference", "ON CONFLICT (key) DO NOTHING", values); err != nil {
		return false, s.problem(err)
	}
	if err := tx.Commit(); err != nil {
		return false, s.problem(err)
	}
	return true, nil
}

// ReplaceNotification replaces one; false where it is not what it was: another hub was first.
func (s *Store) ReplaceNotification(ctx context.Context, was, is Notification) (bool, error) {
	return s.notification(ctx, `UPDATE notification SET at = ?, reference = ? WHERE key = ? AND at = ? AND reference = ?`,
		is.At.UnixMilli(), is.Reference, was.Key, was.At.UnixMilli(), was.Reference)
}

// RemoveNotification removes one; false where it is not what it was.
func (s *Store) RemoveNotification(ctx context.Context, was Notification) (bool, error) {
	return s.notification(ctx, `DELETE FROM notification WHERE key = ? AND at = ? AND reference = ?`,
		was.Key, was.At.UnixMilli(), was.Reference)
}

func (s *Store) notification(ctx context.Context, q string, args ...any) (bool, error) {
	result, err := s.db.ExecContext(ctx, s.query(q), args...)
	if err != nil {
		return false, s.problem(err)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
