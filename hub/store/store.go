// Package store keeps what a hub knows in a database: a SQLite file or PostgreSQL. It has one
// SQL for both, which only their types and how an id is placed in a query tell apart.
//
// Several hubs may use one database. Who writes locks the row of the last change, and learns
// what others have changed since, before it decides what to write: so changes are in one
// order, which is that of their numbers.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "modernc.org/sqlite"             // the driver sqlite
)

// Store is an open database. Its methods may be called by several goroutines.
type Store struct {
	db       *sql.DB
	postgres bool
	terms    terms
}

//go:embed migrations
var migrations embed.FS

// IsPostgres reports whether a name is the address of a PostgreSQL, and not a file.
func IsPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Open opens a database, a file's path or the address of a PostgreSQL, and brings its tables
// up to date.
func Open(ctx context.Context, name string) (*Store, error) {
	s := &Store{postgres: IsPostgres(name), terms: newTerms()}
	var err error
	if s.postgres {
		s.db, err = sql.Open("pgx", name)
	} else if err = private(name); err == nil {
		s.db, err = sql.Open("sqlite", sqliteAddress(name))
	}
	if err != nil {
		return nil, s.problem(err)
	}
	if !s.postgres {
		s.db.SetMaxOpenConns(8)
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(s.problem(err), s.db.Close())
	}
	return s, nil
}

// private makes a file that is not there, so that nobody else reads what is in it.
func private(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func sqliteAddress(file string) string {
	q := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "cache_size(-65536)", "temp_store(MEMORY)"}, "_txlock": {"immediate"}}
	return "file:" + (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath() + "?" + q.Encode()
}

// problem says what an error is about, without the password that an address may have.
func (s *Store) problem(err error) error {
	if s.postgres {
		return fmt.Errorf("the database on PostgreSQL: %w", err)
	}
	return fmt.Errorf("the database: %w", err)
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Ping returns an error where the database does not answer.
func (s *Store) Ping(ctx context.Context) error { return s.db.PingContext(ctx) }

// migrate runs the migrations that the database has not had, each in a transaction.
func (s *Store) migrate(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS migration (number INT PRIMARY KEY)`); err != nil {
		return err
	}
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	for i, file := range files { // sorted by name
		if err := s.migration(ctx, i+1, file); err != nil {
			return fmt.Errorf("migration %s: %w", path.Base(file), err)
		}
	}
	var newest int
	if err := s.db.QueryRowContext(ctx, `SELECT COALESCE(MAX(number), 0) FROM migration`).Scan(&newest); err != nil {
		return err
	}
	if newest > len(files) {
		return fmt.Errorf("it was written by a newer kalypso-hub, with migration %d of %d: use that one", newest, len(files))
	}
	return nil
}

func (s *Store) migration(ctx context.Context, number int, file string) error {
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
	if err := tx.QueryRowContext(ctx, s.query(`SELECT COUNT(*) FROM migration WHERE number = ?`), number).Scan(&done); err != nil || done > 0 {
		return err
	}
	text, err := migrations.ReadFile(file)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, s.query(`INSERT INTO migration (number) VALUES (?)`), number); err != nil {
		return err
	}
	return tx.Commit()
}

// query returns a query as the database writes its parameters. No text in a query has a
// question mark.
func (s *Store) query(q string) string {
	if !s.postgres {
		return q
	}
	var b strings.Builder
	n := 0
	for _, r := range q {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// rows calls scan for each row of a query.
func (s *Store) rows(ctx context.Context, on querier, scan func(*sql.Rows) error, q string, args ...any) error {
	rows, err := on.QueryContext(ctx, s.query(q), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// querier is a database, or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// most is how many parameters a statement has: SQLite takes 32,766, PostgreSQL 65,535.
const most = 32_000

// insert inserts rows of some columns, many at once. tail is what follows the values.
func (s *Store) insert(ctx context.Context, on querier, table, columns, tail string, values []any) error {
	width := strings.Count(columns, ",") + 1
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
	for len(values) > 0 {
		n := min(len(values)/width, most/width)
		q := "INSERT INTO " + table + " (" + columns + ") VALUES " + strings.TrimSuffix(strings.Repeat(row+",", n), ",") + " " + tail
		if _, err := on.ExecContext(ctx, s.query(q), values[:n*width]...); err != nil {
			return err
		}
		values = values[n*width:]
	}
	return nil
}
