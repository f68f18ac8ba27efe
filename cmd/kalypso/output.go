package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// apiVersion is the version of all JSON and YAML results.
const apiVersion = "kalypso.io/v1alpha1"

// choice is the value of a flag that takes one of some texts. Others are refused before
// anything is done.
type choice struct {
	value *string
	of    []string
}

// String returns the text.
func (c *choice) String() string {
	if c.value == nil { // pflag reads the default of a zero value
		return ""
	}
	return *c.value
}

// Type returns the name of the value's type in help texts.
func (c *choice) Type() string { return "string" }

// Set sets the text.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return errors.New("there are " + listed(c.of, "and"))
	}
	*c.value = s
	return nil
}

// choiceFlag adds a flag that takes one of some texts, which end its usage, to flags of a
// command. The first is the default.
func choiceFlag(cmd *cobra.Command, flags *pflag.FlagSet, value *string, name, shorthand,
	usage string, of ...string) {
	*value = of[0]
	flags.VarP(&choice{value, of}, name, shorthand, usage+": "+listed(of, "or"))
	completeFlag(cmd, name, values(of...))
}

// listed lists two texts or more: "a, b or c".
func listed(all []string, last string) string {
	n := len(all) - 1
	return strings.Join(all[:n], ", ") + " " + last + " " + all[n]
}

// outputFlag adds -o, and returns a pointer to its value.
func outputFlag(cmd *cobra.Command) *string { return outputFlagIn(cmd, cmd.Flags()) }

// outputFlagIn adds -o to flags of a command: its own flags, or the flags of all commands below
// it.
func outputFlagIn(cmd *cobra.Command, flags *pflag.FlagSet) *string {
	o := new(string)
	choiceFlag(cmd, flags, o, "output", "o", "how to print the result", "table", "json", "yaml")
	return o
}

// list is the document of a list result.
type list[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []T    `json:"items"`
}

// document is the document of a single result.
type document[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Item       T      `json:"item"`
}

// print prints a result: as a document, or as the table that fill writes.
func (g *console) print(output string, result any, fill func(*tabwriter.Writer)) error {
	if output == "table" {
		return g.wrapped(fill)
	}
	return g.printDocument(output, result)
}

// printDocument prints a result as json or yaml.
func (g *console) printDocument(output string, result any) error {
	if output == "json" {
		return writeJSON(g.out, result)
	}
	text, err := toYAML(result)
	if err != nil {
		return err
	}
	_, err = g.out.Write(text)
	return err
}

func writeJSON(w io.Writer, result any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(result)
}

// toYAML converts a value to YAML, with the fields of its JSON in the same order.
func toYAML(result any) ([]byte, error) {
	text, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := ordered(dec)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(v)
}

// ordered reads one JSON value, objects as mappings that keep their order.
func ordered(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			list := []any{}
			for dec.More() {
				e, err := ordered(dec)
				if err != nil {
					return nil, err
				}
				list = append(list, e)
			}
			_, err = dec.Token()
			return list, err
		}
		m := yaml.Mapping{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			e, err := ordered(dec)
			if err != nil {
				return nil, err
			}
			m = append(m, yaml.Entry{Key: key.(string), Value: e})
		}
		_, err = dec.Token()
		return m, err
	case json.Number:
		return model.NumberOf(string(t))
	case nil:
		return model.Value{}, nil
	}
	return token, nil
}

// row writes a line of a table; an empty cell is shown as a dash.
func row(w *tabwriter.Writer, cells ...any) {
	for i, c := range cells {
		text := fmt.Sprint(c)
		if text == "" {
			text = "-"
		}
		if i > 0 {
			text = "\t" + text
		}
		fmt.Fprint(w, text)
	}
	fmt.Fprintln(w)
}

func join(items []string) string { return strings.Join(items, ",") }

func place(p model.Position) string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

func places(ps []model.Position) string {
	var out []string
	for _, p := range ps {
		out = append(out, place(p))
	}
	return strings.Join(out, " ")
}

const (
	betweenColumns = 2 // spaces
	narrowest      = 6 // a column is not made narrower than this
)

// table prints rows under a header. On a terminal, cells of the widest columns are cut so
// that a row fits on a line, as far as that is possible; elsewhere all cells are whole. An
// empty cell is shown as a dash, and each character that cannot be seen as a space.
func (g *console) table(header []string, rows [][]any) error {
	text := [][]string{header}
	for _, cells := range rows {
		line := make([]string, len(header))
		for i := range line {
			line[i] = terminal.Printable(fmt.Sprint(cells[i]))
		}
		text = append(text, line)
	}
	if size := sizeOf(g.out); size != nil {
		columns, _ := size()
		fit(text, columns)
	}
	w := tabwriter.NewWriter(g.out, 0, 0, betweenColumns, ' ', 0)
	for _, line := range text {
		cells := make([]any, len(line))
		for i := range line {
			cells[i] = line[i]
		}
		row(w, cells...)
	}
	return w.Flush()
}

// fit cuts cells until each row fits into this many columns of a terminal. It cuts the widest
// columns first, and the first two, which name the item, only if that is not enough.
func fit(rows [][]string, columns int) {
	widths := make([]int, len(rows[0]))
	total := betweenColumns * (len(widths) - 1)
	for i := range widths {
		for _, r := range rows {
			widths[i] = max(widths[i], runewidth.StringWidth(r[i]))
		}
		total += widths[i]
	}
	const naming = 2
	for _, first := range []int{min(naming, len(widths)-1), 0} {
		for ; total > columns; total-- {
			widest := first
			for i := first; i < len(widths); i++ {
				if widths[i] > widths[widest] {
					widest = i
				}
			}
			if widths[widest] <= narrowest {
				break
			}
			widths[widest]--
		}
	}
	for _, r := range rows {
		for i, cell := range r {
			r[i] = runewidth.Truncate(cell, widths[i], "…")
		}
	}
}

// leastRoom is the smallest number of columns of a terminal for which the last cell of a row is
// wrapped.
const leastRoom = 20

// wrapped writes the text that fill writes, with aligned columns for cells that end at tabs. On a
// terminal, the last cell of a row that does not fit continues below itself. The other cells are
// cut if they leave it no room.
func (g *console) wrapped(fill func(*tabwriter.Writer)) error {
	size := sizeOf(g.out)
	if size == nil {
		w := tabwriter.NewWriter(g.out, 0, 0, betweenColumns, ' ', 0)
		fill(w)
		return w.Flush()
	}
	const padding = '\x01' // of no text, so that it shows where cells end
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, betweenColumns, padding, 0)
	fill(w)
	if err := w.Flush(); err != nil {
		return err
	}
	columns, _ := size()
	lines := slices.Collect(strings.Lines(text.String()))
	var out strings.Builder
	for len(lines) > 0 {
		rows := rowsOf(lines, padding)
		begin := strings.LastIndexByte(lines[0], padding) + 1
		indent := runewidth.StringWidth(strings.ReplaceAll(lines[0][:begin], string(padding), " "))
		if len(rows[0]) > 1 && indent > columns-leastRoom {
			writeNarrow(&out, rows, columns)
		} else {
			for _, line := range lines[:len(rows)] {
				begin := strings.LastIndexByte(line, padding) + 1
				before := strings.ReplaceAll(line[:begin], string(padding), " ")
				out.WriteString(before + hang(line[begin:], runewidth.StringWidth(before), columns))
			}
		}
		lines = lines[len(rows):]
	}
	_, err := io.WriteString(g.out, out.String())
	return err
}

// rowsOf returns the cells of the first lines that have equally many.
func rowsOf(lines []string, padding rune) [][]string {
	var rows [][]string
	for _, line := range lines {
		line = strings.TrimSuffix(line, "\n")
		cells := strings.FieldsFunc(line, func(r rune) bool { return r == padding })
		if len(rows) > 0 && len(cells) != len(rows[0]) {
			break
		}
		rows = append(rows, cells)
	}
	return rows
}

// writeNarrow writes rows whose last cells have too little room, with the other cells cut.
func writeNarrow(out *strings.Builder, rows [][]string, columns int) {
	last := len(rows[0]) - 1
	before, room := make([][]string, len(rows)), 0
	for i, r := range rows {
		before[i] = r[:last]
		room = max(room, runewidth.StringWidth(r[last]))
	}
	fit(before, columns-betweenColumns-min(room, leastRoom))
	widths := make([]int, last)
	for _, r := range before {
		for i, cell := range r {
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	for _, r := range rows {
		indent := 0
		for i, cell := range r[:last] {
			indent += widths[i] + betweenColumns
			out.WriteString(runewidth.FillRight(cell, widths[i]+betweenColumns))
		}
		out.WriteString(hang(r[last]+"\n", indent, columns))
	}
}

// hang breaks a text between words, so that it fits into a terminal after an indent, and indents
// each further line. If it has no indent or too little room, it returns the text unchanged.
func hang(text string, indent, columns int) string {
	room := columns - indent
	if indent == 0 || room < leastRoom || runewidth.StringWidth(text) <= room {
		return text
	}
	var out strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		w := runewidth.StringWidth(word)
		switch {
		case i == 0:
		case width+1+w > room:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			width = 0
		default:
			out.WriteByte(' ')
			width++
		}
		out.WriteString(word)
		width += w
	}
	return out.String() + "\n"
}
