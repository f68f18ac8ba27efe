package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cheggaaa/pb/v3"

	"github.com/kalypso-io/kalypso/compiler/engine"
)

const (
	// maxBars is the largest number of environments with a bar at once.
	maxBars = 10
	// widest is the largest number of columns of a bar's line.
	widest = 100
)

// look is the template of a bar. It has no colour, so nobody has to turn colours off, and only
// ASCII characters, which every terminal shows. %.0s hides the time that a bar took, because
// nobody needs it.
const look = `{{string . "name"}} {{bar . "[" "=" ">" " " "]"}} {{string . "counts"}}{{rtime . ", %s left" "%.0s" ""}}`

// draw draws the bars in place of the bars on the terminal, if they differ.
func (d *Display) draw() {
	columns, rows := d.Size()
	lines := d.lines(min(columns-1, widest), max(min(rows-1, maxBars), 1))
	if slices.Equal(lines, d.drawn) {
		return
	}
	var out strings.Builder
	out.WriteString(d.back())
	for _, line := range lines {
		out.WriteString(line + "\x1b[K\n") // erase the rest of the previous line
	}
	out.WriteString("\x1b[J") // erase the lines below
	d.drawn = lines
	d.write(out.String())
}

// back moves the cursor to the beginning of the bars.
func (d *Display) back() string {
	if len(d.drawn) == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA", len(d.drawn))
}

// lines returns at most so many lines of at most that width. Environments in progress come first.
func (d *Display) lines(width, most int) []string {
	all := d.all()
	if len(all) == 0 {
		return []string{clip("reading the platform", width)}
	}
	shown := all
	if len(all) > most {
		shown = all[:most-1]
	}
	longest := 0
	for _, p := range shown {
		longest = max(longest, len(p.Environment))
	}
	var out []string
	for _, p := range shown {
		out = append(out, d.bar(p, longest, width))
	}
	if left := len(all) - len(shown); left > 0 {
		out = append(out, clip(fmt.Sprintf("and %d more", left), width))
	}
	return out
}

// bar returns an environment's line. Names of environments are ASCII.
func (d *Display) bar(p engine.Progress, name, width int) string {
	bar := d.bars[p.Environment]
	if bar == nil {
		bar = pb.New(p.Total).SetTemplateString(look).SetWriter(io.Discard).Set(pb.Static, true).Start()
		d.bars[p.Environment] = bar
	}
	bar.SetTotal(int64(p.Total)).SetCurrent(int64(p.Done)).SetWidth(max(width, 1))
	bar.Set("name", fmt.Sprintf("%-*s", name, p.Environment)).Set("counts", counts(p))
	if isDone(p) {
		bar.Finish() // no remaining time is shown
	}
	return clip(bar.String(), width)
}

func clip(s string, width int) string { return s[:min(len(s), max(width, 0))] }
