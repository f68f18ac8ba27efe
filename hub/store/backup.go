package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Backup writes a copy of a SQLite database into a file that is not there.
func (s *Store) Backup(ctx context.Context, file string) error {
	if s.postgres {
		return errors.New("PostgreSQL has its own tools for backups: pg_dump")
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already", file)
	}
	if err := inFolder(file); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, `VACUUM INTO ?`, file); err != nil {
		return s.problem(err)
	}
	return os.Chmod(file, 0o600)
}
