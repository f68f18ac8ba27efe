package pull

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/compiler/fleet"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const bom = "\xef\xbb\xbf"

// open reads the text of an inventory's file; nil is the text of a new one. Messages of
// errors follow the file's name.
func open(inv *model.Inventory, data []byte) (document, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8: save it as UTF-8")
	}
	format := fleet.Format(inv)
	if format == model.CSVInventory {
		return openTable(inv, data)
	}
	if format == "" {
		return nil, errors.New(
			`has an ending that says nothing: say what it is with format: "csv", "json", "ndjson" or "yaml"`)
	}
	return openTree(inv, format, data)
}

// table is a CSV file.
type table struct {
	separator rune
	bom, crlf bool
	header    []string
	columns   map[string]int
	records   []row
}

// record is a row of a table. It may have fewer fields than there are columns.
type record struct {
	of     *table
	fields []string
	line   int
}

func openTable(inv *model.Inventory, data []byte) (*table, error) {
	t := &table{separator: rune(inv.Separator[0]), columns: map[string]int{}}
	rest, hasBOM := bytes.CutPrefix(data, []byte(bom))
	t.bom = hasBOM
	first, _, _ := bytes.Cut(rest, []byte("\n"))
	t.crlf = bytes.HasSuffix(first, []byte("\r"))
	r := csv.NewReader(bytes.NewReader(rest))
	r.Comma, r.FieldsPerRecord = t.separator, -1
	header, err := r.Read()
	switch {
	case errors.Is(err, io.EOF):
		t.begin(inv)
		return t, nil
	case err != nil:
		return nil, broken(err)
	}
	for _, name := range header {
		if _, there := t.columns[strings.TrimSpace(name)]; there {
			return nil, fmt.Errorf("has the column %q twice: leave one of them", name)
		}
		t.addColumn(name)
	}
	for {
		fields, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return nil, broken(err)
		}
		line, _ := r.FieldPos(0)
		if len(fields) != len(header) {
			return nil, fmt.Errorf("cannot be read: line %d has %d fields, and there are %d columns", line,
				len(fields), len(header))
		}
		t.records = append(t.records, &record{t, fields, line})
	}
}

func broken(err error) error { return fmt.Errorf("cannot be read: %w", err) }

// begin adds the columns that the inventory names to a new file.
func (t *table) begin(inv *model.Inventory) {
	t.column(inv.Columns.Name)
	for _, c := range [][2]string{{"clusterType", inv.Columns.ClusterType},
		{"address", inv.Columns.Address}, {"description", inv.Columns.Description}} {
		if c[0] != c[1] {
			t.column(c[1])
		}
	}
	for _, label := range slices.Sorted(maps.Keys(inv.Columns.Labels)) {
		t.column(inv.Columns.Labels[label])
	}
	for _, value := range slices.Sorted(maps.Keys(inv.Columns.Values)) {
		t.column(inv.Columns.Values[value].Column)
	}
}

func (t *table) addColumn(name string) {
	t.columns[strings.TrimSpace(name)] = len(t.header)
	t.header = append(t.header, name)
}

// column returns the number of a column, and makes the column if it does not exist.
func (t *table) column(name string) int {
	if _, there := t.columns[name]; !there {
		t.addColumn(name)
	}
	return t.columns[name]
}

func (t *table) rows() []row { return t.records }

func (t *table) add() row { return &record{of: t} }

func (t *table) render(rows []row) ([]byte, error) {
	var b bytes.Buffer
	if t.bom {
		b.WriteString(bom)
	}
	w := csv.NewWriter(&b)
	w.Comma, w.UseCRLF = t.separator, t.crlf
	records := [][]string{t.header}
	for _, r := range rows {
		fields := r.(*record).fields
		records = append(records, append(fields, make([]string, len(t.header)-len(fields))...))
	}
	err := w.WriteAll(records)
	return b.Bytes(), err
}

func (r *record) lineNumber() int { return r.line }

func (r *record) cell(column string) string {
	i, there := r.of.columns[column]
	if !there || i >= len(r.fields) {
		return ""
	}
	return strings.TrimSpace(r.fields[i])
}

func (r *record) set(column, text string) error {
	i := r.of.column(column)
	for len(r.fields) <= i {
		r.fields = append(r.fields, "")
	}
	r.fields[i] = text
	return nil
}

func (r *record) label(name string) string         { return r.cell("labels." + name) }
func (r *record) setLabel(name, text string) error { return r.set("labels."+name, text) }
