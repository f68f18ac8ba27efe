package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// page is the file with the table, between two marks.
const (
	page  = "docs/fuzzing.md"
	begin = "<!-- fuzz: begin -->\n"
	end   = "<!-- fuzz: end -->\n"
)

// few is the number of inputs a second below which a target needs a reason.
const few = 1000

// writePage writes the table of some targets to the page. It returns an error that names the
// targets that try few inputs without a reason.
func writePage(targets []target, each time.Duration) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s has no place for the table", page)
	}
	var errs []error
	for _, t := range targets {
		if t.rate < few && t.slow == "" {
			errs = append(errs, fmt.Errorf("%s in %s tries %d inputs a second: make it faster, or say why "+
				"after Slow: in its comment", t.name, t.dir, t.rate))
		}
	}
	return errors.Join(append(errs,
		os.WriteFile(page, []byte(head+begin+"\n"+table(targets, each)+"\n"+end+tail), 0o644))...)
}

func table(targets []target, each time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d targets, %s each.\n\n", len(targets), each)
	b.WriteString("| package | target | what holds | inputs in a second of one processor |\n|---|---|---|---:|\n")
	for _, t := range targets {
		rate := fmt.Sprint(t.rate)
		if t.rate < few {
			rate += ": " + t.slow
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", t.dir, t.name, strings.ReplaceAll(t.says, "|", `\|`), rate)
	}
	return b.String()
}
