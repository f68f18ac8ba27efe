package store

import (
	"context"
	"database/sql"
	"time"
)

// Notification is the stored progress of a message to people. The sender defines the meaning of
// Reference.
type Notification struct {
	Key       string
	At        time.Time
	Reference string
}

// notifications owns the table of the messages to people and of the leases. A hub claims each of
// them with a row, so that only one of all hubs sends a message or does the work.
type notifications struct{ *database }

// Notifications returns the notifications whose keys have a prefix, by key.
func (s *notifications) Notifications(ctx context.Context,
	prefix string) (map[string]Notification, error) {
	out := map[string]Notification{}
	err := s.rows(ctx, s.read, func(r *sql.Rows) error {
		var n Notification
		err := r.Scan(&n.Key, milliseconds{&n.At}, &n.Reference)
		out[n.Key] = n
		return err
	}, `SELECT key, at, reference FROM notification WHERE SUBSTR(key, 1, CAST(? AS INT)) = ?`,
		len([]rune(prefix)), prefix)
	return out, s.problem(err)
}

// AddNotification adds a notification, and more with it. If the first one exists already, it adds
// nothing and returns false: only one hub can add it.
func (s *notifications) AddNotification(ctx context.Context, first Notification,
	more ...Notification) (added bool, err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		n, err := s.exec(ctx, tx,
			`INSERT INTO notification (key, at, reference) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING`,
			first.Key, first.At.UnixMilli(), first.Reference)
		if added = n > 0; err != nil || !added {
			return err
		}
		var rows []any
		for _, n := range more {
			rows = append(rows, n.Key, n.At.UnixMilli(), n.Reference)
		}
		return s.insert(ctx, tx, "notification", "key, at, reference", "ON CONFLICT (key) DO NOTHING",
			rows)
	})
	return added && err == nil, s.problem(err)
}

// ReplaceNotification replaces a notification. It returns false if another hub has changed it
// first.
func (s *notifications) ReplaceNotification(ctx context.Context,
	was, is Notification) (bool, error) {
	return s.notification(ctx,
		`UPDATE notification SET at = ?, reference = ? WHERE key = ? AND at = ? AND reference = ?`,
		is.At.UnixMilli(), is.Reference, was.Key, was.At.UnixMilli(), was.Reference)
}

// RemoveNotification removes a notification. It returns false if another hub has changed it first.
func (s *notifications) RemoveNotification(ctx context.Context, was Notification) (bool, error) {
	return s.notification(ctx, `DELETE FROM notification WHERE key = ? AND at = ? AND reference = ?`,
		was.Key, was.At.UnixMilli(), was.Reference)
}

func (s *notifications) notification(ctx context.Context, q string, args ...any) (bool, error) {
	n, err := s.exec(ctx, s.db, q, args...)
	return n > 0, s.problem(err)
}

// Lease reports whether a hub may do work that only one of all hubs may do, for a while from now.
// The holder keeps the lease if it calls Lease again within that while.
func (s *notifications) Lease(ctx context.Context, name, holder string, now time.Time,
	life time.Duration) (bool, error) {
	return s.notification(ctx, `INSERT INTO notification (key, at, reference) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET at = excluded.at, reference = excluded.reference
WHERE notification.reference = excluded.reference OR notification.at < ?`, "lease/"+name, now.UnixMilli(), holder, now.Add(-life).UnixMilli())
}
