//go:build unix

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// TestSlowFlows drives the program over real repositories: random platforms, and random people,
// clusters and runners. After each step a checker, which knows nothing of the product, looks at
// the repositories with git. KALYPSO_FLOWS=10m makes the test run for that long, and
// KALYPSO_FLOWS_SEED=N repeats one flow.
//
// Flows of seeds below calm have one runner at a time, which nobody kills, so they take the same
// steps every time. With KALYPSO_FLOWS_DIR they run in that folder, and write their steps to the
// file steps. KALYPSO_FLOWS_PROGRAM is the path of a program to test instead of the tests'
// kalypso.
func TestSlowFlows(t *testing.T) {
	span, seed := time.Minute, uint64(1)
	switch long, one := os.Getenv("KALYPSO_FLOWS"), os.Getenv("KALYPSO_FLOWS_SEED"); {
	case one != "":
		n, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		span, seed = 0, n
	case long != "":
		d, err := time.ParseDuration(long)
		if err != nil {
			t.Fatal(err)
		}
		span, seed = d, uint64(time.Now().Unix())*1000
	default:
		isolated.Slow(t, "it takes a minute")
	}
	for end := time.Now().Add(span); ; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newFlow(t, seed).run() })
		if t.Failed() || !time.Now().Before(end) {
			return
		}
	}
}

const calm = 1_000_000

// flow is a platform in a folder, with the events in its life.
type flow struct {
	t            *testing.T
	seed         uint64
	dir          string
	shared       bool // all runners have one store
	environments []*flowEnvironment
	platform     string // the text of platform.cue
	now          time.Time

	state   flowState
	states  map[string]flowState // by commit
	commits []string             // the first parents of main, oldest first
	reports []flowReport
	steps   []string
	person  flowOrder // a person's order in this step
	checker *flowChecker
}

// flowReport is a cluster's report of an assignment.
type flowReport struct {
	commit, assignment, cluster, state string
	at                                 time.Time
}

// flowOrder is the order of a person, and the environment and ring that it is about.
type flowOrder struct {
	kind, environment, ring string
}

// flowKinds are the kinds of steps, as often as they are in the text.
var flowKinds = strings.Fields("run run run run run run day day day day day day day day time time reports reports reports reports " +
	"release release release west note own own conflict mend mend mend typo owntypo north revertbase merge merge foxtrot empty " +
	"hand hand order order order order")

func newFlow(t *testing.T, seed uint64) *flow {
	r := rand.New(rand.NewPCG(seed, 1))
	f := &flow{
		t: t, seed: seed, dir: cmp.Or(os.Getenv("KALYPSO_FLOWS_DIR"), t.TempDir()), shared: r.IntN(2) == 0, environments: randomEnvironments(r),
		now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), states: map[string]flowState{},
	}
	f.state.own = map[string]flowOwn{}
	for _, name := range []string{"platform", "gitops", "scratch"} {
		f.git(".", "init", "-q", "--bare", name)
	}
	f.git(".", "clone", "-q", "file://"+filepath.Join(f.dir, "gitops"), "hand")
	f.git(".", "init", "-q", "p")
	f.git("p", "remote", "add", "origin", "file://"+filepath.Join(f.dir, "platform"))
	if err := os.CopyFS(filepath.Join(f.dir, "p/cue.mod"), os.DirFS(filepath.Join(repository, "testdata/fleet/cue.mod"))); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(repository, "testdata/fleet/platform.cue"))
	if err != nil {
		t.Fatal(err)
	}
	f.platform = strings.ReplaceAll(string(data), "${GITOPS}", "file://"+filepath.Join(f.dir, "gitops"))
	f.write("reports/none.txt", "")
	f.checker = newFlowChecker(f)
	return f
}

// run takes the steps that the seed gives, and then brings everything to an end.
func (f *flow) run() {
	defer func() {
		if f.t.Failed() {
			f.t.Logf("KALYPSO_FLOWS_SEED=%d goes this way:\n%s", f.seed, strings.Join(f.steps, "\n"))
		}
	}()
	for _, e := range f.environments {
		f.say("%s", strings.ReplaceAll(strings.TrimSpace(e.policy()), "\n\t", " "))
	}
	f.commit("first")
	r := rand.New(rand.NewPCG(f.seed, 2))
	for n := range 40 {
		kind, choices := flowKinds[r.IntN(len(flowKinds))], rand.New(rand.NewPCG(f.seed, uint64(100+n)))
		f.now = f.now.Add(time.Second)
		f.person = flowOrder{}
		if f.step(kind, choices); kind == "run" || kind == "day" || kind == "order" || kind == "hand" {
			f.checker.look()
		}
		if f.t.Failed() {
			return
		}
	}
	f.settle(r)
	if os.Getenv("KALYPSO_FLOWS_DIR") != "" {
		f.write("steps", strings.Join(f.steps, "\n"))
	}
	f.t.Logf("%d commits have come to %d environments, with %d successes", f.checker.landed, len(f.environments), f.checker.successes)
}

// step does one thing.
func (f *flow) step(kind string, r *rand.Rand) {
	s := f.state.clone()
	e := f.environments[r.IntN(len(f.environments))]
	own := s.own[e.name]
	switch kind {
	case "run":
		f.promoteAtOnce(r)
		return
	case "time":
		f.now = f.now.Add(time.Duration(1+r.IntN(8)) * 15 * time.Minute)
		f.say("time %s", f.now.Format(time.DateTime))
		return
	case "reports":
		for _, stop := range e.stops() {
			f.report(stop, r, r.IntN(3) > 0)
		}
		return
	case "day": // on which all goes well
		f.now = f.now.Add(time.Duration(1+r.IntN(6)) * 30 * time.Minute)
		for _, e := range f.environments {
			for _, stop := range e.stops() {
				f.report(stop, r, true)
			}
		}
		f.promoteAtOnce(r)
		return
	case "hand":
		f.hand(e, r)
		return
	case "order":
		f.order(e, r)
		return
	case "merge", "foxtrot":
		f.merge(r, kind == "foxtrot")
		return
	case "revertbase":
		if len(f.commits) > 1 {
			f.state = f.states[f.commits[len(f.commits)-2]]
			f.commit("revert")
		}
		return
	case "empty":
		s.empty = !s.empty
	case "release":
		s.release++
	case "west":
		s.west++
	case "note":
		s.note++
	case "own":
		own.level++
	case "north":
		own.north = !own.north
	case "conflict":
		if s.conflict = r.IntN(2) == 0; !s.conflict {
			own.conflict = true
		}
	case "mend":
		s = s.mended()
		own.typo, own.conflict = false, false
	case "typo":
		s.typo = r.IntN(2) == 0
		s.stray = !s.typo
	case "owntypo":
		own.typo = true
	}
	s.own[e.name] = own
	f.state = s
	f.commit(kind + " " + e.name)
}

// commit commits the platform's state on top of parents, or of main, and pushes it.
func (f *flow) commit(subject string, parents ...string) {
	if len(parents) == 0 && len(f.commits) > 0 {
		parents = f.commits[len(f.commits)-1:]
	}
	id := f.committed(subject, f.state, parents)
	f.git("p", "push", "-q", "origin", id+":refs/heads/main")
	f.git("p", "update-ref", "refs/heads/main", id)
	f.commits = strings.Fields(f.git("p", "rev-list", "--first-parent", "--reverse", id))
	f.say("commit %s %s", id[:12], subject)
}

// committed makes a commit, which no branch has yet.
func (f *flow) committed(subject string, state flowState, parents []string) string {
	f.git("p", "rm", "-r", "-q", "-f", "--ignore-unmatch", "--", "*.cue", ":!cue.mod")
	for path, text := range state.files(f.platform, f.environments) {
		f.write("p/"+path, text)
	}
	f.git("p", "add", "--all")
	args := []string{"commit-tree", "-m", subject}
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	id := f.git("p", append(args, f.git("p", "write-tree"))...)
	f.states[id] = state
	return id
}

// merge merges a side branch that began up to three commits ago. The first parent is
// main or, with foxtrot, the side branch.
func (f *flow) merge(r *rand.Rand, foxtrot bool) {
	head := f.commits[len(f.commits)-1]
	from := f.commits[max(0, len(f.commits)-1-r.IntN(4))]
	side := f.states[from].clone()
	f.state = f.state.clone()
	f.state.side++
	side.side = f.state.side
	parents := []string{head, f.committed("side", side, []string{from})}
	if foxtrot {
		slices.Reverse(parents)
	}
	f.commit(fmt.Sprintf("merge, foxtrot %v", foxtrot), parents...)
}

// report writes the clusters' reports about the contents of a branch: healthy, or random states.
func (f *flow) report(stop flowStop, r *rand.Rand, healthy bool) {
	e := stop.of
	commit, err := f.tryGit("gitops", "rev-parse", "-q", "--verify", "refs/heads/"+e.name)
	if err != nil {
		return
	}
	var said []string
	for _, clusterType := range []string{"east", "west", "lab", "north"} {
		if !stop.covers(clusterType) {
			continue
		}
		for _, cluster := range e.clustersOf(clusterType) {
			state := "healthy"
			if !healthy {
				state = []string{"healthy", "progressing", "failed", ""}[r.IntN(4)]
			}
			at := f.now
			if r.IntN(4) == 0 {
				at = at.Add(time.Hour)
			}
			if state == "" {
				continue
			}
			said = append(said, clusterType+" "+cluster+" "+state)
			report := flowReport{commit, e.name + "/" + clusterType + "/shop-" + e.name, cluster, state, at}
			f.reports = append(f.reports, report)
			file := map[string]any{
				"apiVersion": apiVersion, "kind": "RolloutReport", "commit": commit,
				"reports": []map[string]any{{"assignment": report.assignment, "state": state, "at": at.Format(time.RFC3339)}},
			}
			if cluster != "" {
				file["cluster"] = cluster
			}
			data, err := json.Marshal(file)
			if err != nil {
				f.t.Fatal(err)
			}
			f.write(fmt.Sprintf("reports/%04d.json", len(f.reports)), string(data))
		}
	}
	f.say("reports of %s at %s: %s", stop.id(), commit[:12], strings.Join(said, ", "))
}

// promoteAtOnce runs one to three runners that promote everything, and kills some of them.
func (f *flow) promoteAtOnce(r *rand.Rand) {
	n := []int{1, 1, 2, 3}[r.IntN(4)]
	if f.seed < calm {
		n = 1
	}
	var group sync.WaitGroup
	said := make([]string, n)
	codes := make([]int, n)
	for i := range n {
		after := time.Duration(0)
		if r.IntN(4) == 0 && f.seed >= calm {
			after = time.Duration(1+r.IntN(400)) * time.Millisecond
		}
		group.Go(func() { codes[i], said[i] = f.kalypso(i, after, "promote", "--all", "--report", "../reports") })
	}
	group.Wait()
	f.say("run: exit codes %d", codes)
	for i, code := range codes {
		f.say("%s", strings.TrimSpace(said[i]))
		f.checker.exit(code, said[i])
	}
}

// kalypso runs the program in the folder of the platform, as one of several runners, and kills it
// after a while. The code of a killed process is -1.
func (f *flow) kalypso(runner int, after time.Duration, args ...string) (code int, said string) {
	cmd := exec.Command(cmp.Or(os.Getenv("KALYPSO_FLOWS_PROGRAM"), "kalypso"), args...)
	cmd.Dir = filepath.Join(f.dir, "p")
	store := "store"
	if !f.shared {
		store += strconv.Itoa(runner)
	}
	cmd.Env = append(f.environ(),
		"KALYPSO_NOW="+f.now.Format(time.RFC3339), "KALYPSO_GIT_DIR="+filepath.Join(f.dir, store),
		"KALYPSO_CACHE_DIR="+filepath.Join(f.dir, "cache"), "CUE_REGISTRY=none", "NO_COLOR=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // git writes for it, and is killed with it
	if err := cmd.Start(); err != nil {
		f.t.Error(err)
		return -1, ""
	}
	if after > 0 {
		time.AfterFunc(after, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		f.t.Error(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func (f *flow) environ() []string {
	date := f.now.Format(time.RFC3339)
	return append(os.Environ(), "HOME="+f.dir, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE="+date)
}

// git runs git. It fails the test if git fails.
func (f *flow) git(dir string, args ...string) string {
	f.t.Helper()
	out, err := f.tryGit(dir, args...)
	if err != nil {
		f.t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (f *flow) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = filepath.Join(f.dir, dir), f.environ()
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

func (f *flow) write(path, text string) {
	name := filepath.Join(f.dir, path)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		f.t.Fatal(err)
	}
}

func (f *flow) say(format string, args ...any) {
	f.steps = append(f.steps, fmt.Sprintf("%3d  ", len(f.steps)+1)+fmt.Sprintf(format, args...))
}
