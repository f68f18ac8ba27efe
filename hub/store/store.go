// Package store keeps the data of a hub in a database: a SQLite file or PostgreSQL. Both use the
// same SQL, except for types and the placeholders in a query.
//
// Several hubs may use one database. A writer first locks the row of the last change, and reads the
// changes of other hubs. Then it decides on its own changes. All changes are therefore in one
// order, the order of their numbers.
//
// Answers of the API are read as the types of package api, which does not know this one. For
// example, cluster oslo of dev begins to run the wanted version of hello-main. Tx.Changes then
// replaces one row of table assignment. It adds a row to table transition with number 42, the ids
// of the texts dev, oslo and hello-main in table term, and the states 2 and 0. History returns that
// row as an api.Transition with Number 42, Was "behind" and State "ok".
package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	// the driver pgx
	_ "modernc.org/sqlite" // the driver sqlite
)

// Store is an open database. Several goroutines may call its methods. Each part has the methods of
// one subject. Store itself has the changes in their order: it writes and loads them, and removes
// old rows.
type Store struct {
	*database
	credentials
	audit
	notifications
	history
	releases
	counts
}

// database has the connections that all parts of a Store share. It owns the dialect of SQL, the
// migrations of the tables, and the cache of the ids of texts.
type database struct {
	db       *sql.DB // writes
	read     *sql.DB // reads; the same one for PostgreSQL
	postgres bool
	terms    terms

	file    string      // of SQLite
	opened  os.FileInfo // the file at that time
	failing atomic.Pointer[func(error)]

	statistics *statistics
}

// newDatabase returns a database that is not open yet.
func newDatabase(name string) *database {
	return &database{postgres: IsPostgres(name), terms: newTerms(), statistics: newStatistics()}
}

// OnProblem sets the function that any goroutine calls with each error of the database.
func (s *database) OnProblem(f func(error)) { s.failing.Store(&f) }

// IsPostgres reports whether a name is the address of a PostgreSQL, and not a file.
func IsPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Open opens a database, and brings its tables up to date. name is a file's path or the address of
// a PostgreSQL.
func Open(ctx context.Context, name string) (*Store, error) {
	s := newDatabase(name)
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
	return &Store{database: s, credentials: credentials{s}, audit: audit{s},
		notifications: notifications{s}, history: history{s}, releases: releases{s},
		counts: counts{database: s}}, nil
}

// maxConnections limits how many connections of a PostgreSQL one hub uses.
const maxConnections = 16

func (s *database) open(name string) (err error) {
	if s.postgres {
		if s.db, err = sql.Open("pgx", name); err != nil {
			return err
		}
		s.db.SetMaxOpenConns(maxConnections)
		s.db.SetMaxIdleConns(maxConnections)
		s.db.SetConnMaxIdleTime(5 * time.Minute)
		s.read = s.db
		return nil
	}
	if err := private(name); err != nil {
		return err
	}
	// There is only one writer at a time. Others wait here. In the database, they would check again
	// and again.
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

// private creates a file if it does not exist. No other user can read it.
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

// inFolder returns an error if the folder of a file does not exist, because the name may be
// mistyped. It does not create the folder.
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

// problem adds the name of the database to an error, without the password in its address. It
// returns nil for nil.
func (s *database) problem(err error) error {
	if err == nil {
		return nil
	}
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

// there returns an error if the database file is not the opened one any more, because writes would
// be lost.
func (s *database) there() error {
	if s.postgres {
		return nil
	}
	if is, err := os.Stat(s.file); err != nil || !os.SameFile(is, s.opened) {
		return s.problem(
			fmt.Errorf("%s was removed or replaced while it was open: start the hub again", s.file))
	}
	return nil
}

// Close closes the database.
func (s *database) Close() error {
	s.statistics.end()
	if s.read == s.db {
		return s.db.Close()
	}
	return errors.Join(s.read.Close(), s.db.Close())
}

// Ping returns an error if the database does not answer.
func (s *database) Ping(ctx context.Context) error {
	if err := s.there(); err != nil {
		return err
	}
	return s.read.PingContext(ctx)
}

// Number returns the number of the last change.
func (s *database) Number(ctx context.Context) (number int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	if err := s.read.QueryRowContext(ctx, `SELECT number FROM change`).Scan(&number); err != nil {
		return 0, s.problem(err)
	}
	return number, nil
}

//go:embed migrations
var migrations embed.FS

// migrate runs the migrations that the database lacks, each in a transaction.
func (s *database) migrate(ctx context.Context) error {
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
	if err := s.db.QueryRowContext(ctx,
		`SELECT COALESCE(MAX(number), 0) FROM migration`).Scan(&newest); err != nil {
		return err
	}
	if last := all[len(all)-1].number; newest > last {
		return fmt.Errorf("it was written by a newer kalypso-hub, with migration %d of %d: use that one",
			newest, last)
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

// begin creates the table of migrations. If two hubs created it at once, PostgreSQL would let one
// of them fail, so they wait for each other.
func (s *database) begin(ctx context.Context) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		if s.postgres {
			const kalypso = 0x6b616c7970736f
			if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`,
				int64(kalypso)); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS migration (number INT PRIMARY KEY)`)
		return err
	})
}

func (s *database) migration(ctx context.Context, m migration) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		if s.postgres { // another hub may be running it
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
		_, err = s.exec(ctx, tx, `INSERT INTO migration (number) VALUES (?)`, m.number)
		return err
	})
}

// tables returns the text of a migration for the database. In SQLite, only INTEGER makes an id that
// needs no index of its own, and tables with longer keys can be stored in their order.
func (s *database) tables(text string) string {
	if s.postgres {
		return text
	}
	return strings.NewReplacer(" BIGINT PRIMARY KEY", " INTEGER PRIMARY KEY", " INT PRIMARY KEY",
		" INTEGER PRIMARY KEY", "/* WITHOUT ROWID */", "WITHOUT ROWID").Replace(text)
}

// Backup writes a copy of a SQLite database into a file that does not exist. The file appears once
// it is complete, and no other user can read it at any time.
func (s *database) Backup(ctx context.Context, file string) (err error) {
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

// durable writes a file to its disk, because VACUUM INTO does not.
func durable(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// probed is how many bytes Probe writes: 16 pages of SQLite, and some of PostgreSQL. If it wrote
// less, a report might still not fit.
const probed = 64 << 10

// Probe writes some data that needs space, and removes it. It returns an error if the data cannot
// be written.
func (s *database) Probe(ctx context.Context) error {
	if err := s.there(); err != nil {
		return err
	}
	content := make([]byte, probed/2)
	_, _ = rand.Read(content) // a database would compress anything else
	_, err := s.exec(ctx, s.db, `INSERT INTO secret (name, value) VALUES ('probe', ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value`, hex.EncodeToString(content))
	if err == nil {
		_, err = s.exec(ctx, s.db, `DELETE FROM secret WHERE name = 'probe'`)
	}
	return s.problem(err)
}
