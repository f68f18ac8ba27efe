//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// promotions are the cost of promoting commits into one branch.
type promotions struct {
	Files int      `json:"files"` // of the branch
	First carried  `json:"first"` // into an empty repository, without caches
	Steps []*moved `json:"steps"`
}

// moved is the cost of a commit that changed some files of the branch.
type moved struct {
	Wanted  int      `json:"wanted"` // number of files that should change
	Files   int      `json:"files"`  // how many did, without records
	Warm    carried  `json:"warm"`   // with the caches of earlier runs
	Fetched carried  `json:"fetched"`
	Cold    *carried `json:"cold,omitempty"` // of the first of them
	Git     carried  `json:"git"`
}

// carried is the cost of a command that communicates with servers.
type carried struct {
	cost
	wire
}

// add adds the cost of another command that runs afterwards.
func (c *carried) add(next carried) {
	c.CPU += next.CPU
	c.System += next.System
	c.Wall += next.Wall
	c.Memory, c.Own = max(c.Memory, next.Memory), max(c.Own, next.Own)
	c.Requests += next.Requests
	c.Sent += next.Sent
	c.Received += next.Received
}

// promotion is a platform whose commits are promoted.
type promotion struct {
	*kalypso
	job
	runs             int
	server           *server
	platform, gitops *served
	out              *promotions
	value            int // that was written last
}

// filesEach is the number of files of a generated platform for each assignment, except a few
// files of cluster types.
const filesEach = 4

// environment is the one that generated platforms have, and its branch.
const environment = "dev"

// measurePromotions promotes commits of a generated platform that change so many files of a
// branch. It also makes the same changes of the branch with git.
func measurePromotions(k *kalypso, j job, o options) (out *promotions, err error) {
	j.Assignments = o.files / filesEach
	p := &promotion{kalypso: k, job: j, runs: o.runs, out: &promotions{}}
	if err := runStepOf("generate", j); err != nil {
		return nil, err
	}
	if p.server, err = serve(filepath.Join(j.Dir, "server")); err != nil {
		return nil, err
	}
	defer p.server.close() //nolint:errcheck // nobody asks it any more
	if p.platform, err = p.server.repository("platform.git"); err != nil {
		return nil, err
	}
	if p.gitops, err = p.server.repository("gitops.git"); err != nil {
		return nil, err
	}
	if err := p.first(o.changes); err != nil {
		return nil, err
	}
	for _, n := range o.changes {
		m, err := p.measure(n)
		if err != nil {
			return nil, fmt.Errorf("%d files: %w", n, err)
		}
		p.out.Steps = append(p.out.Steps, m)
	}
	return p.out, removeFrom(j.Dir, j.Dir)
}

// sources are the platform's own files.
func (p *promotion) sources() string { return p.job.platform() }

func (p *promotion) cache() string { return filepath.Join(p.Dir, "cache") }

// first commits the platform, with the configs that change, and promotes it.
func (p *promotion) first(changes []int) error {
	if err := writeEnvironments(p.sources(), declared{name: environment, repository: p.gitops.url}); err != nil {
		return err
	}
	listed, err := output(p.command(p.cache(), "-C", p.sources(), "get", "assignments", "-o", "json"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.list(), listed, 0o644); err != nil {
		return err
	}
	p.Changes = changes
	if err := runStepOf("changing", p.job); err != nil {
		return err
	}
	if err := commitAll(p.sources(), "The platform", p.platform.url); err != nil {
		return err
	}
	p.server.counted()
	if p.out.First, err = p.promote(filepath.Join(p.Dir, "nothing")); err != nil {
		return err
	}
	if _, err := p.promote(p.cache()); err != nil { // it changes nothing, and fills the caches
		return err
	}
	files, err := output(git(p.gitops.dir, "ls-tree", "-r", "--name-only", environment))
	p.out.Files = bytes.Count(files, []byte("\n"))
	return err
}

// promote promotes the platform's head, with a cache.
func (p *promotion) promote(cache string) (c carried, err error) {
	return p.server.carry(p.command(cache, "promote", "--env", environment, "--repo", p.platform.url, "-o", "json"))
}

// carry runs a command and returns its cost, including the traffic.
func (s *server) carry(cmd *exec.Cmd) (c carried, err error) {
	s.counted()
	c.cost, _, err = costOf(cmd)
	c.wire = s.counted()
	return c, err
}

// bestCarried is best for commands that speak with servers.
func bestCarried(runs int, run func() (carried, error)) (least carried, err error) {
	for i := range runs {
		c, err := run()
		if err != nil {
			return least, err
		}
		if i == 0 || c.CPU < least.CPU {
			least = c
		}
	}
	return least, nil
}

// change promotes a commit that changes n files, and returns the branch's commit before.
func (p *promotion) change(n int, cache string) (before string, c carried, err error) {
	p.value++
	before = p.gitops.at(environment)
	if err := writeChanging(p.sources(), n, p.value); err != nil {
		return before, c, err
	}
	if err := commitAll(p.sources(), fmt.Sprintf("Change %d files to %d", n, p.value), p.platform.url); err != nil {
		return before, c, err
	}
	c, err = p.promote(cache)
	if err == nil && p.gitops.at(environment) == before {
		err = errors.New("nothing was promoted")
	}
	return before, c, err
}

// measure promotes commits that change n files, and carries the same change with git.
func (p *promotion) measure(n int) (*moved, error) {
	m := &moved{Wanted: n}
	var before string
	promoted := func(cache string, prepare func() error) func() (carried, error) {
		return func() (c carried, err error) {
			if err = prepare(); err != nil {
				return c, err
			}
			before, c, err = p.change(n, cache)
			return c, err
		}
	}
	nothing := filepath.Join(p.Dir, "nothing")
	forget := func() error { return os.RemoveAll(fetched(p.cache())) }
	var err error
	if m.Fetched, err = bestCarried(p.runs, promoted(p.cache(), forget)); err != nil {
		return nil, err
	}
	if m.Warm, err = bestCarried(p.runs, promoted(p.cache(), func() error { return nil })); err != nil {
		return nil, err
	}
	changed, err := p.changed(before)
	if err != nil {
		return nil, err
	}
	m.Files = len(changed)
	if m.Git, err = bestCarried(p.runs, func() (carried, error) { return p.withGit(before, changed) }); err != nil {
		return nil, err
	}
	if n == p.Changes[0] {
		m.Cold = &carried{}
		*m.Cold, err = promoted(nothing, func() error { return os.RemoveAll(nothing) })()
	}
	return m, err
}

// changed returns the files that differ from a commit of the branch, without records.
func (p *promotion) changed(before string) ([]string, error) {
	names, err := output(git(p.gitops.dir, "diff", "--name-only", "-z", before, environment))
	if err != nil {
		return nil, err
	}
	all := strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00")
	return slices.DeleteFunc(all, func(name string) bool { return strings.Contains("/"+name, "/.kalypso/") }), nil
}

// withGit makes the same change as people do without kalypso, once they have its files. It clones
// a work tree, copies the files into it, and runs git's add, commit and push. Copying the files
// does not count.
func (p *promotion) withGit(before string, changed []string) (all carried, err error) {
	const other = "refs/heads/with-git"
	if _, err := output(git(p.gitops.dir, "update-ref", other, before)); err != nil {
		return all, err
	}
	tree, err := os.MkdirTemp(p.Dir, "clone-")
	if err != nil {
		return all, err
	}
	run := func(args ...string) error {
		c, err := p.server.carry(git(p.Dir, args...))
		all.add(c)
		return err
	}
	if err := run("clone", "-q", "--depth", "1", "--branch", "with-git", p.gitops.url, tree); err != nil {
		return all, err
	}
	put := git(p.gitops.dir, "--work-tree", tree, "checkout", environment, "--pathspec-from-file=-", "--pathspec-file-nul")
	put.Env = append(put.Env, "GIT_INDEX_FILE="+filepath.Join(p.Dir, "index"))
	put.Stdin = strings.NewReader(strings.Join(changed, "\x00"))
	if _, err := output(put); err != nil {
		return all, err
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "Change files"}, {"push", "-q"}} {
		if err := run(append([]string{"-C", tree}, args...)...); err != nil {
			return all, err
		}
	}
	return all, removeFrom(p.Dir, tree)
}

// commitAll commits the contents of a folder, and pushes the commit. If the folder is not a
// repository, it becomes one.
func commitAll(dir, message, url string) error {
	if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
		if _, err := output(git(dir, "init", "-q", "-b", "main")); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", message}, {"push", "-q", url, "main"}} {
		if _, err := output(git(dir, args...)); err != nil {
			return err
		}
	}
	return nil
}

// declared is an environment whose tree is in the branch of its name.
type declared struct {
	name, repository string
	after            string
	reported         bool // a commit counts as running there only after a report
}

// writeEnvironments declares environments in a generated platform, in place of its own.
func writeEnvironments(dir string, all ...declared) error {
	name := filepath.Join(dir, "platform.cue")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "environments:") && !strings.Contains(line, "schema.")
	})
	for _, e := range all {
		after, source := "", "none"
		if e.after != "" {
			after = fmt.Sprintf("after: [%q], ", e.after)
		}
		if e.reported {
			source = "any"
		}
		lines = append(lines, fmt.Sprintf("environments: %q: {%sgitops: {repo: %q, branch: %q}, gates: "+
			"rollout: source: %q}\n", e.name, after, e.repository, e.name, source))
	}
	return os.WriteFile(name, []byte(strings.Join(lines, "")), 0o644)
}

// list is the file with the assignments.
func (j job) list() string { return filepath.Join(j.Dir, "assignments.json") }

// writeChangings writes a config for each number of files that is to change: each
// value of it is in one file of each assignment.
func writeChangings(j job) error {
	text, err := os.ReadFile(j.list())
	if err != nil {
		return err
	}
	var list struct {
		Items []struct{ ClusterType, DeploymentTarget string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	targets := map[string][]string{} // by cluster type
	for _, a := range list.Items {
		targets[a.ClusterType] = append(targets[a.ClusterType], a.DeploymentTarget)
	}
	for _, n := range j.Changes {
		match := factsOf(targets, n)
		var lines []string
		for _, fact := range sortedKeys(match) {
			lines = append(lines, fmt.Sprintf("%s: %q", fact, match[fact][0]))
			for _, other := range match[fact][1:] {
				lines[len(lines)-1] += fmt.Sprintf(" | %q", other)
			}
		}
		head := fmt.Sprintf("package platform\n\nconfigs: \"changing-%d\": match: {\n\t%s\n}\n", n,
			strings.Join(lines, "\n\t"))
		if err := os.WriteFile(filepath.Join(j.platform(), fmt.Sprintf("changing-%d.cue", n)),
			[]byte(head), 0o644); err != nil {
			return err
		}
		if err := writeChanging(j.platform(), n, 0); err != nil {
			return err
		}
	}
	return nil
}

// factsOf returns facts that n assignments have: as many whole cluster types as fit, or
// so many deployment targets of one.
func factsOf(targets map[string][]string, n int) map[string][]string {
	match := map[string][]string{}
	for _, name := range sortedKeys(targets) {
		if len(targets[name]) > n && len(match) == 0 {
			return map[string][]string{"clusterType": {name}, "deploymentTarget": targets[name][:n]}
		}
		if len(targets[name]) > n {
			break
		}
		match["clusterType"] = append(match["clusterType"], name)
		n -= len(targets[name])
	}
	return match
}

// writeChanging gives the config of n files another value.
func writeChanging(dir string, n, value int) error {
	text := fmt.Sprintf("package platform\n\nconfigs: \"changing-%d\": values: CHANGING_%d: \"%d\"\n", n, n, value)
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("changing-%d-value.cue", n)), []byte(text), 0o644)
}
