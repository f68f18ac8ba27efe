package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// built is the result of a build: an error, or the rest.
type built struct {
	*compiler.Build
	written *compiler.Written
	err     error
	took    time.Duration
}

// screen shows one build after the other.
type screen struct {
	*global
	root string
	// talk gets what is no diagnostic in a format for programs.
	talk io.Writer
	// redraws says that talk is a terminal, on which a build takes the place of the
	// one before.
	redraws bool
	warning string // that belongs to every build
}

func (g *global) newScreen(root string) *screen {
	s := &screen{global: g, root: root, talk: g.out}
	if g.diagnostics != "text" {
		s.talk = g.err
		return s
	}
	s.redraws = sizeOf(g.out) != nil
	return s
}

// warn keeps a warning where it is redrawn, and otherwise writes it.
func (s *screen) warn(err error) {
	if s.warning = fmt.Sprintf("kalypso: warning: %v; looking for changes twice a second instead\n", err); !s.redraws {
		fmt.Fprint(s.err, s.warning)
	}
}

// erased is what makes a terminal empty. What was scrolled away stays.
const erased = "\x1b[H\x1b[2J"

// show shows a build in one write, so that a terminal does not flicker and a
// reader finds it whole.
func (s *screen) show(b built) error {
	var page bytes.Buffer
	if s.redraws {
		page.WriteString(erased)
	}
	if b.err != nil {
		fmt.Fprintf(&page, "not built: %v\n", b.err)
	} else if err := s.page(&page, b); err != nil {
		return err
	}
	page.WriteString("\n")
	if s.redraws {
		fmt.Fprintf(&page, "%swaiting for changes of %s; Ctrl-C ends\n", s.warning, s.root)
	}
	_, err := s.talk.Write(page.Bytes())
	return err
}

// page writes what was built, what changed, and what is wrong.
func (s *screen) page(page *bytes.Buffer, b built) error {
	fmt.Fprintf(page, "built in %.2f s, %s\n", b.took.Seconds(), counted(b.Diagnostics))
	w := tabwriter.NewWriter(page, 0, 0, 2, ' ', 0)
	summary(w, b.Build, b.written)
	if err := w.Flush(); err != nil {
		return err
	}
	changed(page, b)
	if s.diagnostics == "text" {
		return diag.WriteText(page, b.Diagnostics, emphasis(s.out))
	}
	return s.report(s.out, b.Diagnostics)
}

// counted says how many errors and warnings there are.
func counted(ds []diag.Diagnostic) string {
	errs := 0
	for _, d := range ds {
		if d.Severity == diag.Error {
			errs++
		}
	}
	if len(ds) == 0 {
		return "no problems"
	}
	warnings := len(ds) - errs
	switch 0 {
	case warnings:
		return plural(errs, "error")
	case errs:
		return plural(warnings, "warning")
	}
	return plural(errs, "error") + " and " + plural(warnings, "warning")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// mostChanged is how many changed assignments are named.
const mostChanged = 10

// changed writes which assignments a build changed, and on which clusters, removals first.
func changed(page *bytes.Buffer, b built) {
	var lines []string
	for _, e := range b.Environments {
		if c := b.written.Changes[e.Name]; c != nil {
			lines = append(lines, changesOf(e, c.Assignments)...)
		}
	}
	for _, line := range lines[:min(len(lines), mostChanged)] {
		fmt.Fprintln(page, line)
	}
	if left := len(lines) - mostChanged; left > 0 {
		fmt.Fprintf(page, "and %d more\n", left)
	}
}

// changesOf returns a line for each assignment that is removed, added or changed. The first
// build has nothing to compare with, and adds everything that it wrote.
func changesOf(e *engine.Environment, written tree.AssignmentChanges) (lines []string) {
	if e.Effect == nil {
		for _, name := range written.Added {
			lines = append(lines, fmt.Sprintf("%-8s %s", "added", name))
		}
		return lines
	}
	clusters := map[[2]string][]string{} // by word and id
	for i := range e.Effect.Pairs {
		p := &e.Effect.Pairs[i]
		key := [2]string{"changed", e.Name + "/" + p.ClusterType() + "/" + p.DeploymentTarget()}
		if p.Removed() {
			key[0] = "removed"
		} else if p.Added() {
			key[0] = "added"
		}
		clusters[key] = append(clusters[key], p.Way.Clusters...)
	}
	for _, word := range []string{"removed", "added", "changed"} {
		for _, key := range slices.SortedFunc(maps.Keys(clusters),
			func(a, b [2]string) int { return strings.Compare(a[1], b[1]) }) {
			if key[0] != word {
				continue
			}
			line := fmt.Sprintf("%-8s %s", word, key[1])
			switch names := clusters[key]; len(names) {
			case 0:
			case 1:
				line += " on " + names[0]
			default:
				line += " on " + plural(len(names), "cluster")
			}
			lines = append(lines, line)
		}
	}
	return lines
}
