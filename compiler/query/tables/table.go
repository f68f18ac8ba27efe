// Package tables defines the tables of a compiled platform: their names, their columns with types
// and docs, and their rows. One definition is used by the lists of `kalypso get`, the tables of
// `kalypso query`, the schema of the SQLite file, and the reference pages.
//
// The input is a Source, and the output is rows, one by one. In examples/hello-world, the
// environment dev has this query.Reconciler:
//
//	{Environment: "dev", Name: "flux", Backend: "flux", ClusterTypes: ["large"]}
//
// The row of the SQL table reconcilers is "dev", "flux", "flux". `kalypso get reconcilers` shows
// the cells "dev", "flux", "flux", "large".
package tables

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Source is the input of the rows.
type Source struct {
	Build *compiler.Build
	// Dir is the platform's folder. Revision is the revision of its repository that was
	// compiled; "" for the folder.
	Dir, Revision string
	// Changes calls a function with each change of the history, newest first; nil if there is no
	// history.
	Changes func(ctx context.Context, f func(Change) error) error
}

// Type is the type of a column.
type Type string

// The types of columns, and the values that a row has in them.
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
	Doc  string // "" if only a list of `kalypso get` has the column
	// Optional reports whether a row may have nil.
	Optional bool

	// heading is the title in a list of `kalypso get`; "" if get does not show the column.
	heading string
	// key is the JSON key of the item's field, or several with dots between them; "" for Name.
	key string
	// format returns the text of a value for a list of `kalypso get`, if it is different from the
	// value itself; nil to show the value.
	format func(value any) string
	field  []int // of the item, as key says
}

// Reference declares that columns of a table are the key of a row of another table.
type Reference struct {
	Columns []string
	Table   string
}

// Table is a table with its rows of any source. No two rows have the same key.
type Table struct {
	Name, Doc  string
	Columns    []Column
	Key        int // the number of key columns, from the first
	References []Reference

	rows rows
}

// rows calls yield with the cells of each row, until yield returns an error.
type rows func(ctx context.Context, s *Source, yield func(cells ...any) error) error

// Rows calls f with the cells of each row, one for each column, in an order that is always
// the same. It returns the first error of f, of the context, or of the source. f must not
// keep the slice.
func (t *Table) Rows(ctx context.Context, s *Source, f func(cells []any) error) error {
	return t.rows(ctx, s, func(cells ...any) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return f(cells)
	})
}

// All returns the tables of `kalypso query`, each after the tables that it refers to. It does not
// return the lists that only `kalypso get` has.
func All() []*Table {
	return []*Table{
		&Environments().Table, &Reconcilers().Table, &ClusterTypes().Table, classes(), &Clusters().Table,
		&Workloads().Table, &DeploymentTargets().Table,
		&SchedulingPolicies().Table, &Configs().Table, &ConfigSchemas().Table,
		&Assignments().Table, assignmentValues(), clusterValues(), versions(),
		diagnostics(), history(), aboutTable(),
	}
}

// Names returns the names of the tables.
func Names() []string {
	var names []string
	for _, t := range All() {
		names = append(names, t.Name)
	}
	return names
}

// Find returns a table by name. If there is no such table, the error names a similar one, or all.
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

// WriteLine writes a row of a table as a JSON object on one line, with its keys in the order of
// the columns. It escapes characters that cannot be seen, so that they do not move a terminal's
// cursor.
func (t *Table) WriteLine(w io.Writer, cells []any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	line.WriteByte('{')
	for i, c := range t.Columns {
		if i > 0 {
			line.WriteByte(',')
		}
		line.WriteString(`"` + c.Name + `":`)
		if err := encoder.Encode(cells[i]); err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
		line.Truncate(line.Len() - 1) // the newline that Encode writes
	}
	text := line.Bytes()
	if bytes.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		var escaped []byte
		for _, r := range line.String() {
			switch high, low := utf16.EncodeRune(r); {
			case unicode.IsPrint(r):
				escaped = utf8.AppendRune(escaped, r)
			case high != unicode.ReplacementChar:
				escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
			default:
				escaped = fmt.Appendf(escaped, `\u%04x`, r)
			}
		}
		text = escaped
	}
	_, err := w.Write(append(text, "}\n"...))
	return err
}

func text(name, doc string) Column    { return Column{Name: name, Type: Text, Doc: doc} }
func integer(name, doc string) Column { return Column{Name: name, Type: Integer, Doc: doc} }
func boolean(name, doc string) Column { return Column{Name: name, Type: Boolean, Doc: doc} }
func jsonOf(name, doc string) Column  { return Column{Name: name, Type: JSON, Doc: doc} }

// shown returns a column that only lists of `kalypso get` have, so it has no doc. The type says
// how the list shows the field: JSON shows a list or labels, and Integer the length of a list.
func shown(name, heading string,
	t Type) Column {
	return Column{Name: name, Type: t, heading: heading}
}

func optional(c Column) Column {
	c.Optional = true
	return c
}

// head returns the column with a heading, so that `kalypso get` can show it.
func (c Column) head(heading string) Column {
	c.heading = heading
	return c
}

// withKey returns the column with the field of another key, instead of its name.
func (c Column) withKey(key string) Column {
	c.key = key
	return c
}

// withText returns the column with another text in lists of `kalypso get`.
func (c Column) withText(format func(value any) string) Column {
	c.format = format
	return c
}

// environment is the first column of most tables.
var environment = text("environment", "the environment").head("ENVIRONMENT")

// refer returns a reference by columns to the table with that key.
func refer(table string, columns ...string) Reference { return Reference{columns, table} }
