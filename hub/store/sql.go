package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib" // and the driver pgx
)

// inOrder returns an SQL expression that sorts a text by bytes, as SQLite and Go do.
func (s *database) inOrder(text string) string {
	if s.postgres {
		return text + ` COLLATE "C"`
	}
	return text
}

// query returns a query with the parameters in the database's form. The texts in a query must not
// have question marks.
func (s *database) query(q string) string {
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

// readLimit is how long an answer may take if a database hangs.
const readLimit = 20 * time.Second

// rows calls scan for each row of a query.
func (s *database) rows(ctx context.Context, on querier, scan func(*sql.Rows) error, q string,
	args ...any) error {
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

// column returns the values of a query with one column.
func column[T any](ctx context.Context, s *database, on querier, q string,
	args ...any) (all []T, err error) {
	err = s.rows(ctx, on, func(r *sql.Rows) error {
		var value T
		err := r.Scan(&value)
		all = append(all, value)
		return err
	}, q, args...)
	return all, err
}

// exec runs a statement, and returns how many rows it has changed.
func (s *database) exec(ctx context.Context, on querier, q string, args ...any) (int64, error) {
	result, err := on.ExecContext(ctx, s.query(q), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// transaction calls f with a transaction, and commits it if f returns no error.
func (s *database) transaction(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// milliseconds is a column with a time in milliseconds, 0 for the zero Time, to scan.
type milliseconds struct{ *time.Time }

// Scan implements sql.Scanner.
func (m milliseconds) Scan(value any) error {
	ms, ok := value.(int64)
	if !ok {
		return fmt.Errorf("%v is no time", value)
	}
	*m.Time = instant(ms)
	return nil
}

// storable reports whether a database can store a text. PostgreSQL accepts no others.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

// storableOf returns the texts that the database can store.
func storableOf(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !storable(text) })
}

// querier is a database, or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// atOnce limits the rows of a statement.
const atOnce = 1000

// list returns rows of so many values as SQL. All values of a column must have the same type. For
// PostgreSQL, which keeps statements, it is the same SQL for any number of rows.
func (s *database) list(width int, values []any) (string, []any) {
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

// anyOf returns an SQL condition that a column equals one of some values, which have the same type.
func (s *database) anyOf(values []any) (string, []any) {
	if !s.postgres {
		list, args := s.list(1, values)
		return "IN (" + list + ")", args
	}
	// It looks up each of them, while IN may read a whole table without statistics.
	column, of := array(1, 0, values)
	return "= ANY(" + of + ")", []any{column}
}

// values returns the elements of a list as parameters.
func values[T any](of []T) []any {
	out := make([]any, len(of))
	for i := range of {
		out[i] = of[i]
	}
	return out
}

// isOneOf returns the SQL condition that a column has one of some values.
func isOneOf[T any](s *database, column string, of []T) (string, []any) {
	values := values(of)
	switch len(values) {
	case 0:
		return "1 = 0", nil
	case 1:
		return column + " = ?", values
	}
	is, args := s.anyOf(values)
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

// insert inserts rows of some columns, many at once. tail is the SQL after the values.
func (s *database) insert(ctx context.Context, on querier, table, columns, tail string,
	values []any) error {
	return s.each(ctx, on, "INSERT INTO "+table+" ("+columns+") ", " "+tail,
		strings.Count(columns, ",")+1, values)
}

// add inserts rows that do not exist yet. For many rows PostgreSQL uses COPY, which takes half the
// time.
func (t *Tx) add(ctx context.Context, table, columns string, values []any) error {
	names := strings.Split(columns, ", ")
	count := len(values) / len(names)
	if !t.store.postgres || count < atOnce {
		return t.store.insert(ctx, t.tx, table, columns, "", values)
	}
	rows := pgx.CopyFromSlice(count,
		func(i int) ([]any, error) { return values[i*len(names) : (i+1)*len(names)], nil })
	return t.conn.Raw(func(conn any) error {
		_, err := conn.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{table}, names, rows)
		return err
	})
}

// each runs a statement with a list of rows in it, a thousand at once.
func (s *database) each(ctx context.Context, on querier, before, after string, width int,
	values []any) error {
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

// terms caches the ids of texts.
type terms struct {
	mu      sync.Mutex
	known   map[string]int64
	cleared int64 // how often texts had been removed when the ids were read
}

// The limits of the texts in memory, because there may be any number of messages.
const (
	maxKnown    = 200_000
	longestKept = 128
)

func newTerms() terms { return terms{known: map[string]int64{}} }

func (t *terms) get(text string) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok := t.known[text]
	return id, ok
}

func (t *terms) learn(texts map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known)+len(texts) > maxKnown {
		t.known = map[string]int64{}
	}
	for text, id := range texts {
		if len(text) <= longestKept {
			t.known[text] = id
		}
	}
}

// clear forgets all ids.
func (t *terms) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = map[string]int64{}
}

// valid forgets all ids if texts were removed since.
func (t *terms) valid(cleared int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cleared != cleared {
		t.known, t.cleared = map[string]int64{}, cleared
	}
}

// ids sets the ids of texts, and adds the texts that the database does not have.
func (t *Tx) ids(ctx context.Context, texts map[string]int64) error {
	var lacking []string
	for text := range texts {
		id, known := t.new[text]
		if !known {
			id, known = t.store.terms.get(text)
		}
		if texts[text] = id; !known {
			lacking = append(lacking, text)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	slices.Sort(lacking) // so that rows come in the order of their index
	if err := t.store.look(ctx, t.tx, lacking, t.new); err != nil {
		return err
	}
	var last int64
	if err := t.tx.QueryRowContext(ctx,
		`SELECT COALESCE(MAX(id), 0) FROM term`).Scan(&last); err != nil {
		return err
	}
	var absent []any
	for _, text := range lacking {
		if t.new[text] == 0 {
			last++
			t.new[text] = last
			absent = append(absent, last, text)
		}
		texts[text] = t.new[text]
	}
	return t.add(ctx, "term", "id, text", absent)
}

// look finds the ids of texts that the database has.
func (s *database) look(ctx context.Context, on querier, texts []string,
	into map[string]int64) error {
	for some := range slices.Chunk(texts, atOnce) {
		among, args := s.anyOf(values(some))
		err := s.rows(ctx, on, func(r *sql.Rows) error {
			var id int64
			var text string
			err := r.Scan(&id, &text)
			into[text] = id
			return err
		}, "SELECT id, text FROM term WHERE text "+among, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// statistics are PostgreSQL's statistics about the rows of its tables. It updates them by itself
// only a minute or two after they are needed. Until then, it would read a whole table although an
// index has the few rows of an answer.
type statistics struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	changes int // that were written
	due     int // the number of changes at which to analyze again
}

// firstStatistics is the number of changes after which PostgreSQL first updates its statistics. It
// updates them again after twice as many.
const firstStatistics = 10_000

func newStatistics() *statistics {
	ctx, cancel := context.WithCancel(context.Background())
	return &statistics{ctx: ctx, cancel: cancel, due: firstStatistics}
}

// end stops the updates in progress, and waits for them.
func (st *statistics) end() {
	st.mu.Lock()
	st.cancel()
	st.mu.Unlock()
	st.running.Wait()
}

// analyze has PostgreSQL update its statistics in the background, after many changes were written.
func (s *database) analyze(changes int) {
	st := s.statistics
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.changes += changes; !s.postgres || st.changes < st.due || st.ctx.Err() != nil {
		return
	}
	st.due = 2 * st.changes
	st.running.Go(func() {
		// If that fails, PostgreSQL does it later.
		_, _ = s.db.ExecContext(st.ctx, `ANALYZE term, wanted_target, assignment, transition`)
	})
}
