package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mattn/go-runewidth"

	"github.com/kalypso-io/kalypso/internal/terminal"
)

const (
	betweenColumns = 2 // spaces
	narrowest      = 6 // a column is not made narrower than this
)

// table prints rows under a header. On a terminal, cells of the widest columns are cut so
// that a row fits on a line, as far as that is possible; elsewhere all cells are whole. An
// empty cell is shown as a dash, and each character that cannot be seen as a space.
func (g *global) table(header []string, rows [][]any) error {
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

// fit cuts cells until each row fits into this many columns of a terminal. It cuts the widest columns first,
// and the first two, which name the item, only if that is not enough.
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

// leastRoom is how many columns of a terminal the last cell of a row needs to be wrapped.
const leastRoom = 20

// wrapped writes the text that fill writes, with cells that end at tabs below each other. On a terminal, the last
// cell of a row that does not fit goes on below itself, and the others are cut if they leave it no room.
func (g *global) wrapped(fill func(*tabwriter.Writer)) error {
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

// hang breaks a text between words, so that it fits into a terminal after an indent, and indents each further line.
// It returns the text as it is if it has no indent or too little room.
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
