package store

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed migrations
var migrations embed.FS

// migrate runs the migrations that the database has not had, each in a transaction.
func (s *Store) migrate(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	all, err := numbered(migrations)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := s.migration(ctx, m); err != nil {
			return fmt.Errorf("migration %s: %w", path.Base(m.file), err)
		}
	}
	var newest int
	if err := s.db.QueryRowContext(ctx, `SELECT COALESCE(MAX(number), 0) FROM migration`).Scan(&newest); err != nil {
		return err
	}
	if last := all[len(all)-1].number; newest > last {
		return fmt.Errorf("it was written by a newer kalypso-hub, with migration %d of %d: use that one", newest, last)
	}
	return nil
}

// migration is a file of SQL, whose name begins with its number.
type migration struct {
	number int
	file   string
}

// numbered returns the migrations of a file system in the order of their numbers.
func numbered(in fs.FS) ([]migration, error) {
	files, err := fs.Glob(in, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, file := range files {
		number, _, _ := strings.Cut(path.Base(file), "-")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number: %w", path.Base(file), err)
		}
		all = append(all, migration{n, file})
	}
	slices.SortFunc(all, func(a, b migration) int { return cmp.Compare(a.number, b.number) })
	return all, nil
}

// begin makes the table of migrations. PostgreSQL would let two hubs make it at once, and one of
// them fail: they wait for each other.
func (s *Store) begin(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if s.postgres {
		const kalypso = 0x6b616c7970736f
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(kalypso)); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS migration (number INT PRIMARY KEY)`); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *Store) migration(ctx context.Context, m migration) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if s.postgres { // another hub may be at it
		if _, err := tx.ExecContext(ctx, `LOCK TABLE migration IN EXCLUSIVE MODE`); err != nil {
			return err
		}
	}
	var done int
	if err := tx.QueryRowContext(ctx, s.query(`SELECT COUNT(*) FROM migration WHERE number = ?`),
		m.number).Scan(&done); err != nil || done > 0 {
		return err
	}
	text, err := migrations.ReadFile(m.file)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, s.tables(string(text))); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, s.query(`INSERT INTO migration (number) VALUES (?)`), m.number); err != nil {
		return err
	}
	return tx.Commit()
}

// tables returns the text of a migration for the database: in SQLite, only INTEGER is an id that
// takes no index of its own, and tables with longer keys can be kept in their order.
func (s *Store) tables(text string) string {
	if s.postgres {
		return text
	}
	return strings.NewReplacer(" BIGINT PRIMARY KEY", " INTEGER PRIMARY KEY", " INT PRIMARY KEY",
		" INTEGER PRIMARY KEY", "/* WITHOUT ROWID */", "WITHOUT ROWID").Replace(text)
}
