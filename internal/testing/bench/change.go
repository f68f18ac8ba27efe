//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// change is a config that gets another value.
type change struct {
	Config      string `json:"config"`
	Assignments int    `json:"assignments"` // that the config matches
	Folders     int    `json:"folders"`     // that the builds changed: these, and no others

	file        string
	before, url []byte // the file's text before the value, and the value
	after       []byte
}

// changes measures builds after one value changed, each after another value, and
// checks that they change the folders that hold it and no others.
func (b *bench) changes() error {
	c, err := b.choose()
	if err != nil {
		return err
	}
	value := 0
	edited := func(build func() *exec.Cmd) func() (*exec.Cmd, error) {
		return func() (*exec.Cmd, error) {
			value++
			return build(), c.write(value)
		}
	}
	if b.out.Costs[valueFolder], err = best(b.runs, edited(b.buildWritten)); err != nil {
		return err
	}
	want, err := b.holders(c.value(value))
	if err != nil {
		return err
	}
	status, err := output(git(b.repository(), "status", "--porcelain", "-z", "--no-renames", "-uall", "--", "out"))
	if err != nil {
		return err
	}
	var paths []string
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(status), "\x00"), "\x00") {
		if len(entry) > 3 {
			paths = append(paths, strings.TrimPrefix(entry[3:], "out/"))
		}
	}
	if err := c.check("folder", foldersOf(paths), want); err != nil {
		return err
	}
	if b.out.Costs[valueCommit], err = best(b.runs, edited(b.buildCommit)); err != nil {
		return err
	}
	names, err := output(git(b.bare(), "diff", "--name-only", "-z", branch+"~1", branch))
	if err != nil {
		return err
	}
	b.out.Change = *c
	return c.check("commit", foldersOf(strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00")), want)
}

// choose chooses the config whose number of assignments is nearest to 100.
func (b *bench) choose() (*change, error) {
	printed, err := output(b.command(b.commitCache(), "-C", b.platform(), "get", "configs", "-o", "json"))
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			Name        string
			Assignments int
			Keys        []string
		}
	}
	if err := json.Unmarshal(printed, &list); err != nil {
		return nil, err
	}
	var chosen *change
	for _, item := range list.Items {
		own := slices.ContainsFunc(item.Keys, func(key string) bool { return strings.HasSuffix(key, "_URL") })
		if own && (chosen == nil || abs(item.Assignments-100) < abs(chosen.Assignments-100)) {
			chosen = &change{Config: item.Name, Assignments: item.Assignments}
		}
	}
	if chosen == nil {
		return nil, errors.New("no config has a value to change")
	}
	return chosen, chosen.find(b.configs())
}

func abs(n int) int { return max(n, -n) }

// find finds the config's URL in the files of the configs. No other config sets
// the same key, so that it is in the output of all assignments.
func (c *change) find(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "configs-*.cue"))
	if err != nil {
		return err
	}
	value := regexp.MustCompile(`(?s)\n\t"` + regexp.QuoteMeta(c.Config) + `": \{\n.*?_URL": "([^"]+)"`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if at := value.FindSubmatchIndex(text); at != nil {
			c.file, c.before, c.url, c.after = file, text[:at[2]], text[at[2]:at[3]], text[at[3]:]
			return nil
		}
	}
	return fmt.Errorf("config %s is in no file", c.Config)
}

// value is the value with a number.
func (c *change) value(n int) string { return fmt.Sprintf("%s/changed-%d", c.url, n) }

// write writes the value with a number.
func (c *change) write(n int) error {
	return os.WriteFile(c.file, slices.Concat(c.before, []byte(c.value(n)), c.after), 0o644)
}

// holders are the assignments' folders in the output that hold a value, sorted.
func (b *bench) holders(value string) ([]string, error) {
	printed, err := output(git(b.folder(), "grep", "-l", "-z", "-F", "-e", value, "--", "."))
	return foldersOf(strings.Split(strings.TrimSuffix(string(printed), "\x00"), "\x00")), err
}

// foldersOf returns the folders of assignments that have files, and the files outside of such
// folders, sorted. It leaves out the records of builds.
func foldersOf(paths []string) []string {
	var out []string
	for _, path := range paths {
		parts := strings.SplitN(path, "/", 4)
		if len(parts) > 1 && parts[1] == ".kalypso" {
			continue
		}
		out = append(out, strings.Join(parts[:min(3, len(parts))], "/"))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// check checks that a build changed the expected folders.
func (c *change) check(written string, got, want []string) error {
	if !slices.Equal(got, want) || len(got) != c.Assignments {
		return fmt.Errorf("another value of config %s, of %d assignments, is in %d folders, and the %s changed in %d",
			c.Config, c.Assignments, len(want), written, len(got))
	}
	c.Folders = len(got)
	return nil
}
