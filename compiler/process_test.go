//go:build unix

package compiler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
	"github.com/kalypso-io/kalypso/internal/testing/randplatform"
)

// childEnv is set to the childBuild that the test binary should run instead of the tests.
const childEnv = "KALYPSO_TEST_BUILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := runChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	isolated.Environment()
	// The vendor folder of a platform has everything that the platform needs.
	if err := os.Setenv(dependency.EnvDir, os.DevNull); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// childBuild is a build in its own process.
type childBuild struct {
	Platform, Cache string
	Dir, Git        string // the output, one of them
	Kill            *kill  // nil to let the build finish
}

// kill determines when a process kills itself, like kill -9.
type kill struct {
	Progress int // the number of the progress report, from 1; 0 for the start of the build
	// Journal is a pattern of files to use instead of Progress. The first match shows that the
	// build has started to change its output.
	Journal string
	After   time.Duration // the delay after that
}

func runChild(text string) error {
	var b childBuild
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return err
	}
	r := compiler.Request{Dir: b.Platform, AllowRemovals: true}
	if b.Kill != nil {
		r.Progress = b.Kill.start()
		if b.Kill.Journal != "" {
			go b.Kill.watch()
		}
	}
	c, err := cache.Open(cache.Options{Dir: b.Cache})
	if err != nil {
		return err
	}
	r.Cache = c
	to := compiler.Output{Dir: b.Dir}
	if b.Git != "" {
		to = compiler.Anywhere(compiler.Output{Git: b.Git, Branch: "out"})
	}
	_, _, err = compiler.Write(context.Background(), r, to)
	return errors.Join(err, c.Close())
}

func killSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// start returns a function that gets the progress reports of the build.
func (k *kill) start() func(engine.Progress) {
	if k.Progress == 0 && k.Journal == "" {
		time.AfterFunc(k.After, killSelf)
	}
	var reports atomic.Int64
	return func(engine.Progress) {
		if int(reports.Add(1)) == k.Progress {
			killSelf()
		}
	}
}

// watch kills the process as soon as there is a journal.
func (k *kill) watch() {
	for {
		if found, _ := filepath.Glob(k.Journal); len(found) > 0 {
			for begun := time.Now(); time.Since(begun) < k.After; {
			}
			killSelf()
		}
	}
}

// randomKill returns a kill at a random moment of a small build into a folder. Most of these
// moments are while the build writes.
func randomKill(r *rand.Rand, dir string) *kill {
	switch r.IntN(5) {
	case 0:
		return &kill{After: time.Duration(r.IntN(200_000)) * time.Microsecond}
	case 1:
		return &kill{Progress: 1 + r.IntN(6)}
	}
	return &kill{Journal: filepath.Join(dir, "*", ".kalypso", "journal.json"), After: time.Duration(r.IntN(600)) * time.Microsecond}
}

// run runs the build, and reports whether it was killed. An error has the build's printed text.
func (b childBuild) run() (killed bool, err error) {
	text, err := json.Marshal(b)
	if err != nil {
		return false, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal() == syscall.SIGKILL && b.Kill != nil, nil
		}
		return false, errors.New(string(bytes.TrimSpace(said)))
	}
	return false, err
}

// TestManyProcesses runs several processes at the same time after every edit. They build one
// platform into one output with one cache. Their output must be the output of a single build.
func TestManyProcesses(t *testing.T) { manyProcesses(t) }

func TestSlowManyProcesses(t *testing.T) {
	isolated.Slow(t, "it has more processes build at once")
	manyProcesses(t)
}

func manyProcesses(t *testing.T) {
	for seed := range uint64(howMany(t, 1, 3, 20)) {
		for _, inGit := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d git=%t", seed, inGit), func(t *testing.T) {
				p, r := randplatform.New(2000+seed), rand.New(rand.NewPCG(seed, 5))
				root := t.TempDir()
				b := childBuild{Platform: filepath.Join(root, "platform"), Cache: filepath.Join(root, "cache")}
				b.to(t, root, inGit)
				var before map[string]string
				var did []string
				for range howMany(t, 2, 3, 8) {
					if err := p.Write(b.Platform); err != nil {
						t.Fatal(err)
					}
					many(t, b, 3)
					want := cold(t, root, b.Platform, before)
					if d := b.again(t, want); d != "" {
						t.Fatalf("seed %d: %s\n%s", seed, d, strings.Join(did, "\n"))
					}
					before = want.files
					did = append(did, p.Edit(r))
				}
			})
		}
	}
}

// to sets the output of the build: a folder, or a new repository.
func (b *childBuild) to(t *testing.T, root string, inGit bool) {
	t.Helper()
	if !inGit {
		b.Dir = filepath.Join(root, "out")
		return
	}
	b.Git = filepath.Join(root, "repository")
	git(t, root, "init", "--quiet", "--bare", b.Git)
}

// many runs n processes at once. All but one may report that another process was there.
func many(t *testing.T, b childBuild, n int) {
	t.Helper()
	var group sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		group.Go(func() { _, errs[i] = b.run() })
	}
	group.Wait()
	done := 0
	for _, err := range errs {
		switch {
		case err == nil:
			done++
		case b.Git == "" && strings.Contains(err.Error(), "another kalypso works on this folder"):
		case b.Git != "" && strings.Contains(err.Error(), tree.ErrLostRace.Error()):
		default:
			t.Error(err)
		}
	}
	if done == 0 {
		t.Errorf("none of %d processes builds: %v", n, errs)
	}
}

// again builds again, and describes the first difference from want. It returns "" if they match.
func (b childBuild) again(t *testing.T, want outcome) string {
	c := openCache(t, cache.Options{Dir: b.Cache})
	defer closeCache(t, c)
	r := compiler.Request{Dir: b.Platform, Cache: c, AllowRemovals: true}
	if b.Git == "" {
		return differs(compileTo(t, r, b.Dir).files, want.files)
	}
	got := write(t, r, compiler.Anywhere(compiler.Output{Git: b.Git, Branch: "out"}))
	if lock := filepath.Join(b.Git, "refs", "heads", "out.lock"); strings.Contains(got.said["error"], "remove the file") {
		// As with git itself, the lock of a process that was killed stays.
		if err := os.Remove(lock); err != nil {
			return err.Error()
		}
		got = write(t, r, compiler.Anywhere(compiler.Output{Git: b.Git, Branch: "out"}))
	}
	if got.said["error"] != "" {
		return got.said["error"]
	}
	if said := git(t, b.Git, "fsck", "--full", "--strict", "--no-progress", "--no-dangling"); said != "" {
		return said
	}
	if len(want.files) == 0 {
		return ""
	}
	return differs(listed(git(t, b.Git, "ls-tree", "-r", "-z", "out")), entries(want.files))
}

// TestKilledBuilds kills builds. The next build finishes the output of the killed one. Its result
// must equal the result without the kill. It must also equal the result of a build without a
// cache in the same folder.
func TestKilledBuilds(t *testing.T) { killedBuilds(t) }

func TestSlowKilledBuilds(t *testing.T) {
	isolated.Slow(t, "it kills more builds")
	killedBuilds(t)
}

func killedBuilds(t *testing.T) {
	seeds, kills := howMany(t, 2, 5, 60), atomic.Int64{}
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				kills.Add(int64(killEach(t, seed)))
			})
		}
	})
	if kills.Load() == 0 {
		t.Error("no build was killed")
	}
}

// killEach runs a build to be killed after every edit, and returns the number of killed builds.
func killEach(t *testing.T, seed uint64) (kills int) {
	p, r := randplatform.New(3000+seed), rand.New(rand.NewPCG(seed, 6))
	root := t.TempDir()
	b := childBuild{Platform: filepath.Join(root, "platform"), Cache: filepath.Join(root, "cache")}
	b.to(t, root, seed%3 == 2)
	did := []string{fmt.Sprintf("seed %d", 3000+seed)}
	var before map[string]string
	for range howMany(t, 4, 8, 20) {
		if err := p.Write(b.Platform); err != nil {
			t.Fatal(err)
		}
		want := cold(t, root, b.Platform, before)
		b.Kill = randomKill(r, b.Dir+b.Git)
		did = append(did, fmt.Sprintf("build, to be killed at %+v", *b.Kill))
		killed, err := b.run()
		if err != nil {
			t.Fatal(err)
		}
		if killed {
			kills++
		}
		if b.Git == "" && r.IntN(3) == 0 {
			did = append(did, p.Edit(r)) // so that the next build has other files than this one
			if err := p.Write(b.Platform); err != nil {
				t.Fatal(err)
			}
			want = outcome{}
		}
		d := ""
		if b.Git == "" {
			before, d = b.finish(t, root, want)
		} else {
			before, d = want.files, b.again(t, want)
		}
		if d != "" {
			t.Fatalf("%s\n%s", d, strings.Join(did, "\n"))
		}
		did = append(did, p.Edit(r))
	}
	return kills
}

// finish builds over the output of a killed build, and describes the first mistake. want, if any,
// is the outcome without the kill.
func (b childBuild) finish(t *testing.T, root string, want outcome) (files map[string]string, broken string) {
	left := without(everything(t, b.Dir), func(p string) bool {
		return strings.HasSuffix(p, ".kalypso/index") || strings.HasSuffix(p, ".kalypso/lock")
	})
	fromLeft := cold(t, root, b.Platform, left)
	c := openCache(t, cache.Options{Dir: b.Cache})
	defer closeCache(t, c)
	got := compileTo(t, compiler.Request{Dir: b.Platform, Cache: c}, b.Dir)
	if d := same(got, fromLeft); d != "" {
		return nil, "what a cold build makes of what was left: " + d
	}
	if want.said != nil {
		if d := differs(got.files, want.files); d != "" {
			return nil, "without the kill: " + d
		}
	}
	return got.files, ""
}

// everything reads a folder, including kalypso's own files.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(at)
		rel, _ := filepath.Rel(dir, at)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
