package tables

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/query"
)

// List is a table with a row for each item of a type, whose fields are the columns. `kalypso
// get` shows it as text.
type List[T any] struct {
	// Table is the table of `kalypso query`. If only get has the list, it has no columns.
	Table
	// Items returns the items of a build, sorted by the first columns. The error is about reading
	// the cache.
	Items func(context.Context, *compiler.Build) ([]T, error)

	shown []Column // the columns that get shows, in order; the last wide ones only with -o wide
	wide  int
}

// list returns the list of a table's definition, whose columns include those that only get
// has. shown and wide name the columns that get shows, in its order: always, and only with -o
// wide. A column or field that does not exist is a mistake in the definition.
func list[T any](items func(context.Context, *compiler.Build) ([]T, error), t Table, shown,
	wide string) *List[T] {
	var sql []Column
	for i := range t.Columns {
		c := &t.Columns[i]
		c.field = fieldOf(reflect.TypeFor[T](), cmp.Or(c.key, c.Name))
		if c.Doc != "" {
			sql = append(sql, *c)
		}
	}
	l := &List[T]{Table: t, Items: items}
	l.Columns = sql
	l.rows = func(ctx context.Context, s *Source, yield func(...any) error) error {
		all, err := items(ctx, s.Build)
		if err != nil {
			return err
		}
		for _, item := range all {
			row := reflect.ValueOf(item)
			cells := make([]any, len(sql))
			for i := range sql {
				cells[i] = sql[i].value(row)
			}
			if err := yield(cells...); err != nil {
				return err
			}
		}
		return nil
	}
	l.wide = len(strings.Fields(wide))
	for _, name := range strings.Fields(shown + " " + wide) {
		i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name && c.heading != "" })
		if i < 0 {
			panic(fmt.Sprintf("table %s has no column %s that get can show", t.Name, name))
		}
		l.shown = append(l.shown, t.Columns[i])
	}
	return l
}

// read returns a function that lists items without an error.
func read[T any](items func(*compiler.Build) []T) func(context.Context, *compiler.Build) ([]T,
	error) {
	return func(_ context.Context, b *compiler.Build) ([]T, error) { return items(b), nil }
}

// fieldOf returns the index of the field with a JSON key. A path of several keys leads to a field
// below others. A field without a key in JSON has its Go name as the key.
func fieldOf(t reflect.Type, path string) []int {
	key, rest, below := strings.Cut(path, ".")
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != key && (name != "-" || !strings.EqualFold(f.Name, key)) {
			continue
		}
		if below {
			return append([]int{i}, fieldOf(f.Type, rest)...)
		}
		return []int{i}
	}
	panic(fmt.Sprintf("%s has no field %s", t, key))
}

// value returns the value of the column in the row of an item. An integer column of a list has
// the length of the list. An optional column has nil for the zero value. A nil list in JSON is an
// empty list, not null.
func (c *Column) value(item reflect.Value) any {
	v := item.FieldByIndex(c.field)
	if c.Optional && v.IsZero() {
		return nil
	}
	isList := v.Kind() == reflect.Slice
	switch {
	case c.Type == Integer && isList:
		return v.Len()
	case c.Type == Integer:
		return int(v.Int())
	case c.Type == Text:
		return v.String()
	case c.Type == JSON && isList && v.IsNil():
		return reflect.MakeSlice(v.Type(), 0, 0).Interface()
	}
	return v.Interface()
}

// Header returns the headings of the columns that get shows.
func (l *List[T]) Header(wide bool) []string {
	var headings []string
	for _, c := range l.columns(wide) {
		headings = append(headings, c.heading)
	}
	return headings
}

// Cells returns the cells of an item that get shows.
func (l *List[T]) Cells(item T, wide bool) []any {
	row := reflect.ValueOf(item)
	var cells []any
	for _, c := range l.columns(wide) {
		value := c.value(row)
		switch list := value.(type) {
		case nil:
			value = ""
		case []string:
			value = strings.Join(list, ",")
		case map[string]string:
			value = query.LabelsText(list)
		}
		if c.format != nil {
			value = c.format(c.value(row))
		}
		cells = append(cells, value)
	}
	return cells
}

func (l *List[T]) columns(wide bool) []Column {
	if wide {
		return l.shown
	}
	return l.shown[:len(l.shown)-l.wide]
}
