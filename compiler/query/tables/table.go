// Package tables describes a compiled platform as tables: what they are called, what their
// columns mean, and their rows. A Source goes in, and rows come out one by one. What is
// written elsewhere about the tables, such as a database's schema and a page of the docs, is
// made of these definitions.
package tables

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Source is what the rows are read from.
type Source struct {
	Build *compiler.Build
	// Dir is the platform's folder, and Revision what of its repository was compiled; "" for
	// the folder.
	Dir, Revision string
	// Changes calls a function with each change that the history has, newest first; nil for no
	// history.
	Changes func(ctx context.Context, f func(Change) error) error
}

// Type says what a column holds.
type Type string

// The types of columns, and what a row has in them.
const (
	Text    Type = "text"    // a string
	Integer Type = "integer" // an int
	Boolean Type = "boolean" // a bool
	JSON    Type = "json"    // anything that encodes itself as JSON
)

// Column is a column of a table or view.
type Column struct {
	Name string
	Type Type
	Doc  string
	// Optional says that a row may have nil.
	Optional bool
}

// Reference says that columns of a table are the key of a row of another one.
type Reference struct {
	Columns []string
	Table   string
}

// Table is a table with the rows that it has of any source. No two rows have the same key.
type Table struct {
	Name, Doc  string
	Columns    []Column
	Key        int // how many columns, from the first, are the key
	References []Reference

	rows rows
}

// rows calls yield with the cells of each row, until that returns an error.
type rows func(ctx context.Context, s *Source, yield func(cells ...any) error) error

// Rows calls f with the cells of each row, one for each column, in an order that is always
// the same. It returns the first error of f, of the context, or of what is read. f must not
// keep the slice.
func (t *Table) Rows(ctx context.Context, s *Source, f func(cells []any) error) error {
	return t.rows(ctx, s, func(cells ...any) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return f(cells)
	})
}

// All returns the tables, each after those that it refers to.
func All() []*Table {
	return slices.Concat(placeTables(), workloadTables(), configTables(), assignmentTables(), otherTables())
}

// Names returns the names of the tables.
func Names() []string {
	var names []string
	for _, t := range All() {
		names = append(names, t.Name)
	}
	return names
}

// Find returns a table. The error says that there is none of the name, and which was probably
// meant.
func Find(name string) (*Table, error) {
	all := All()
	if i := slices.IndexFunc(all, func(t *Table) bool { return t.Name == name }); i >= 0 {
		return all[i], nil
	}
	names := Names()
	hint := "there are: " + strings.Join(names, ", ")
	if near := spelling.Meant(name, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return nil, fmt.Errorf("there is no table %s; %s", name, hint)
}

// each returns the rows of a list of items.
func each[T any](list func(*compiler.Build) []T, cells func(T) []any) rows {
	return func(_ context.Context, s *Source, yield func(...any) error) error {
		for _, item := range list(s.Build) {
			if err := yield(cells(item)...); err != nil {
				return err
			}
		}
		return nil
	}
}

func text(name, doc string) Column    { return Column{Name: name, Type: Text, Doc: doc} }
func integer(name, doc string) Column { return Column{Name: name, Type: Integer, Doc: doc} }
func boolean(name, doc string) Column { return Column{Name: name, Type: Boolean, Doc: doc} }
func jsonOf(name, doc string) Column  { return Column{Name: name, Type: JSON, Doc: doc} }

func optional(c Column) Column {
	c.Optional = true
	return c
}

// environment is the first column of most tables.
var environment = text("environment", "the environment")

// refer returns a reference by columns to the table with that key.
func refer(table string, columns ...string) Reference { return Reference{columns, table} }
