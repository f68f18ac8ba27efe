// Package database writes tables into a SQLite file. It never overwrites a file that kalypso did
// not write. Readers see the old file or the whole new one, and equal rows give equal bytes.
package database

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/kalypso-io/kalypso/compiler/query/tables"
	"github.com/kalypso-io/kalypso/internal/regular"
)

// Fields of the file's header, see https://www.sqlite.org/fileformat.html.
const (
	applicationID = 0x6b6c7970 // "klyp": kalypso wrote the file
	userVersion   = 1          // of the tables and views; each change that breaks a query increases it
)

// Write writes tables with their rows of a source, and the views of these tables. file must not
// exist, or must be a file of Write, which it replaces.
func Write(ctx context.Context, file string, s *tables.Source, of []*tables.Table) error {
	if err := Check(file); err != nil {
		return err
	}
	var filling error // an error in the rows, not in the file
	err := regular.ReplaceBy(file, 0o644, func(f *os.File) error {
		filling = fill(ctx, f.Name(), s, of)
		return filling
	})
	if err != nil && filling == nil {
		return fmt.Errorf("%s cannot be written: %w", file, err)
	}
	return err
}

// Check returns an error if Write would not replace a file.
func Check(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder, and not a database", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var header [72]byte
	const idAt = 68
	switch _, err := io.ReadFull(f, header[:]); {
	case err == io.EOF: // an empty file, such as one of mktemp
		return nil
	case err == nil && bytes.HasPrefix(header[:], []byte("SQLite format 3\x00")) &&
		binary.BigEndian.Uint32(header[idAt:]) == applicationID:
		return nil
	case err != nil && err != io.ErrUnexpectedEOF:
		return err
	}
	return fmt.Errorf("%s is no database that kalypso has written, and stays as it is: remove it, "+
		"or write to another file", file)
}

// fill makes the database in an empty file.
func fill(ctx context.Context, file string, s *tables.Source, of []*tables.Table) (err error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	slashed := filepath.ToSlash(abs)
	if slashed[0] != '/' { // a drive of Windows
		slashed = "/" + slashed
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: slashed}).String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // pragmas belong to a connection
	// No one else has the file, and it is removed unless all of it is written.
	for _, pragma := range []string{"journal_mode = OFF", "synchronous = OFF",
		"locking_mode = EXCLUSIVE",
		fmt.Sprintf("application_id = %d", applicationID),
		fmt.Sprintf("user_version = %d", userVersion)} {
		if _, err := db.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return err
		}
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	for _, t := range of {
		if err := fillTable(ctx, tx, s, t, of); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	if err := addViews(ctx, tx, of); err != nil {
		return err
	}
	return tx.Commit()
}

// fillTable makes a table, and adds its rows.
func fillTable(ctx context.Context, tx *sql.Tx, s *tables.Source, t *tables.Table,
	among []*tables.Table) (err error) {
	if _, err := tx.ExecContext(ctx, tableOf(t, among)); err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, insertInto(t))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	err = t.Rows(ctx, s, func(cells []any) error {
		for i, c := range t.Columns {
			if c.Type != tables.JSON || cells[i] == nil {
				continue
			}
			text, err := jsonOf(cells[i])
			if err != nil {
				return fmt.Errorf("column %s: %w", c.Name, err)
			}
			cells[i] = text
		}
		_, err := insert.ExecContext(ctx, cells...)
		return err
	})
	if err != nil {
		return err
	}
	if index := indexes[t.Name]; index != "" {
		_, err = tx.ExecContext(ctx, index)
	}
	return err
}

// jsonOf returns a value as JSON, without escapes for HTML.
func jsonOf(v any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), err
}

// addViews makes the views whose tables all exist.
func addViews(ctx context.Context, tx *sql.Tx, of []*tables.Table) error {
	for _, v := range Views() {
		there := func(name string) bool {
			return slices.ContainsFunc(of, func(t *tables.Table) bool { return t.Name == name })
		}
		if slices.ContainsFunc(v.of, func(name string) bool { return !there(name) }) {
			continue
		}
		if _, err := tx.ExecContext(ctx, v.statement()); err != nil {
			return fmt.Errorf("view %s: %w", v.Name, err)
		}
	}
	return nil
}

// types are the types of columns in SQLite.
var types = map[tables.Type]string{tables.Text: "TEXT", tables.Integer: "INTEGER",
	tables.Boolean: "INTEGER", tables.JSON: "TEXT"}

// tableOf returns the statement that makes a table. It has only references to tables in among.
// The docs are comments in it, which SQLite keeps.
func tableOf(t *tables.Table, among []*tables.Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s ( -- %s\n", t.Name, t.Doc)
	var key []string
	for i, c := range t.Columns {
		null := " NOT NULL"
		if c.Optional {
			null = ""
		}
		fmt.Fprintf(&b, "  %s %s%s, -- %s\n", c.Name, types[c.Type], null, c.Doc)
		if i < t.Key {
			key = append(key, c.Name)
		}
	}
	fmt.Fprintf(&b, "  PRIMARY KEY (%s)", strings.Join(key, ", "))
	for _, r := range t.References {
		if slices.ContainsFunc(among, func(t *tables.Table) bool { return t.Name == r.Table }) {
			fmt.Fprintf(&b, ",\n  FOREIGN KEY (%s) REFERENCES %s", strings.Join(r.Columns, ", "), r.Table)
		}
	}
	b.WriteString("\n) STRICT, WITHOUT ROWID")
	return b.String()
}

// insertInto returns the statement that adds a row to a table.
func insertInto(t *tables.Table) string {
	return fmt.Sprintf("INSERT INTO %s VALUES (?%s)", t.Name, strings.Repeat(", ?", len(t.Columns)-1))
}

// View is a view of the tables.
type View struct {
	Name, Doc string
	Columns   []tables.Column
	of        []string // the tables that the view needs to exist
	query     string
}

// statement returns the statement that makes the view.
func (v *View) statement() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE VIEW %s ( -- %s\n", v.Name, v.Doc)
	for i, c := range v.Columns {
		comma := ","
		if i == len(v.Columns)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, "  %s%s -- %s\n", c.Name, comma, c.Doc)
	}
	fmt.Fprintf(&b, ") AS\n%s", v.query)
	return b.String()
}

func column(name string, t tables.Type, doc string) tables.Column {
	return tables.Column{Name: name, Type: t, Doc: doc}
}
