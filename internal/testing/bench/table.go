//go:build unix

package main

import (
	"fmt"
	"io"
)

func printStart(out io.Writer, r *report) {
	folders := r.Folder
	if r.Disk != "" {
		folders += ", \"disk\" in " + shortPath(r.Disk)
	}
	fmt.Fprintf(out, "%d processors, %s, files in %s, load %.1f at the start.\n", r.Processors, r.Go, folders, r.Load)
	if r.Load > float64(r.Processors) {
		fmt.Fprintln(out, "WARNING: the machine does other things too. Wall times mean little, and CPU "+
			"times are a little too high.")
	}
}

const row = "%-34s %9s %9s %9s %10s %10s %8s\n"

// printPlatform prints the cost of work. It also prints the growth of the CPU time per assignment
// from the smallest platform of its kind. 1.00 is linear.
func printPlatform(out io.Writer, m, smallest *measured) {
	fmt.Fprintf(out, "\n%s assignments, %s tuples: %s files\n\n", thousands(m.Assignments), m.Kind, thousands(m.Files))
	fmt.Fprintf(out, row, "work", "cpu", "system", "wall", "peak", "cpu each", "growth")
	for _, w := range allWork {
		c := m.Costs[w]
		growth := ""
		if m != smallest {
			growth = fmt.Sprintf("%.2f", each(c, m)/each(smallest.Costs[w], smallest))
		}
		fmt.Fprintf(out, row, w, seconds(c.CPU), seconds(c.System), seconds(c.Wall), mebibytes(c.Memory),
			fmt.Sprintf("%.1f µs", each(c, m)), growth)
	}
	fmt.Fprintf(out, "One value of config %s changed %s of %s folders: those that hold it, and no others.\n",
		m.Change.Config, thousands(m.Change.Folders), thousands(m.Assignments))
}

// each is the CPU time per assignment, in microseconds.
func each(c cost, m *measured) float64 { return c.CPU * 1e6 / float64(m.Assignments) }

// ratios are the ratios of CPU times.
var ratios = []struct {
	name string
	of   func(map[work]cost) float64
}{
	{"no change, folder : git status", over(idleFolder, gitStatus)},
	{"no change, commit : git status", over(idleCommit, gitStatus)},
	{"one value : cold build, folder", over(valueFolder, coldFolder)},
	{"one value : cold build, commit", over(valueCommit, coldCommit)},
	{"cold build, folder : cp -r", over(coldFolder, copyFolder)},
	{"warm cache, empty folder : cp -r", over(warmFolder, copyFolder)},
}

func over(a, b work) func(map[work]cost) float64 {
	return func(costs map[work]cost) float64 { return costs[a].CPU / costs[b].CPU }
}

func printRatios(out io.Writer, all []*measured) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%-34s", "ratios of CPU time")
	for _, m := range all {
		fmt.Fprintf(out, " %13s", m.Kind+" "+short(m.Assignments))
	}
	fmt.Fprintln(out)
	for _, r := range ratios {
		fmt.Fprintf(out, "%-34s", r.name)
		for _, m := range all {
			fmt.Fprintf(out, " %13s", fmt.Sprintf("%.3g", r.of(m.Costs)))
		}
		fmt.Fprintln(out)
	}
}

const compositionRow = "%-24s %11s %11s %9s %22s %9s\n"

// printCompositions prints CPU times per assignment, and the ratios of kalypso's to CUE's.
func printCompositions(out io.Writer, all []*composition) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(out, "\n"+compositionRow, "CPU time per assignment", "kalypso", "cue export", "ratio",
		"cue export, matching", "ratio")
	for _, c := range all {
		per := func(of cost) string { return fmt.Sprintf("%.2f ms", of.CPU*1e3/float64(c.Assignments)) }
		fmt.Fprintf(out, compositionRow, fmt.Sprintf("%s, %s", thousands(c.Assignments), c.Kind), per(c.Kalypso),
			per(c.Given), fmt.Sprintf("%.2f", c.Kalypso.CPU/c.Given.CPU), per(c.Matched),
			fmt.Sprintf("%.2f", c.Kalypso.CPU/c.Matched.CPU))
	}
}

func seconds(s float64) string { return fmt.Sprintf("%.2f s", s) }

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// short writes a number with k for thousands.
func short(n int) string {
	if n%1000 != 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%dk", n/1000)
}
