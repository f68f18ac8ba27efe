package fleet

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// readCSV makes a row of each record after the first. The first record has the names of the
// columns.
func (inv *inventory) readCSV(data []byte) *fault {
	r := csv.NewReader(bytes.NewReader(data))
	r.Comma, r.FieldsPerRecord = rune(inv.Separator[0]), -1
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return &fault{message: "is empty", line: 1, hint: "its first line has the names of the columns"}
	}
	if err != nil {
		return broken(err)
	}
	c := &csvCells{file: inv.file, reader: r, columns: map[string]int{}}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if _, there := c.columns[name]; there && name != "" {
			line, column := r.FieldPos(i)
			return &fault{message: fmt.Sprintf("has the column %s twice", name), line: line, column: column,
				hint: "leave one of them"}
		}
		c.columns[name] = i
		for _, of := range []string{"labels", "values"} {
			if rest, ok := strings.CutPrefix(name, of+"."); ok && rest != "" {
				c.groups = append(c.groups, group{of, rest, i})
			}
		}
	}
	if missing := inv.lacking(c.columns); missing != nil {
		return missing
	}
	r.ReuseRecord = true
	inv.rows = make([]row, 0, bytes.Count(data, []byte{'\n'}))
	for {
		c.record, err = r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return broken(err)
		case len(c.record) != len(header):
			inv.wrongWidth(c, len(header))
		default:
			inv.add(c)
		}
	}
}

// lacking reports a column that the inventory names and the file does not have.
func (inv *inventory) lacking(columns map[string]int) *fault {
	named := []string{inv.Columns.Name}
	named = slices.AppendSeq(named, maps.Values(inv.Columns.Labels))
	for _, c := range inv.Columns.Values {
		named = append(named, c.Column)
	}
	for usual, name := range map[string]string{"clusterType": inv.Columns.ClusterType,
		"address": inv.Columns.Address, "description": inv.Columns.Description} {
		if name != usual {
			named = append(named, name)
		}
	}
	if _, ok := columns[inv.Columns.ClusterType]; !ok {
		inv.reader.untyped[inv.Name] = true
	}
	slices.Sort(named)
	there := slices.Sorted(maps.Keys(columns))
	own := len(named)
	if inv.filter != nil {
		named = append(named, inv.filter.Columns...)
	}
	for i, name := range named {
		if _, ok := columns[name]; ok {
			continue
		}
		hint := spelling.DidYouMean(name, there)
		if spelling.Nearest(name, there) == "" {
			hint = "it has " + strings.Join(there[:min(len(there), 20)], ", ")
			if i < own {
				hint += "; say with columns which of them it is"
			}
		}
		for _, other := range []string{";", "\t", "|", ","} {
			if len(there) == 1 && strings.Contains(there[0], other) && other != inv.Separator {
				hint = fmt.Sprintf("its columns seem to be separated otherwise: separator: %q", other)
			}
		}
		f := &fault{message: "has no column " + name, line: 1, hint: hint}
		if i >= own {
			f.path = model.JoinPath("where", model.Label(name))
		}
		return f
	}
	return nil
}

// wrongWidth reports a record that has more or fewer fields than there are columns.
func (inv *inventory) wrongWidth(c *csvCells, columns int) {
	name := ""
	if i := c.columns[inv.Columns.Name]; i < len(c.record) &&
		model.IsName(strings.TrimSpace(c.record[i])) {
		name = strings.TrimSpace(c.record[i])
	}
	line, column := c.reader.FieldPos(0)
	inv.refuse("width", name, model.Position{File: inv.file, Line: line, Column: column},
		fmt.Sprintf("the row has %d fields, and there are %d columns", len(c.record), columns),
		"quote what holds the separator, and leave no field out")
}

// broken reports the place at which CSV is invalid.
func broken(err error) *fault {
	f := &fault{message: "cannot be read any further: " + err.Error(),
		hint: `quote a field that holds a quote, and write the quote twice: "5"" disk"`}
	if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
		f.message, f.line, f.column = "cannot be read any further: "+parse.Err.Error(), parse.Line,
			parse.Column
		if parse.StartLine < parse.Line {
			f.line, f.column = parse.StartLine, 1 // the beginning of the quote
		}
	}
	return f
}

// csvCells are a record of a CSV file; the same for all, one after the other.
type csvCells struct {
	file    string
	reader  *csv.Reader
	columns map[string]int
	groups  []group
	record  []string
	fields  []model.Field // of below
}

// group is a column labels.<name> or values.<name>.
type group struct {
	of, name string
	column   int
}

func (c *csvCells) cell(column string) (model.Value, bool) {
	i, there := c.columns[column]
	if !there {
		return model.Value{}, false
	}
	return model.StringOf(c.record[i]), true
}

func (c *csvCells) below(column string) []model.Field {
	c.fields = c.fields[:0]
	for _, g := range c.groups {
		if g.of == column {
			c.fields = append(c.fields, model.Field{Name: g.name, Value: model.StringOf(c.record[g.column])})
		}
	}
	return c.fields
}

func (c *csvCells) positionOf(column string) model.Position {
	line, at := c.reader.FieldPos(c.columns[column])
	return model.Position{File: c.file, Line: line, Column: at}
}
