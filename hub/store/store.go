// Package store keeps what a hub knows in a database: a SQLite file or PostgreSQL. It has one
// SQL for both, which only their types and how an id is placed in a query tell apart.
//
// Several hubs may use one database. Who writes locks the row of the last change, and learns
// what others have changed since, before it decides what to write: so changes are in one
// order, which is that of their numbers.
package store

import (
	"cmp"
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
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "modernc.org/sqlite"           // the driver sqlite
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

//go:embed migrations
var migrations embed.FS

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
	q := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", fmt.Sprintf("cache_size(-%d)", cache), "temp_store(MEMORY)"}, "_txlock": {lock}}
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
	if err := tx.QueryRowContext(ctx, s.query(`SELECT COUNT(*) FROM migration WHERE number = ?`), m.number).Scan(&done); err != nil || done > 0 {
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
	return strings.NewReplacer(" BIGINT PRIMARY KEY", " INTEGER PRIMARY KEY", " INT PRIMARY KEY", " INTEGER PRIMARY KEY", "/* WITHOUT ROWID */", "WITHOUT ROWID").Replace(text)
}

// inOrder returns a text as it is sorted: by bytes, as SQLite and Go do it.
func (s *Store) inOrder(text string) string {
	if s.postgres {
		return text + ` COLLATE "C"`
	}
	return text
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

// readLimit is how long an answer may take. Nobody waits longer for a database that hangs.
const readLimit = 20 * time.Second

// rows calls scan for each row of a query.
func (s *Store) rows(ctx context.Context, on querier, scan func(*sql.Rows) error, q string, args ...any) error {
	if _, all := on.(*sql.DB); all { // a transaction has its own bound
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, readLimit)
		defer cancel()
	}
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

// storable reports whether a text can be in a database: PostgreSQL takes no others.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// storableOf returns the texts that the database can keep.
func storableOf(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !storable(text) })
}

// querier is a database, or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// atOnce is how many rows are in one statement.
const atOnce = 1000

// list returns rows of so many values, of which all of a column have one type, as SQL. For
// PostgreSQL, which keeps statements, it is the same SQL for any number of rows.
func (s *Store) list(width int, values []any) (string, []any) {
	if !s.postgres {
		row := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
		return "VALUES " + strings.TrimSuffix(strings.Repeat(row+",", len(values)/width), ","), values
	}
	columns, types := make([]any, width), make([]string, width)
	for c := range width {
		columns[c], types[c] = array(width, c, values)
	}
	return "SELECT * FROM unnest(" + strings.Join(types, ", ") + ")", columns
}

// among returns what compares a column with values of one type, as SQL.
func (s *Store) among(values []any) (string, []any) {
	if !s.postgres {
		list, args := s.list(1, values)
		return "IN (" + list + ")", args
	}
	// It looks each of them up, where IN may read a whole table of which there are no statistics.
	column, of := array(1, 0, values)
	return "= ANY(" + of + ")", []any{column}
}

// isOneOf is the condition that a column has one of some values, as SQL.
func isOneOf[T any](s *Store, column string, of []T) (string, []any) {
	values := make([]any, len(of))
	for i := range of {
		values[i] = of[i]
	}
	switch len(values) {
	case 0:
		return "1 = 0", nil
	case 1:
		return column + " = ?", values
	}
	is, args := s.among(values)
	return column + " " + is, args
}

// array returns a column of rows as an array of PostgreSQL.
func array(width, c int, values []any) (column any, as string) {
	switch values[c].(type) {
	case string:
		return columnOf[string](width, c, values), "CAST(? AS TEXT[])"
	case []byte:
		return columnOf[[]byte](width, c, values), "CAST(? AS BYTEA[])"
	case int64:
		return columnOf[int64](width, c, values), "CAST(? AS BIGINT[])"
	}
	return columnOf[int](width, c, values), "CAST(? AS BIGINT[])"
}

func columnOf[T any](width, c int, values []any) []T {
	out := make([]T, 0, len(values)/width)
	for ; c < len(values); c += width {
		out = append(out, values[c].(T))
	}
	return out
}

// insert inserts rows of some columns, many at once. tail is what follows the values.
func (s *Store) insert(ctx context.Context, on querier, table, columns, tail string, values []any) error {
	return s.each(ctx, on, "INSERT INTO "+table+" ("+columns+") ", " "+tail, strings.Count(columns, ",")+1, values)
}

// add inserts rows that are not there. PostgreSQL takes many at once by COPY, in half the time.
func (t *Tx) add(ctx context.Context, table, columns string, values []any) error {
	names := strings.Split(columns, ", ")
	count := len(values) / len(names)
	if !t.store.postgres || count < atOnce {
		return t.store.insert(ctx, t.tx, table, columns, "", values)
	}
	rows := pgx.CopyFromSlice(count, func(i int) ([]any, error) { return values[i*len(names) : (i+1)*len(names)], nil })
	return t.conn.Raw(func(conn any) error {
		_, err := conn.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{table}, names, rows)
		return err
	})
}

// each runs a statement with a list of rows in it, a thousand at once.
func (s *Store) each(ctx context.Context, on querier, before, after string, width int, values []any) error {
	for len(values) > 0 {
		n := min(len(values), atOnce*width)
		list, args := s.list(width, values[:n])
		if _, err := on.ExecContext(ctx, s.query(before+list+after), args...); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}
