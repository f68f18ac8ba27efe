//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// work is something that is measured on a platform.
type work string

const (
	coldCommit  work = "cold build, git commit"
	idleCommit  work = "nothing changed, git commit"
	valueCommit work = "one value changed, git commit"
	coldFolder  work = "cold build, folder"
	coldWritten work = "cold build, folder that is written"
	warmFolder  work = "warm cache, empty folder"
	idleFolder  work = "nothing changed, folder"
	valueFolder work = "one value changed, folder"
	gitStatus   work = "git status of input and output"
	copyFolder  work = "cp -r of the folder"

	compareCommits work = "compare of two commits"
	viewFile       work = "one file of pages, warm cache"
)

// allWork is in the order of printing.
var allWork = []work{coldCommit, idleCommit, valueCommit, coldFolder, coldWritten, warmFolder,
	idleFolder, valueFolder, gitStatus, copyFolder, compareCommits, viewFile}

// measured is the result of the measurements on one platform.
type measured struct {
	Kind        string        `json:"kind"`
	Assignments int           `json:"assignments"`
	Files       int           `json:"files"` // of the output
	Change      change        `json:"change"`
	Costs       map[work]cost `json:"costs"`
	Page        float64       `json:"page"` // seconds until the page of an assignment is there
}

// bench is a platform that is measured.
type bench struct {
	*kalypso
	job
	runs int
	out  *measured
}

func (b *bench) repository() string  { return filepath.Join(b.Dir, "repository") }
func (b *bench) folder() string      { return filepath.Join(b.repository(), "out") }
func (b *bench) bare() string        { return filepath.Join(b.Dir, "bare.git") }
func (b *bench) commitCache() string { return filepath.Join(b.Dir, "cache-commit") }
func (b *bench) folderCache() string { return filepath.Join(b.Dir, "cache-folder") }

// branch is the branch of the bare repository that gets the output.
const branch = "deploy"

// measurePlatform generates a platform and measures all work on it. If files are in memory, it
// removes files that it no longer needs. On a disk all files stay until the end, because after
// removing files a disk is slow to create others (see workFolder).
func measurePlatform(k *kalypso, j job, o options) (*measured, error) {
	b := newBench(k, j, o.runs)
	if err := b.measure(b.commits, b.folders, b.copies, b.idle, b.changes, b.views); err != nil {
		return nil, err
	}
	if o.profiles != "" {
		j.Profile, j.Config = filepath.Join(o.profiles, b.out.Kind), b.out.Change.Config
		if err := runStepOf("profile", j); err != nil {
			return nil, err
		}
	}
	return b.out, b.remove(b.Dir)
}

// measureOnDisk generates a platform and measures the work that has budgets.
func measureOnDisk(k *kalypso, j job, o options) (*measured, error) {
	b := newBench(k, j, o.runs)
	return b.out, b.measure(b.commits, b.folders, b.idle, b.changes)
}

func newBench(k *kalypso, j job, runs int) *bench {
	return &bench{kalypso: k, job: j, runs: runs,
		out: &measured{Kind: kindOf(j.Distinct), Assignments: j.Assignments, Costs: map[work]cost{}}}
}

// measure generates the platform and measures parts of the work on it, in order.
func (b *bench) measure(parts ...func() error) error {
	if err := runStepOf("generate", b.job); err != nil {
		return err
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) remove(dir string) error { return removeFrom(b.Dir, dir) }

// removeFrom removes a folder if the folder of all files is in memory.
func removeFrom(all, dir string) error {
	if !inMemory(all) {
		return nil
	}
	return os.RemoveAll(dir)
}

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// once measures work that is dear, or that another run would find done.
func (b *bench) once(w work, cmd *exec.Cmd) (printed []byte, err error) {
	b.out.Costs[w], printed, err = costOf(cmd)
	return printed, err
}

// often measures work that costs little and can be repeated.
func (b *bench) often(w work, command func() *exec.Cmd) (err error) {
	b.out.Costs[w], err = best(b.runs, func() (*exec.Cmd, error) { return command(), nil })
	return err
}

func (b *bench) buildCommit() *exec.Cmd {
	return b.command(b.commitCache(), "-C", b.platform(), "build", "-o", "json", "--git", b.bare(), "--branch", branch)
}

func (b *bench) buildFolder(cache, folder string) *exec.Cmd {
	return b.command(cache, "-C", b.platform(), "build", "-o", "json", "--to", folder)
}

// buildWritten builds into the folder that the first build of a folder wrote.
func (b *bench) buildWritten() *exec.Cmd { return b.buildFolder(b.folderCache(), b.folder()) }

// commits measures builds into a bare repository.
func (b *bench) commits() error {
	if _, err := output(git(b.Dir, "init", "-q", "--bare", b.bare())); err != nil {
		return err
	}
	printed, err := b.once(coldCommit, b.buildCommit())
	if err != nil {
		return err
	}
	var built struct {
		Item struct {
			Environments []struct{ Assignments, FilesWritten int }
		}
	}
	if err := json.Unmarshal(printed, &built); err != nil {
		return err
	}
	b.out.Assignments, b.out.Files = 0, 0
	for _, e := range built.Item.Environments {
		b.out.Assignments += e.Assignments
		b.out.Files += e.FilesWritten
	}
	return b.often(idleCommit, b.buildCommit)
}

// folders measures a cold build into an empty folder.
func (b *bench) folders() error {
	_, err := b.once(coldFolder, b.buildFolder(b.folderCache(), b.folder()))
	return err
}

// copies measures a cold build into the same folder, and other ways to fill a folder.
func (b *bench) copies() error {
	again := filepath.Join(b.Dir, "cache-again")
	if _, err := b.once(coldWritten, b.buildFolder(again, b.folder())); err != nil {
		return err
	}
	second, copied := filepath.Join(b.Dir, "second"), filepath.Join(b.Dir, "copied")
	if _, err := b.once(warmFolder, b.buildFolder(again, second)); err != nil {
		return err
	}
	if err := errors.Join(b.remove(second), b.remove(again)); err != nil {
		return err
	}
	if _, err := b.once(copyFolder, exec.Command("cp", "-r", b.folder(), copied)); err != nil {
		return err
	}
	return b.remove(copied)
}

// idle measures builds of an unchanged folder, and git's own check of the same files, all of
// which are committed.
func (b *bench) idle() error {
	for _, args := range [][]string{
		{"init", "-q"},
		{"config", "gc.auto", "0"},
		{"config", "core.looseCompression", "0"},
		{"add", "-A"},
		{"commit", "-q", "-m", "The platform and its output"},
		{"status", "--porcelain"}, // checks files as young as the index once more
	} {
		if _, err := output(git(b.repository(), args...)); err != nil {
			return err
		}
	}
	if err := b.often(gitStatus, func() *exec.Cmd { return git(b.repository(), "status", "--porcelain") }); err != nil {
		return err
	}
	return b.often(idleFolder, b.buildWritten)
}

// measureVet measures vet of the sample platform, with a cache that is empty.
func measureVet(k *kalypso, dir string, runs int) (cost, error) {
	return best(runs, func() (*exec.Cmd, error) {
		cache, err := os.MkdirTemp(dir, "vet-")
		return k.command(cache, "-C", k.sample, "vet"), err
	})
}
