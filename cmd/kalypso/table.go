package main

import (
	"fmt"
	"text/tabwriter"
	"unicode/utf8"

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

// fit cuts cells of the widest columns until each row has at most this many characters.
func fit(rows [][]string, columns int) {
	widths := make([]int, len(rows[0]))
	total := betweenColumns * (len(widths) - 1)
	for i := range widths {
		for _, r := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
		total += widths[i]
	}
	for ; total > columns; total-- {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	for _, r := range rows {
		for i, cell := range r {
			if utf8.RuneCountInString(cell) > widths[i] {
				r[i] = string([]rune(cell)[:widths[i]-1]) + "…"
			}
		}
	}
}
