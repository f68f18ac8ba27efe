//go:build unix

package main

import (
	"fmt"
	"io"
)

// budget is a limit for the cost of work. The budgets are for a machine with two processors.
type budget struct {
	work        string
	assignments int // of the platform; 0 if it is not a generated one
	unit        string
	most        float64
	of          func(*measured) float64
}

var budgets = []budget{
	{"cold build as a git commit, CPU", 100_000, "s", 60, cpu(coldCommit)},
	{"cold build as a git commit, peak memory", 100_000, "MiB", 1536, peak(coldCommit)},
	{"nothing changed as a git commit : git status", 100_000, "x", 2, over2(idleCommit, gitStatus)},
	{"nothing changed in a folder : git status", 100_000, "x", 2, over2(idleFolder, gitStatus)},
	{"one value changed as a git commit, CPU", 100_000, "s", 1, cpu(valueCommit)},
	{"cold build into a folder, CPU", 5_000, "s", 3, cpu(coldFolder)},
}

// vetBudget is for vet of the sample platform, in seconds of CPU time.
const vetBudget = 0.3

// otherBudgets are for work that is measured once: work with servers of git, inventories and
// pages. of returns false if it was not measured.
var otherBudgets = []struct {
	work, unit string
	most       float64
	of         func(*report) (float64, bool)
}{
	{"promotion of 10 files : git with a work tree, CPU", "x", 0.2,
		promoted(10, func(m *moved) float64 { return m.Warm.CPU / m.Git.CPU })},
	{"promotion of 10 files, peak memory", "MiB", 256,
		promoted(10, func(m *moved) float64 { return float64(m.Warm.Memory) / (1 << 20) })},
	{"promotion of 1,000 files : git with a work tree, CPU", "x", 0.5,
		promoted(1000, func(m *moved) float64 { return m.Warm.CPU / m.Git.CPU })},
	{"promotion of 1,000 files, empty store : git, bytes", "x", 1,
		promoted(1000, func(m *moved) float64 { return float64(m.Fetched.bytes()) / float64(m.Git.bytes()) })},
	{"status, fetched before, requests for each repository", "x", 1,
		asked(func(f *fleet) float64 { return float64(f.Warm.Requests) / float64(f.Repositories+1) })},
	{"status, empty store, requests for each repository", "x", 10,
		asked(func(f *fleet) float64 { return float64(f.Cold.Requests) / float64(f.Repositories+1) })},
	{"promotion of 1,000 files between folders, CPU", "s", 2.5, between(func(c cost) float64 { return c.CPU })},
	{"promotion of 1,000 files between folders, own memory", "MiB", 96,
		between(func(c cost) float64 { return float64(c.Own) / (1 << 20) })},
	{"promotion to a chain of 20 environments, CPU", "s", 3, func(r *report) (float64, bool) {
		if r.Local == nil || r.Local.All == nil || r.Local.Chain != 20 {
			return 0, false
		}
		return r.Local.All.CPU, true
	}},
	{"compare of two commits of 20,000 assignments, CPU", "s", 6,
		shared(20_000, func(m *measured) float64 { return m.Costs[compareCommits].CPU })},
	{"one file of pages of 20,000 assignments, CPU", "s", 15,
		shared(20_000, func(m *measured) float64 { return m.Costs[viewFile].CPU })},
	{"page of one of 20,000 assignments, time", "ms", 50,
		shared(20_000, func(m *measured) float64 { return m.Page * 1000 })},
	{"100,000 clusters read, in classes, CPU", "s", 1,
		rows(maxBuilt, noValues, func(i *inventory) float64 { return i.Read.CPU })},
	{"100,000 clusters read, in classes, own memory", "MiB", 200,
		rows(maxBuilt, noValues, func(i *inventory) float64 { return float64(i.Read.Own) / (1 << 20) })},
	{"100,000 clusters, cold build as a git commit, CPU", "s", 8,
		rows(maxBuilt, noValues, func(i *inventory) float64 { return i.Cold.CPU })},
	{"100,000 clusters, one row changed, CPU", "s", 1,
		rows(maxBuilt, noValues, func(i *inventory) float64 { return i.Row.CPU })},
	{"100,000 clusters, diff where few change class, CPU", "s", 3,
		rows(maxBuilt, noValues, func(i *inventory) float64 { return i.Diffs[0].cost().CPU })},
	{"100,000 clusters, diff where few do, peak memory", "MiB", 500,
		rows(maxBuilt, noValues,
			func(i *inventory) float64 { return float64(i.Diffs[0].cost().Memory) / (1 << 20) })},
	{"100,000 clusters, diff where most change class, CPU", "s", 3,
		rows(maxBuilt, noValues, func(i *inventory) float64 { return i.Diffs[1].cost().CPU })},
	{"100,000 clusters, diff where most do, peak memory", "MiB", 500,
		rows(maxBuilt, noValues,
			func(i *inventory) float64 { return float64(i.Diffs[1].cost().Memory) / (1 << 20) })},
	{"100,000 clusters with own values, cold build, CPU", "s", 30,
		rows(maxBuilt, ownValues, func(i *inventory) float64 { return i.Cold.CPU })},
	{"100,000 clusters with own values, peak memory", "MiB", 1536,
		rows(maxBuilt, ownValues, func(i *inventory) float64 { return float64(i.Cold.Memory) / (1 << 20) })},
	{"1,000,000 clusters read, in classes, CPU", "s", 15,
		rows(1_000_000, noValues, func(i *inventory) float64 { return i.Read.CPU })},
	{"application of one target, cold : helm template, CPU", "x", 1.5,
		ofHelm(func(a *applications) cost { return a.Cold })},
	{"application, nothing changed : helm template, CPU", "x", 1.5,
		ofHelm(func(a *applications) cost { return a.Idle })},
	{"environment that would take all CPU time : its bound", "x", 2,
		overBound(func(b *bombs) float64 { return b.CPU.CPU / bombCPU.Seconds() })},
	{"environment that would take all memory : its bound", "x", 1.25,
		overBound(func(b *bombs) float64 { return float64(b.Memory.Memory) / bombMemory })},
	{"1,000,000 clusters read, in classes, peak memory", "MiB", 1536,
		rows(1_000_000, noValues, func(i *inventory) float64 { return float64(i.Read.Memory) / (1 << 20) })},
}

// shared is about the platform of so many assignments that share their tuples.
func shared(n int, of func(*measured) float64) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) {
		for _, m := range r.Platforms {
			if m.Assignments == n && m.Kind == kindOf(false) {
				return of(m), true
			}
		}
		return 0, false
	}
}

func rows(n int, kind valueKind, of func(*inventory) float64) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) {
		for _, i := range r.Inventories {
			if i.Rows == n && i.Kind == kind {
				return of(i), true
			}
		}
		return 0, false
	}
}

// between is about a commit that changes 1,000 files of a large branch in a folder.
func between(of func(cost) float64) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) {
		if r.Local == nil || r.Local.Files < promotedFiles || r.Local.Wanted != 1000 {
			return 0, false
		}
		return of(r.Local.One), true
	}
}

// promotedFiles is how large the branch is that budgets are about.
const promotedFiles = 100_000

func promoted(files int, of func(*moved) float64) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) {
		if r.Promotions == nil || r.Promotions.Files < promotedFiles {
			return 0, false
		}
		for _, m := range r.Promotions.Steps {
			if m.Wanted == files {
				return of(m), true
			}
		}
		return 0, false
	}
}

func asked(of func(*fleet) float64) func(*report) (float64, bool) {
	return func(r *report) (float64, bool) {
		if r.Fleet == nil {
			return 0, false
		}
		return of(r.Fleet), true
	}
}

func cpu(w work) func(*measured) float64 {
	return func(m *measured) float64 { return m.Costs[w].CPU }
}

func peak(w work) func(*measured) float64 {
	return func(m *measured) float64 { return float64(m.Costs[w].Memory) / (1 << 20) }
}

func over2(a, b work) func(*measured) float64 {
	return func(m *measured) float64 { return over(a, b)(m.Costs) }
}

const budgetRow = "%-53s %9s %9s %9s %12s %14s  %s\n"

// printBudgets prints the measured costs and the budgets: "-" for a size that was not measured. A
// budget is met if it is met in all columns.
func printBudgets(out io.Writer, r *report) {
	fmt.Fprintf(out, "\n"+budgetRow, "budget", "at most", "shared", "distinct", "shared, disk", "distinct, disk", "")
	for _, b := range budgets {
		cells, told := []any{thousands(b.assignments) + ": " + b.work, amount(b.most, b.unit)}, ""
		for _, all := range [][]*measured{r.Platforms, r.OnDisk} {
			for _, kind := range []string{"shared", "distinct"} {
				m := find(all, kind, b.assignments)
				if m == nil {
					cells = append(cells, "-")
					continue
				}
				cells = append(cells, amount(b.of(m), b.unit))
				if told != missed {
					told = verdict(b.of(m), b.most)
				}
			}
		}
		fmt.Fprintf(out, budgetRow, append(cells, told)...)
	}
	for _, b := range otherBudgets {
		if got, ok := b.of(r); ok {
			fmt.Fprintf(out, budgetRow, b.work, amount(b.most, b.unit), amount(got, b.unit), "", "", "", verdict(got, b.most))
		}
	}
	fmt.Fprintf(out, budgetRow, "vet of the sample platform, CPU", amount(vetBudget, "s"),
		amount(r.Vet.CPU, "s"), "", "", "", verdict(r.Vet.CPU, vetBudget))
}

func amount(n float64, unit string) string {
	if n >= 100 {
		return fmt.Sprintf("%.0f %s", n, unit)
	}
	return fmt.Sprintf("%.3g %s", n, unit)
}

// The results of a budget.
const (
	held   = "held"
	missed = "MISSED"
)

func verdict(got, most float64) string {
	if got > most {
		return missed
	}
	return held
}
