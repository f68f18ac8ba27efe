package store

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib" // and the driver pgx
)

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
