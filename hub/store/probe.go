package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
)

// probed is how many bytes Probe writes: 16 pages of SQLite, and some of PostgreSQL. With less room, a
// report would be refused right after one byte could be written.
const probed = 64 << 10

// Probe writes something that takes room, and removes it. It returns an error where that cannot be
// written.
func (s *Store) Probe(ctx context.Context) error {
	if err := s.there(); err != nil {
		return err
	}
	content := make([]byte, probed/2)
	_, _ = rand.Read(content) // a database would compress anything else
	_, err := s.db.ExecContext(ctx, s.query(`INSERT INTO secret (name, value) VALUES ('probe', ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`), hex.EncodeToString(content))
	if err == nil {
		_, err = s.db.ExecContext(ctx, `DELETE FROM secret WHERE name = 'probe'`)
	}
	if err != nil {
		return s.problem(err)
	}
	return nil
}
