//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// TestMain lets the test binary be the processes that the program starts.
func TestMain(m *testing.M) {
	if os.Getenv(stepVariable) == "" {
		os.Exit(m.Run())
	}
	if err := run(nil, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestSlowMeasures runs all of the program on a small platform of each kind. The program itself
// checks that a changed value changes only its folders, and that CUE composes the same values.
func TestSlowMeasures(t *testing.T) {
	isolated.Slow(t, "it measures a small platform in all ways")
	dir, disk, profiles, page := t.TempDir(), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+pageBegin+"stale\n"+pageEnd+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := run([]string{"-sizes", "200", "-cue", "100", "-files", "400", "-changes", "2,20", "-local", "20", "-environments", "2", "-rows", "2000", "-runs", "1", "-dir", dir, "-disk", disk, "-json", "-doc", page, "-profile", profiles}, &out)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.Platforms {
		got = append(got, fmt.Sprint(m.Assignments, " ", m.Kind))
		for _, w := range allWork {
			if c := m.Costs[w]; c.CPU <= 0 || c.Wall <= 0 || c.Memory <= 0 {
				t.Errorf("%d %s: %s took %+v", m.Assignments, m.Kind, w, c)
			}
		}
		if m.Change.Folders == 0 || m.Change.Folders != m.Change.Assignments || m.Files < 3*m.Assignments {
			t.Errorf("%d %s: %+v, %d files", m.Assignments, m.Kind, m.Change, m.Files)
		}
	}
	if want := "200 shared, 200 distinct"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, kind := range []string{"shared", "distinct"} {
		m := find(r.OnDisk, kind, 200)
		if m == nil {
			t.Fatalf("%s is not measured on a disk", kind)
		}
		for _, b := range budgets {
			if got := b.of(m); !(got > 0) {
				t.Errorf("%s on a disk: %s is %g", kind, b.work, got)
			}
		}
	}
	for _, c := range r.Compositions {
		if c.Kalypso.CPU <= 0 || c.Given.CPU <= 0 || c.Matched.CPU <= 0 {
			t.Errorf("%+v", c)
		}
	}
	if len(r.Compositions) != 2 || r.Vet.CPU <= 0 {
		t.Errorf("%d compositions, vet %+v", len(r.Compositions), r.Vet)
	}
	if a := r.Application; a == nil || a.Helm.CPU <= 0 || a.Idle.CPU <= 0 || a.Cold.CPU <= a.Idle.CPU {
		t.Errorf("an application takes %+v", a)
	}
	if b := r.Bombs; b == nil || b.CPU.CPU < bombCPU.Seconds() || b.CPU.CPU > 2*bombCPU.Seconds() || b.Memory.Memory < bombMemory/2 || b.Memory.Memory > bombMemory/4*5 {
		t.Errorf("what is beyond bounds takes %+v", b)
	}
	testPromotions(t, r.Promotions, r.Fleet)
	if l := r.Local; l == nil || l.Files < 400 || l.Changed < 10 || l.One.CPU <= 0 || l.Chain != 2 || l.All == nil || l.All.CPU <= 0 {
		t.Errorf("local: %+v", l)
	}
	for _, i := range r.Inventories {
		if want := map[valueKind]int{noValues: 2, ownValues: 2}[i.Kind]; len(i.Diffs) != want {
			t.Errorf("%d rows %s: %d diffs are measured, want %d", i.Rows, i.Kind, len(i.Diffs), want)
		}
		for _, m := range i.Diffs {
			if m.Record.CPU <= 0 || m.Cache.CPU <= 0 {
				t.Errorf("%d rows %s: %+v", i.Rows, i.Kind, m)
			}
		}
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(text), "before\n"+pageBegin+"```text\n") ||
		!strings.HasSuffix(string(text), "```\n"+pageEnd+"after\n") || strings.Contains(string(text), "stale") {
		t.Errorf("%v, the page is\n%s", err, text)
	}
	if found, _ := filepath.Glob(filepath.Join(profiles, "distinct-200-*.cpu")); len(found) != 3 {
		t.Errorf("profiles: %s", found)
	}
	for _, dir := range []string{dir, disk} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// testPromotions checks that all promotions were measured, and changed about as many files as
// they should.
func testPromotions(t *testing.T, p *promotions, f *fleet) {
	t.Helper()
	if p == nil || f == nil || len(p.Steps) != 2 || p.Steps[0].Cold == nil {
		t.Fatalf("promotions %+v, fleet %+v", p, f)
	}
	all := []carried{p.First, *p.Steps[0].Cold, f.Cold, f.Warm, f.LsRemote}
	for _, m := range p.Steps {
		all = append(all, m.Warm, m.Fetched, m.Git)
		if m.Files < m.Wanted/2 || m.Files > m.Wanted+m.Wanted/2 {
			t.Errorf("%d files changed, and %d should", m.Files, m.Wanted)
		}
	}
	for _, c := range all {
		if c.CPU <= 0 || c.Wall <= 0 || c.Requests == 0 || c.bytes() == 0 {
			t.Errorf("a command took %+v", c)
		}
	}
	if f.Environments != 2 || f.Repositories != 2 || p.Files < 400 {
		t.Errorf("%+v, %+v", p, f)
	}
}

func TestDiskFolder(t *testing.T) {
	for _, test := range []struct {
		work  string
		sizes []int
		any   bool
	}{{memoryFolder, nil, true}, {memoryFolder + "/x", []int{100}, true}, {memoryFolder, []int{100, 1 << 40}, false}, {memoryFolder + "x", nil, false}, {"/", nil, false}} {
		if got := diskFolder(test.work, test.sizes); (got != "") != test.any {
			t.Errorf("%s, %d: %q", test.work, test.sizes, got)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"-changes", ""}, {"-files", "-1"}, {"-environments", "-1"}, {"-sizes", "1000,few"}, {"-sizes", "10"}, {"-sizes", "200,100"}, {"-cue", "few"}, {"-runs", "0"},
		{"-dir", "/does/not/exist"}, {"-dir", t.TempDir(), "-disk", "/does/not/exist"}, {"-unknown"},
	} {
		if err := run(args, new(strings.Builder)); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
