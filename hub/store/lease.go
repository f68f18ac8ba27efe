package store

import (
	"context"
	"time"
)

// Lease reports whether a hub may do, until now and a while, what one of all hubs is to do. The
// one that has it keeps it as long as it asks again within that while.
func (s *Store) Lease(ctx context.Context, name, holder string, now time.Time, life time.Duration) (bool, error) {
	return s.notification(ctx, `INSERT INTO notification (key, at, reference) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET at = excluded.at, reference = excluded.reference
WHERE notification.reference = excluded.reference OR notification.at < ?`, "lease/"+name, now.UnixMilli(), holder, now.Add(-life).UnixMilli())
}
