package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests in SECURITY.md exist, and the team of examples/tenants tries the attacks that the
// page lists.
func TestSecurity(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	tried, err := os.ReadFile(filepath.Join(repository, "examples/tenants/teams/mallory/platform/mallory.cue"))
	if err != nil {
		t.Fatal(err)
	}
	functions := testFunctions(t)
	column, rows := "", 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 || strings.HasPrefix(line, "|---") {
			continue
		}
		last, second := strings.TrimSpace(cells[len(cells)-1]), strings.TrimSpace(cells[1])
		if last == "test" || strings.HasPrefix(second, "workload") {
			column = last
			continue
		}
		rows++
		if column != "test" {
			for name := range strings.SplitSeq(second, ", ") {
				if !regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(name) + `(\W|$)`).Match(tried) {
					t.Errorf("nothing of examples/tenants tries %s", name)
				}
			}
			continue
		}
		for _, name := range named.FindAllString(last, -1) {
			scripts, err := filepath.Glob(filepath.Join(repository, "testdata", "s*", strings.Trim(name, "`")+".txtar")) // script, slow
			if err != nil {
				t.Fatal(err)
			}
			if len(scripts) == 0 && !functions[name] {
				t.Errorf("there is no test %s", name)
			}
		}
	}
	if rows < 40 {
		t.Errorf("the page has %d rows", rows)
	}
}

// named matches tests by their functions, and scripts, whose names have a dash.
var named = regexp.MustCompile("\\b(?:Test|Fuzz)\\w+|`[a-z0-9]+-[a-z0-9-]+`")

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// testFunctions returns the names of all tests and fuzz targets.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range testFunction.FindAllSubmatch(data, -1) {
			out[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
