package observe_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// consumers are a Kubernetes API server, a git server and real reconcilers on this machine, and a
// hub that observes them. make test-long passes their location.
type consumers struct {
	*testing.T
	scripts, dir string // with up and down; with the built programs
	tmp          string
	url, token   string // of the hub; of its cluster e1
	hub          *process
	running      []*process
}

// process is a program that runs until the test ends.
type process struct {
	*exec.Cmd
	ended chan struct{}
}

func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
}

const (
	apps   = "http://127.0.0.1:3000/git/apps.git"
	gitops = "http://127.0.0.1:3000/git/gitops.git"
)

// startConsumers starts the API server, the git server, and the programs in names. It returns nil
// if make test-long has not installed them.
func startConsumers(t *testing.T, names ...string) *consumers {
	t.Helper()
	c := &consumers{T: t, scripts: os.Getenv("KALYPSO_TEST_CONSUMERS"), dir: os.Getenv("KALYPSO_TEST_CONSUMERS_DIR"), tmp: t.TempDir()}
	if os.Getenv("KALYPSO_LONG") == "" || c.scripts == "" {
		return nil
	}
	for name, value := range map[string]string{
		"PATH": filepath.Join(c.dir, "bin") + ":" + c.tmp + ":" + os.Getenv("PATH"), "KUBECONFIG": filepath.Join(c.dir, "kubeconfig"), "KALYPSO_CACHE_DIR": filepath.Join(c.tmp, "cache"),
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com", "RUNTIME_NAMESPACE": "flux-system",
	} {
		t.Setenv(name, value)
	}
	c.run("go", "build", "-o", c.tmp, "github.com/kalypso-io/kalypso/cmd/kalypso", "github.com/kalypso-io/kalypso/cmd/kalypso-hub")
	down := func() { _ = exec.Command(filepath.Join(c.scripts, "down"), c.dir).Run() }
	down()
	t.Cleanup(down)
	c.eventually("what ran before has ended", func() string { // an API server needs some time to end
		if conn, err := net.Dial("tcp", "127.0.0.1:6443"); err == nil {
			_ = conn.Close()
			return "there still is an API server"
		}
		return ""
	})
	for _, name := range []string{"apps", "gitops", "platform"} {
		c.run("rm", "-rf", c.repository(name))
		c.run("git", "init", "-q", "--bare", "-b", "main", c.repository(name))
	}
	c.run(filepath.Join(c.scripts, "up"), append([]string{c.dir}, names...)...)
	return c
}

func (c *consumers) repository(name string) string {
	return filepath.Join(c.dir, "srv", "git", name+".git")
}

// run runs a program, and returns its output.
func (c *consumers) run(name string, args ...string) string {
	c.Helper()
	out, err := c.try("", name, args...)
	if err != nil {
		c.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return out
}

// try runs a program with an input.
func (c *consumers) try(in, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(in)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, messages.Bytes())
	}
	return string(out), err
}

// start starts a program until the test ends.
func (c *consumers) start(name string, args ...string) *process {
	c.Helper()
	log, err := os.Create(filepath.Join(c.tmp, filepath.Base(name)+".log"))
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	p := &process{exec.Command(name, args...), make(chan struct{})}
	p.Stdout, p.Stderr = log, log
	if err := p.Start(); err != nil {
		c.Fatal(err)
	}
	go func() { _ = p.Wait(); close(p.ended) }()
	c.running = append(c.running, p)
	c.Cleanup(func() {
		p.kill()
		if text, _ := os.ReadFile(log.Name()); c.Failed() {
			c.Logf("%s:\n%s", name, text[max(0, len(text)-1500):])
		}
	})
	return p
}

// eventually waits until a function returns "". Until then, the function returns the missing part.
func (c *consumers) eventually(what string, f func() string) {
	c.Helper()
	const patience = 8 * time.Minute // Argo CD waits for three minutes between attempts
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		for _, p := range c.running {
			select {
			case <-p.ended:
				c.Fatalf("%s: %s has ended", what, p.Path)
			default:
			}
		}
		if is := f(); is == "" {
			c.Logf("%s: as it should be", what)
			return
		} else if time.Now().After(end) {
			c.Fatalf("%s: %s", what, is)
		}
	}
}

// commit writes files of a repository, and returns the commit.
func (c *consumers) commit(repository, branch string, files map[string]string) string {
	c.Helper()
	work := c.TempDir()
	c.run("git", "-C", work, "init", "-q", "-b", branch)
	c.run("git", "-C", work, "remote", "add", "origin", c.repository(repository))
	if _, err := c.try("", "git", "-C", work, "pull", "-q", "origin", branch); err != nil && branch != "main" {
		c.Fatal(err)
	}
	for name, text := range files {
		name = filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			c.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			c.Fatal(err)
		}
	}
	c.run("git", "-C", work, "add", "-A")
	c.run("git", "-C", work, "commit", "-q", "--allow-empty", "-m", "Change")
	c.run("git", "-C", work, "push", "-q", "origin", branch)
	return strings.TrimSpace(c.run("git", "-C", work, "rev-parse", "HEAD"))
}

// promote commits the platform with a greeting, and its tree to the GitOps branch, and returns
// the branch's commit.
func (c *consumers) promote(reconciler, greeting string) string {
	c.Helper()
	c.commit("platform", "main", map[string]string{
		"cue.mod/module.cue":                "module: \"consumers.example/platform@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: \"kalypso.io@v0\": v: \"v0.1.0\"\n",
		"environments/prod/environment.cue": "package platform\n\nconfigs: all: {match: {}, values: GREETING: \"" + greeting + "\"}\n",
		"platform.cue": `package platform

import "kalypso.io/schema"

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
clusters:           schema.#Clusters
workloads:          schema.#Workloads
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
reconcilers:        schema.#Reconcilers

environments: prod: gitops: {repo: "` + gitops + `", branch: "prod"}
clusterTypes: edge: reconciler: "main"
clusters: e1: {clusterType: "edge"}
reconcilers: main: ` + reconciler + `
workloads: [Name=string]: workspace: "team"
workloads: [Name=string]: deploymentTargets: main: {
	environment: "prod"
	manifests: git: {repo: "` + apps + `", branch: "main", path: "./\(Name)"}
}
workloads: {hello: {}, other: {}}
schedulingPolicies: all: {deploymentTargets: {}, clusterTypes: {}}
`,
	})
	work := c.TempDir()
	c.run("git", "clone", "-q", c.repository("platform"), work)
	c.run("kalypso", "build", "prod", "-C", work, "--flat", "--git", c.repository("gitops"), "--branch", "prod")
	return strings.TrimSpace(c.run("git", "-C", c.repository("gitops"), "rev-parse", "prod"))
}

// bootstrap applies the output of kalypso bootstrap with some arguments and --hub.
func (c *consumers) bootstrap(args ...string) {
	c.Helper()
	work := c.TempDir()
	c.run("git", "clone", "-q", c.repository("platform"), work)
	const address = "https://hub.example.com"
	objects := c.run("kalypso", append([]string{"bootstrap", "-C", work, "--hub", address}, args...)...)
	if out, err := c.try(strings.ReplaceAll(objects, address, c.url), "kubectl", "apply", "--server-side", "-f", "-"); err != nil {
		c.Fatalf("%v\n%s\n%s", err, out, objects)
	}
}

// serve starts the hub. It has the same address and database each time.
func (c *consumers) serve() {
	c.Helper()
	database := filepath.Join(c.tmp, "hub.db")
	if c.url == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			c.Fatal(err)
		}
		c.url = "http://" + listener.Addr().String()
		_ = listener.Close()
		c.Setenv("KALYPSO_HUB", c.url)
		c.Setenv("KALYPSO_HUB_TOKEN", strings.TrimSpace(c.run("kalypso-hub", "token", "--role", "admin", "--database", database)))
	}
	c.hub = c.start(filepath.Join(c.tmp, "kalypso-hub"), "serve", "--repo", c.repository("platform"), "--database", database, "--listen", strings.TrimPrefix(c.url, "http://"), "--poll", "1s")
	c.eventually("the hub", func() string {
		if _, err := c.try("", "kalypso", "hub", "status"); err != nil {
			return err.Error()
		}
		return ""
	})
	if c.token == "" {
		c.token = strings.TrimSpace(c.run("kalypso", "hub", "token", "create", "--role", "cluster", "--cluster", "e1"))
	}
}

// kill ends the hub abruptly, as a power cut would.
func (c *consumers) kill() {
	c.hub.kill()
	c.running = slices.DeleteFunc(c.running, func(p *process) bool { return p == c.hub })
}

// asked returns the states that the hub answers.
func (c *consumers) asked() map[string]string {
	c.Helper()
	var found struct {
		Item struct {
			Assignments []struct{ Workload, State string }
		}
	}
	text, err := c.try("", "kalypso", "hub", "status", "prod", "--list", "-o", "json")
	if err != nil || json.Unmarshal([]byte(text), &found) != nil {
		c.Fatalf("%v\n%s", err, text)
	}
	out := map[string]string{}
	for _, a := range found.Item.Assignments {
		out[a.Workload] = a.State
	}
	return out
}

// answer is the state of a workload, and the commit of the GitOps branch that was applied.
type answer struct{ state, commit string }

// agree waits until kubectl and the hub both give the wanted answers.
func (c *consumers) agree(step string, kubectl func() map[string]answer, observe func(), want map[string]answer) {
	c.Helper()
	c.eventually(step, func() string {
		observe()
		if is := kubectl(); !maps.Equal(is, want) {
			return fmt.Sprintf("kubectl says %v, want %v", is, want)
		}
		observe() // kubectl may have seen a state that did not exist before
		is := c.asked()
		for workload, a := range want {
			if is[workload] != a.state {
				return fmt.Sprintf("the hub says %v, want %v", is, want)
			}
		}
		return ""
	})
}

// conditionOf is a condition of an object.
type conditionOf struct{ Type, Status, Reason, Message string }

// objectOf has the fields of a reconciler's object that tests read.
type objectOf struct {
	Metadata struct {
		Name              string
		DeletionTimestamp string
		Annotations       map[string]string
	}
	Status struct {
		LastAppliedRevision, LastAttemptedRevision, LastHandledReconcileAt string
		Conditions                                                         []conditionOf
		Sync                                                               struct {
			Status, Revision string
			Revisions        []string
		}
		Health         struct{ Status string }
		OperationState struct {
			Phase      string
			RetryCount int
		}
	}
}

// answers returns the state of each workload in kubectl. judge gets the objects of its assignment,
// one after the other. The state is ok unless judge sets a different one.
func (c *consumers) answers(kind string, judge func(o *objectOf, is *answer)) map[string]answer {
	c.Helper()
	out := map[string]answer{}
	for _, o := range c.objects(kind) {
		_, target, _ := strings.Cut(o.Metadata.Annotations["kalypso.io/assignment"], "prod/edge/")
		workload, _, found := strings.Cut(target, "-")
		if !found {
			continue
		}
		is := out[workload]
		is.state = cmp.Or(is.state, "ok")
		judge(&o, &is)
		out[workload] = is
	}
	return out
}

// objects returns all objects of a kind.
func (c *consumers) objects(kind string) []objectOf {
	c.Helper()
	var found struct{ Items []objectOf }
	text, err := c.try("", "kubectl", "get", kind, "-A", "-o", "json")
	if err != nil || json.Unmarshal([]byte(text), &found) != nil {
		c.Fatalf("%v\n%s", err, text)
	}
	slices.SortFunc(found.Items, func(a, b objectOf) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return found.Items
}
