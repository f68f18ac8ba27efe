//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sampleReport is a report with the same cost everywhere, of both kinds and the
// usual sizes.
func sampleReport(c cost) *report {
	r := &report{Processors: 2, Go: "go1.26", Load: 1, Folder: memoryFolder, Disk: "/a/disk", Vet: c}
	for _, kind := range []string{"shared", "distinct"} {
		for _, n := range []int{5_000, 20_000, 100_000} {
			for _, all := range []*[]*measured{&r.Platforms, &r.OnDisk} {
				m := &measured{Kind: kind, Assignments: n, Files: 4 * n, Change: change{Config: "network-us-east-1", Folders: 100}, Costs: map[work]cost{}}
				for _, w := range allWork {
					m.Costs[w] = c
				}
				*all = append(*all, m)
			}
		}
		r.Compositions = append(r.Compositions, &composition{Kind: kind, Assignments: 1000, Kalypso: c, Given: c, Matched: c})
	}
	return r
}

func TestTablesFitATerminal(t *testing.T) {
	for _, c := range []cost{{CPU: 0.01, System: 0.001, Wall: 0.01, Memory: 30 << 20}, {CPU: 1234.5, System: 123.4, Wall: 1234.5, Memory: 12 << 30}} {
		text := string(tables(sampleReport(c)))
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 120 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		for _, w := range allWork {
			if strings.Count(text, fmt.Sprintf("\n%-34s ", w)) != 6 {
				t.Errorf("%s is not told of each platform:\n%s", w, text)
			}
		}
	}
}

func TestBudgets(t *testing.T) {
	for _, c := range []struct {
		cost   cost
		missed []string
	}{
		{cost{CPU: 0.1, Memory: 100 << 20}, nil},
		{cost{CPU: 0.5, Memory: 100 << 20}, []string{"vet of"}},
		{cost{CPU: 2, Memory: 100 << 20}, []string{"one value", "vet of"}},
		{cost{CPU: 100, Memory: 2 << 30}, []string{"commit, CPU", "peak memory", "one value", "into a folder", "two commits", "file of pages", "vet of"}},
	} {
		var out strings.Builder
		printBudgets(&out, sampleReport(c.cost))
		if got := strings.Count(out.String(), "MISSED"); got != len(c.missed) {
			t.Errorf("%+v: %d missed, want %d:\n%s", c.cost, got, len(c.missed), &out)
		}
		for line := range strings.Lines(out.String()) {
			for _, name := range c.missed {
				if strings.Contains(line, name) && !strings.Contains(line, "MISSED") {
					t.Errorf("%+v: %s", c.cost, line)
				}
			}
		}
	}
}

// TestOneColumnMisses has a budget that one kind of platform misses, in memory or on a
// disk.
func TestOneColumnMisses(t *testing.T) {
	for _, column := range []string{"shared", "distinct", "shared, disk", "distinct, disk"} {
		r := sampleReport(cost{CPU: 0.1})
		all := r.Platforms
		kind, onDisk := strings.CutSuffix(column, ", disk")
		if onDisk {
			all = r.OnDisk
		}
		find(all, kind, 100_000).Costs[idleFolder] = cost{CPU: 0.3}
		var out strings.Builder
		printBudgets(&out, r)
		lines := strings.Split(out.String(), "\n")
		at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "MISSED") })
		if at < 0 || strings.Count(out.String(), "MISSED") != 1 {
			t.Fatalf("%s: want one budget missed:\n%s", column, &out)
		}
		if strings.Index(lines[at], " 3 x")+len(" 3 x") != strings.Index(lines[1], column)+len(column) {
			t.Errorf("%s: the value is in another column:\n%s\n%s", column, lines[1], lines[at])
		}
	}
}

// TestNotMeasured has no platform of the sizes of most budgets.
func TestNotMeasured(t *testing.T) {
	r := sampleReport(cost{CPU: 0.1})
	r.Platforms, r.OnDisk = r.Platforms[:1], nil
	var out strings.Builder
	printBudgets(&out, r)
	if strings.Contains(out.String(), missed) || strings.Count(out.String(), held) != 2 || strings.Count(out.String(), " -") < len(budgets) {
		t.Errorf("5,000 shared assignments only:\n%s", &out)
	}
}

func TestGrowthIsPerAssignment(t *testing.T) {
	r := sampleReport(cost{CPU: 1})
	var out strings.Builder
	printPlatform(&out, find(r.Platforms, "shared", 20_000), find(r.Platforms, "shared", 5_000))
	if !strings.Contains(out.String(), " 0.25\n") {
		t.Errorf("four times the assignments in the same time:\n%s", &out)
	}
}

func TestBusyMachineWarns(t *testing.T) {
	for load, want := range map[float64]bool{1.9: false, 2.1: true} {
		var out strings.Builder
		printStart(&out, &report{Processors: 2, Load: load})
		if strings.Contains(out.String(), "WARNING") != want {
			t.Errorf("load %g: %s", load, &out)
		}
	}
}

func TestPageNeedsMarkers(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	for _, text := range []string{"", pageBegin, pageEnd, pageEnd + pageBegin} {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := writePage(page, sampleReport(cost{CPU: 1})); err == nil {
			t.Errorf("%q: no error", text)
		}
		if after, _ := os.ReadFile(page); string(after) != text {
			t.Errorf("%q became %q", text, after)
		}
	}
}

// TestDocumentedTable checks that the table in the documentation is in the place where -doc
// writes it.
func TestDocumentedTable(t *testing.T) {
	text, err := os.ReadFile("../../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(text), pageBegin+"```text\n")
	table, _, ends := strings.Cut(rest, "```\n"+pageEnd)
	if !begins || !ends {
		t.Fatal("docs/performance.md has no markers with a block")
	}
	for _, b := range budgets {
		if !strings.Contains(table, b.work) {
			t.Errorf("the table does not tell the budget %s", b.work)
		}
	}
}
