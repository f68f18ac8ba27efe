package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Backup writes a copy of a SQLite database into a file that is not there. The file is there once
// all of it is written, and nobody else can read it at any time.
func (s *Store) Backup(ctx context.Context, file string) (err error) {
	if s.postgres {
		return errors.New("PostgreSQL has its own tools for backups: pg_dump")
	}
	switch _, err := os.Lstat(file); {
	case err == nil:
		return fmt.Errorf("%s is there already", file)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := inFolder(file); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	part := filepath.Join(dir, "part")
	if err := private(part); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, `VACUUM INTO ?`, part); err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, s.problem(err))
	}
	if err := durable(part); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// durable has a file on its disk, which the database leaves to who copies it.
func durable(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
