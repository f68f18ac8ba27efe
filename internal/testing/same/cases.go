package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kalypso-io/kalypso/internal/testing/randplatform"
)

// A testCase is a sequence of commands for both programs.
type testCase struct {
	name string
	do   func(*recorder) error
}

// record lets one program do the case in a folder of its own. It returns all results, line by
// line.
func (c testCase) record(dir, program string) ([]string, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "platform"), 0o777); err != nil {
		return nil, err
	}
	r := &recorder{dir: dir, program: program}
	return r.lines, errors.Join(c.do(r), r.err)
}

// A recorder runs a program, and records the results.
type recorder struct {
	dir, program string
	lines        []string
	err          error
}

func (r *recorder) path(name string) string { return filepath.Join(r.dir, name) }

func (r *recorder) say(text string) {
	r.lines = append(r.lines, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
}

// when is the time of all commits.
const when = "2026-11-20T10:00:00Z"

// kalypso runs the program in the platform's folder.
func (r *recorder) kalypso(args ...string) {
	cmd := exec.Command(r.program, args...)
	cmd.Dir = r.path("platform")
	cmd.Env = append(os.Environ(), "HOME="+r.dir, "KALYPSO_CACHE_DIR="+r.path("cache"), "KALYPSO_GIT_DIR="+r.path("git"),
		"CUE_CACHE_DIR="+r.path("cue"), "CUE_REGISTRY=none", "NO_COLOR=1",
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE="+when, "GIT_COMMITTER_DATE="+when)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		r.err = errors.Join(r.err, err)
		return
	}
	r.say(fmt.Sprintf("$ kalypso %s: exit code %d", strings.Join(args, " "), cmd.ProcessState.ExitCode()))
	r.say(out.String())
	r.say(complaints.String())
}

// folder records all files below a folder.
func (r *recorder) folder(name string) {
	err := fs.WalkDir(os.DirFS(r.dir), name, func(path string, d fs.DirEntry, err error) error {
		// An index has the times of this very folder.
		if errors.Is(err, fs.ErrNotExist) || err == nil && (d.IsDir() || strings.HasSuffix(path, "/.kalypso/index")) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(r.path(path))
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			r.say(fmt.Sprintf("%s %s %x", path, info.Mode(), sha256.Sum256(data)))
		}
		return err
	})
	r.err = errors.Join(r.err, err)
}

// refs records all branches of a repository.
func (r *recorder) refs(name string) {
	out, err := exec.Command("git", "-C", r.path(name), "for-each-ref", "--format=%(refname) "+
		"%(objectname) %(tree) %(contents)").CombinedOutput()
	r.say(string(out))
	r.err = errors.Join(r.err, err)
}

// build builds a platform in all ways.
func (r *recorder) build() {
	r.kalypso("vet", "--diagnostics", "json")
	r.kalypso("build", "--to", "../out", "-o", "json")
	r.folder("out")
	r.kalypso("build", "--to", "../strict", "--strict", "--diagnostics", "sarif")
	r.folder("strict")
	r.kalypso("build", "--git", "../gitops", "--branch", "deploy", "-o", "json", "--tree")
	r.kalypso("build", "--git", "../gitops", "--branch", "deploy")
	r.refs("gitops")
}

// ask queries the contents of a platform.
func (r *recorder) ask() {
	r.kalypso("get", "assignments", "-o", "json")
	r.kalypso("get", "configs", "-o", "json")
	r.kalypso("requirements", "-o", "json")
	r.kalypso("diff", "../out", "../strict", "-o", "json")
}

func (r *recorder) prepare() error {
	return exec.Command("git", "init", "-q", "--bare", r.path("gitops")).Run()
}

// examples are the platforms of examples/.
func examples() ([]testCase, error) {
	dirs, err := os.ReadDir("examples")
	if err != nil {
		return nil, err
	}
	var out []testCase
	for _, d := range dirs {
		out = append(out, testCase{"example/" + d.Name(), func(r *recorder) error {
			from, err := os.OpenRoot(filepath.Join("examples", d.Name()))
			if err != nil {
				return err
			}
			defer from.Close()
			if err := errors.Join(r.prepare(), os.CopyFS(r.path("platform"), from.FS())); err != nil {
				return err
			}
			r.build()
			r.build() // once more, with the cache
			r.ask()
			return nil
		}})
	}
	return out, nil
}

// randomPlatform is one of random content, with random edits: some break it, and folders
// are kept then.
func randomPlatform(seed uint64) testCase {
	const edits = 5
	return testCase{fmt.Sprintf("platform/%d", seed), func(r *recorder) error {
		if err := r.prepare(); err != nil {
			return err
		}
		p, random := randplatform.New(seed), rand.New(rand.NewPCG(seed, 1))
		for n := range edits {
			if n > 0 {
				r.say("edit: " + p.Edit(random))
			}
			if err := p.Write(r.path("platform")); err != nil {
				return err
			}
			r.build()
		}
		r.ask()
		return nil
	}}
}

// flow is a random flow of promotion, as the tests of cmd/kalypso drive it.
func flow(driver string, seed int) testCase {
	return testCase{fmt.Sprintf("flow/%d", seed), func(r *recorder) error {
		cmd := exec.Command(driver, "-test.run", "^TestSlowFlows$")
		cmd.Dir = filepath.Join("cmd", "kalypso")
		cmd.Env = append(os.Environ(), fmt.Sprint("KALYPSO_FLOWS_SEED=", seed),
			"KALYPSO_FLOWS_DIR="+r.dir, "KALYPSO_FLOWS_PROGRAM="+r.program)
		out, err := cmd.CombinedOutput()
		if err != nil {
			r.say(string(out))
		}
		steps, err := os.ReadFile(r.path("steps"))
		r.say(string(steps))
		r.err = errors.Join(r.err, err)
		refs, err := exec.Command("git", "-C", r.path("gitops"), "for-each-ref").CombinedOutput()
		r.say(string(refs))
		return errors.Join(err, r.err)
	}}
}
