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
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	// the driver pgx
	_ "modernc.org/sqlite" // the driver sqlite
)

// Store is an open database. Its methods may be called by several goroutines.
type Store struct {
	db       *sql.DB // writes
	read     *sql.DB // reads; the same one for PostgreSQL
	postgres bool
	terms    terms
	tallies  tallies

	file    string      // of SQLite
	opened  os.FileInfo // what was there
	failing atomic.Pointer[func(error)]

	statistics *statistics
}

// OnProblem sets what is called with each error of the database, by any goroutine.
func (s *Store) OnProblem(f func(error)) { s.failing.Store(&f) }

// IsPostgres reports whether a name is the address of a PostgreSQL, and not a file.
func IsPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Open opens a database, a file's path or the address of a PostgreSQL, and brings its tables
// up to date.
func Open(ctx context.Context, name string) (*Store, error) {
	s := &Store{postgres: IsPostgres(name), terms: newTerms(), statistics: newStatistics()}
	if err := s.open(name); err != nil {
		return nil, s.problem(err)
	}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(s.problem(err), s.Close())
	}
	if !s.postgres {
		var err error
		if s.file, err = filepath.Abs(name); err == nil {
			s.opened, err = os.Stat(s.file)
		}
		if err != nil {
			return nil, errors.Join(s.problem(err), s.Close())
		}
	}
	return s, nil
}

// mostConnections bounds what one hub takes of the connections that a PostgreSQL has.
const mostConnections = 16

func (s *Store) open(name string) (err error) {
	if s.postgres {
		if s.db, err = sql.Open("pgx", name); err != nil {
			return err
		}
		s.db.SetMaxOpenConns(mostConnections)
		s.db.SetMaxIdleConns(mostConnections)
		s.db.SetConnMaxIdleTime(5 * time.Minute)
		s.read = s.db
		return nil
	}
	if err := private(name); err != nil {
		return err
	}
	// There is one writer at a time. Others wait here, and not in the database, which would
	// have them look again and again.
	if s.db, err = sql.Open("sqlite", sqliteAddress(name, "immediate", 32<<10)); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(1)
	if s.read, err = sql.Open("sqlite", sqliteAddress(name, "deferred", 8<<10)); err != nil {
		return errors.Join(err, s.db.Close())
	}
	s.read.SetMaxOpenConns(4)
	s.read.SetMaxIdleConns(4)
	return nil
}

// private makes a file that is not there, so that nobody else reads what is in it.
func private(file string) error {
	if err := inFolder(file); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// inFolder returns an error where the folder of a file is not there: one whose name is mistyped is
// not made.
func inFolder(file string) error {
	dir := filepath.Dir(file)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s: make it, or mend the name", dir)
	}
	return nil
}

// sqliteAddress returns the address of a file for connections with a cache of so many KiB each.
func sqliteAddress(file, lock string, cache int) string {
	q := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)",
		fmt.Sprintf("cache_size(-%d)", cache), "temp_store(MEMORY)"}, "_txlock": {lock}}
	return "file:" + (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath() + "?" + q.Encode()
}

// problem says what an error is about, without the password that an address may have.
func (s *Store) problem(err error) error {
	what := "the database"
	if s.postgres {
		what += " on PostgreSQL"
	}
	err = fmt.Errorf("%s: %w", what, err)
	if f := s.failing.Load(); f != nil && !errors.Is(err, context.Canceled) {
		(*f)(err)
	}
	return err
}

// there returns an error where the file of the database is not the one that was opened: what is
// written is in none then.
func (s *Store) there() error {
	if s.postgres {
		return nil
	}
	if is, err := os.Stat(s.file); err != nil || !os.SameFile(is, s.opened) {
		return s.problem(fmt.Errorf("%s was removed or replaced while it was open: start the hub again", s.file))
	}
	return nil
}

// Close closes the database.
func (s *Store) Close() error {
	s.statistics.end()
	if s.read == s.db {
		return s.db.Close()
	}
	return errors.Join(s.read.Close(), s.db.Close())
}

// Ping returns an error where the database does not answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.there(); err != nil {
		return err
	}
	return s.read.PingContext(ctx)
}

// Number returns the number of the last change.
func (s *Store) Number(ctx context.Context) (number int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	if err := s.read.QueryRowContext(ctx, `SELECT number FROM change`).Scan(&number); err != nil {
		return 0, s.problem(err)
	}
	return number, nil
}
