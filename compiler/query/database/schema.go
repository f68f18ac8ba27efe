package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/query/tables"
)

// types are the types of columns in SQLite.
var types = map[tables.Type]string{tables.Text: "TEXT", tables.Integer: "INTEGER",
	tables.Boolean: "INTEGER", tables.JSON: "TEXT"}

// tableOf returns the statement that makes a table. What it refers to is there where it is
// among some tables. The docs are comments in it, which SQLite keeps.
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
	of        []string // tables, without which it is not there
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
