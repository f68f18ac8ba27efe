// Package progress shows the progress of a build: as bars on a terminal, which disappear at the
// end, or as lines at a slow rhythm for logs.
package progress

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cheggaaa/pb/v3"

	"github.com/kalypso-io/kalypso/compiler/engine"
)

const (
	// patience is the time of a build before bars are shown.
	patience = 300 * time.Millisecond
	// redraw is the interval of drawing bars.
	redraw = 100 * time.Millisecond
	// rhythm is the interval of writing lines.
	rhythm = 10 * time.Second
)

// Options are the places to show progress on.
type Options struct {
	// Out gets it.
	Out io.Writer
	// Size returns the columns and rows of the terminal Out. It is nil if Out is not a terminal,
	// or if bars are disabled.
	Size func() (columns, rows int)
}

// Display shows the progress of one build. Its methods may be called by several
// goroutines. A nil Display shows nothing.
type Display struct {
	Options
	mu  sync.Mutex
	far map[string]engine.Progress // by environment

	// Of the display's goroutine only:
	listed map[string]int // assignments in the last line of an environment
	bars   map[string]*pb.ProgressBar
	drawn  []string // the lines that are on the terminal

	end   func()
	ended chan struct{}
}

// Start begins to show progress. Stop must be called.
func Start(o Options) *Display {
	end := make(chan struct{})
	d := &Display{
		Options: o, far: map[string]engine.Progress{}, listed: map[string]int{},
		bars: map[string]*pb.ProgressBar{},
		end:  sync.OnceFunc(func() { close(end) }), ended: make(chan struct{}),
	}
	go func() {
		defer close(d.ended)
		if d.Size == nil {
			tick(end, rhythm, rhythm, d.list)
			return
		}
		tick(end, patience, redraw, d.draw)
		// Remove the bars from the terminal.
		if len(d.drawn) > 0 {
			d.write(d.back() + "\x1b[J")
			d.drawn = nil
		}
	}()
	return d
}

// tick calls show after the first wait, and then every so often, until end is
// closed.
func tick(end <-chan struct{}, first, every time.Duration, show func()) {
	for wait := first; ; wait = every {
		select {
		case <-end:
			return
		case <-time.After(wait):
			show()
		}
	}
}

// Report records the progress of an environment.
func (d *Display) Report(p engine.Progress) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// Goroutines overtake each other on their way here.
	p.Done = max(p.Done, d.far[p.Environment].Done)
	d.far[p.Environment] = p
}

// Stop ends the display, and returns after it has cleared the terminal. Further calls do nothing.
func (d *Display) Stop() {
	if d == nil {
		return
	}
	d.end()
	<-d.ended
}

// all returns the progress of the environments, sorted by name, with finished environments last.
func (d *Display) all() []engine.Progress {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.far), func(a, b engine.Progress) int {
		if isDone(a) != isDone(b) {
			if isDone(b) {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Environment, b.Environment)
	})
}

func isDone(p engine.Progress) bool { return p.Done >= p.Total }

// list writes a line for each environment that is not done and has progressed since its last
// line.
func (d *Display) list() {
	var out strings.Builder
	for _, p := range d.all() {
		if !isDone(p) && p.Done > d.listed[p.Environment] {
			d.listed[p.Environment] = p.Done
			fmt.Fprintf(&out, "%s: %s\n", p.Environment, counts(p))
		}
	}
	d.write(out.String())
}

// counts returns the number of finished assignments and of all assignments, as text.
func counts(p engine.Progress) string {
	return grouped(p.Done) + " of " + grouped(p.Total) + " assignments"
}

// grouped writes a number with commas between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// write writes to Out. It ignores an error, because the build does not depend on its progress
// display.
func (d *Display) write(text string) {
	if text != "" {
		_, _ = io.WriteString(d.Out, text)
	}
}
