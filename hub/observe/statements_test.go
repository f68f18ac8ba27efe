package observe_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// The hub, the rollout gate, promote status and kubectl agree about a cluster with a real Flux, at
// each step of a day.
func TestSlowEveryStatementIsTrue(t *testing.T) {
	isolated.Long(t, "runs Flux")
	c := startConsumers(t, "flux")
	if c == nil {
		return // make test-long says so
	}
	c.run("git", "-C", c.repository("gitops"), "config", "http.receivepack", "true")
	d := &day{consumers: c, platform: map[string]string{"greeting": "hello", "path": "live2", "tier": "small"}}
	ok := map[string]string{"dev/hello": "ok", "dev/other": "ok"}
	with := func(more map[string]string) map[string]string {
		out := maps.Clone(ok)
		maps.Copy(out, more)
		return out
	}

	d.apps("{a: b}")
	d.commits()
	c.serve()
	d.promotes("dev")
	d.bootstraps("dev")
	d.says("1 first promotion", ok, "")
	d.promotes("prod") // only prod: it checks the progress of dev
	d.bootstraps("prod")
	ok["prod/hello"], ok["prod/other"] = "ok", "ok"
	d.says("2 prod, promoted alone", ok, "")

	d.platform["greeting"] = "good morning"
	d.commits()
	d.promotes("dev")
	d.says("3 a value commit", ok, "")
	d.promotes("prod")

	c.reads("dev", c.commit("gitops", "dev", map[string]string{"README.md": "Nothing that is applied."}))
	d.says("4 a commit that the hub has not read when it is applied", ok, "")

	d.apps("7")
	d.platform["greeting"] = "good day"
	d.commits()
	d.promotes("dev")
	broken := with(map[string]string{"dev/hello": "failed", "dev/other": "behind", "prod/hello": "failed"})
	d.says("5 an object that is refused, and what depends on it", broken, "dev: the rollout failed")
	d.mustNot("prod")
	c.kill()
	c.serve()
	d.says("6 a hub that was killed", broken, "dev: the rollout failed")
	d.apps("{a: b}")
	d.says("7 recovery", ok, "")
	d.promotes("prod")

	c.kubectl(policy, "apply", "-f", "-")
	d.platform["greeting"] = "good evening"
	d.commits()
	d.promotes("dev")
	d.says("8 an admission policy", with(map[string]string{"dev/hello": "failed", "dev/other": "behind"}), "dev: the rollout failed")
	d.reason("dev/hello", "no greetings in the evening")
	c.kubectl(policy, "delete", "-f", "-")
	d.says("9 without it", ok, "")

	c.suspend(d.root("dev"), true) // otherwise it would revert the change
	c.patch("dev-edge-hello-dev-assignment", `{"spec": {"path": "./live2/edge/other-dev"}}`)
	d.says("10 a path that somebody edited", with(map[string]string{"dev/hello": "drifted", "dev/other": whichever}), "")
	d.reason("dev/hello", "it applies folder live2/edge/other-dev, and live2/edge/hello-dev is wanted")
	c.patch("dev-edge-hello-dev-assignment", `{"spec": {"path": "./live2/edge/hello-dev"}}`)
	c.suspend(d.root("dev"), false)
	d.says("11 set back", ok, "")

	c.run("kalypso", "rollback", "--env", "dev", "-C", d.work, "--reason", "a test", "--hub", c.url)
	d.says("12 a rollback", ok, "")
	c.run("kalypso", "release", "dev", "-C", d.work, "--reason", "a test")

	d.platform["tier"] = "large"
	d.commits()
	d.promotes("dev")
	d.says("13 a change of the cluster's class", ok, "")
	d.promotes("prod")

	before := c.tip("dev")
	c.suspend("dev-edge-hello-dev-assignment", true)
	suspended := with(map[string]string{"dev/hello": "suspended", "dev/other": whichever}) // Flux may have checked its dependencies
	d.says("14 suspended", suspended, "")
	d.platform["greeting"] = "good night"
	d.commits()
	d.promotes("dev")
	d.says("15 suspended, and a value commit", suspended, "dev: is rolling out")
	d.reason("dev/hello", before) // the commit that was applied
	d.mustNot("prod")
	c.suspend("dev-edge-hello-dev-assignment", false)
	d.says("16 resumed", ok, "")
	d.promotes("prod")
	d.says("17 what ran in dev, in prod", ok, "")

	d.platform["path"], d.platform["greeting"] = "live3", "hello again"
	d.commits()
	if out, err := d.promote("dev"); err == nil || !strings.Contains(out, "is kept in folder live3, and was in folder live2") {
		t.Errorf("promote says of the folder that changed: %v\n%s", err, out)
	}
	d.promotes("dev", "--adopt")
	elsewhere := with(map[string]string{"dev/hello": "drifted", "dev/other": "drifted"})
	d.says("18 another path", elsewhere, "dev: is rolling out")
	d.reason("dev/hello", "and live3/edge")
	d.mustNot("prod")
	d.bootstraps("dev")
	d.says("19 bootstrapped again", ok, "")

	d.hanging(t)
}

// day is a platform with environments dev and prod, both on the real cluster e1, and the checks of
// their state.
type day struct {
	*consumers
	platform map[string]string
	work     string // a clone of the platform's repository
}

// commits commits the platform.
func (d *day) commits() {
	d.Helper()
	values := strings.NewReplacer("GREETING_", d.platform["greeting"], "PATH_", d.platform["path"], "TIER_", d.platform["tier"])
	d.commit("platform", "main", map[string]string{
		"cue.mod/module.cue":                "module: \"consumers.example/platform@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: \"kalypso.io@v0\": v: \"v0.1.0\"\n",
		"environments/dev/environment.cue":  "package platform\n",
		"environments/prod/environment.cue": "package platform\n",
		"platform.cue": values.Replace(`package platform

import "kalypso.io/schema"

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
clusters:           schema.#Clusters
workloads:          schema.#Workloads
schedulingPolicies: schema.#SchedulingPolicies
configs:            schema.#Configs
reconcilers:        schema.#Reconcilers

environments: [_]: gates: rollout: source: "hub"
environments: dev: gitops: {repo: "` + gitops + `", branch: "dev", path: "PATH_"}
environments: prod: {after: ["dev"], gitops: {repo: "` + gitops + `", branch: "prod"}}
clusterTypes: edge: {reconciler: "main", entries: "cluster"}
clusters: e1: {clusterType: "edge", labels: tier: "TIER_"}
reconcilers: main: flux: {interval: "1m", retryInterval: "5s", timeout: "15s"}
workloads: [Name=string]: {
	workspace: "team"
	deploymentTargets: [Target=string]: {
		environment: Target
		manifests: git: {repo: "` + apps + `", branch: "main", path: "./\(Name)"}
	}
	deploymentTargets: {dev: {}, prod: {}}
}
workloads: {hello: {}, other: deploymentTargets: {dev: dependsOn: ["hello-dev"], prod: {}}}
schedulingPolicies: all: {deploymentTargets: {}, clusterTypes: {}}
configs: all: {match: {}, values: GREETING: "GREETING_"}
configs: large: {match: {}, clusters: labels: tier: "large", values: TIER: "large"}
`),
	})
	d.work = d.TempDir()
	d.run("git", "clone", "-q", d.repository("platform"), d.work)
}

// apps commits the application's repository. data is the data of hello's ConfigMap.
func (d *day) apps(data string) {
	d.Helper()
	d.commit("apps", "main", map[string]string{
		"hello/object.yaml": strings.Replace(configMap("hello"), "{a: b}", data, 1), "other/object.yaml": configMap("other"),
	})
}

func (d *day) promote(environment string, more ...string) (string, error) {
	return d.try("", "kalypso", append([]string{"promote", "-C", d.work, "--repo", d.repository("platform"), "--env", environment, "--hub", d.url, "--pending-ok"}, more...)...)
}

// promotes promotes to only one environment.
func (d *day) promotes(environment string, more ...string) {
	d.Helper()
	was := d.tip(environment)
	d.eventually("promoted to "+environment, func() string { // the hub may not have read the last commit yet
		d.observe()
		if out, err := d.promote(environment, more...); err != nil || d.tip(environment) == was {
			return fmt.Sprintf("%v\n%s", err, out)
		}
		return ""
	})
}

// mustNot checks that nothing can be promoted to an environment, by name or with all others.
func (d *day) mustNot(environment string) {
	d.Helper()
	was := d.tip(environment)
	_, _ = d.promote(environment)
	_, _ = d.try("", "kalypso", "promote", "-C", d.work, "--repo", d.repository("platform"), "--all", "--hub", d.url, "--pending-ok")
	if d.tip(environment) != was {
		d.Errorf("something was promoted to %s", environment)
	}
}

// tip returns the commit of a GitOps branch, or "" if the branch does not exist.
func (c *consumers) tip(branch string) string {
	out, _ := c.try("", "git", "-C", c.repository("gitops"), "rev-parse", "--verify", "-q", branch)
	return strings.TrimSpace(out)
}

// bootstraps applies the manifests that let the cluster pull the tree of an environment.
func (d *day) bootstraps(environment string) {
	d.Helper()
	if out, err := d.try(d.run("kalypso", "bootstrap", "cluster", environment+"/e1", "-C", d.work), "kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		d.Fatalf("%v\n%s", err, out)
	}
}

func (d *day) root(environment string) string { return "kalypso-" + environment + "-edge" }

func (d *day) observe() {
	d.run("kalypso", "observe", "--from", "kubeconfig", "--kubeconfig", os.Getenv("KUBECONFIG"), "--cluster", "e1")
}

func (c *consumers) kubectl(in string, args ...string) {
	c.Helper()
	if out, err := c.try(in, "kubectl", args...); err != nil {
		c.Fatalf("%v\n%s", err, out)
	}
}

// suspend acts as flux suspend does. Flux reverts the changes that kubectl makes under its own
// name.
func (c *consumers) suspend(name string, is bool) {
	c.Helper()
	c.patch(name, fmt.Sprintf(`{"spec": {"suspend": %t}}`, is), "--field-manager=flux")
}

func (c *consumers) patch(name, patch string, more ...string) {
	c.Helper()
	c.kubectl("", append([]string{"-n", "flux-system", "patch", "kustomizations.kustomize.toolkit.fluxcd.io", name, "--type=merge", "-p", patch}, more...)...)
}

// reads waits until the hub has read a commit of an environment's branch.
func (c *consumers) reads(environment, commit string) {
	c.Helper()
	hub := c.client()
	c.eventually("the hub reads a commit", func() string {
		is, err := hub.Environments(c.Context())
		for i := 0; err == nil && i < len(is.Environments); i++ {
			if e := is.Environments[i]; e.Name == environment && e.Commit == commit {
				return ""
			}
		}
		return fmt.Sprintf("it has %+v, %v", is, err)
	})
}

// policy denies the greeting "good evening".
const policy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: evening}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["configmaps"]}]
  validations: [{expression: "!has(object.data) || !('GREETING' in object.data) || object.data.GREETING != 'good evening'", message: "no greetings in the evening"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: evening}
spec: {policyName: evening, validationActions: [Deny]}
`

// fluxObject is a Kustomization as kubectl shows it.
type fluxObject struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Spec struct {
		Path    string
		Suspend bool
	}
	Status struct {
		LastAppliedRevision, LastAttemptedRevision string
		Conditions                                 []conditionOf
	}
}

// seen returns the state of each assignment in kubectl, as ENVIRONMENT/WORKLOAD: the state of its
// worst Kustomization. It is drifted if a Kustomization does not come from the environment's tree.
func (d *day) seen() map[string]string {
	var found struct{ Items []fluxObject }
	text, err := d.try("", "kubectl", "get", "kustomizations.kustomize.toolkit.fluxcd.io", "-A", "-o", "json")
	if err != nil || json.Unmarshal([]byte(text), &found) != nil {
		d.Fatalf("%v\n%s", err, text)
	}
	paths := map[string]string{"dev": "./" + d.platform["path"] + "/", "prod": "./"}
	order := []string{"", "ok", "progressing", "behind", "suspended", "failed", "drifted"}
	out := map[string]string{}
	for _, o := range found.Items {
		parts := strings.Split(o.Metadata.Annotations["kalypso.io/assignment"], "/")
		if len(parts) != 3 {
			continue
		}
		environment, target := parts[0], parts[2]
		workload, _, _ := strings.Cut(target, "-")
		folder := strings.HasSuffix(o.Metadata.Name, "-assignment")
		is := "progressing"
		ready := conditionOf{}
		for _, condition := range o.Status.Conditions {
			if condition.Type == "Ready" {
				ready = condition
			}
		}
		current := !folder || strings.HasSuffix(o.Status.LastAppliedRevision, d.tip(environment))
		switch {
		case folder && (!strings.HasPrefix(o.Spec.Path, paths[environment]+"edge") || !strings.HasSuffix(o.Spec.Path, "/"+target)):
			is = "drifted"
		case o.Spec.Suspend:
			is = "suspended"
		case ready.Status == "True" && current:
			is = "ok"
		case !current && (ready.Status == "True" || ready.Reason == "DependencyNotReady"):
			is = "behind"
		case ready.Status == "False" && ready.Reason != "DependencyNotReady" && ready.Reason != "ArtifactFailed":
			is = "failed"
		}
		name := environment + "/" + workload
		if slices.Index(order, is) > slices.Index(order, out[name]) {
			out[name] = is
		}
	}
	return out
}

// rows returns the hub's view of each assignment: its state and the reason.
func (d *day) rows() (states, reasons map[string]string) {
	d.Helper()
	var found struct {
		Item struct {
			Assignments []struct{ Environment, Workload, State, Message, Commit, Applied string }
		}
	}
	text, err := d.try("", "kalypso", "hub", "status", "--list", "-o", "json")
	if err != nil || json.Unmarshal([]byte(text), &found) != nil {
		d.Fatalf("%v\n%s", err, text)
	}
	states, reasons = map[string]string{}, map[string]string{}
	for _, a := range found.Item.Assignments {
		states[a.Environment+"/"+a.Workload] = a.State
		reasons[a.Environment+"/"+a.Workload] = a.Message + " " + a.Commit + " " + a.Applied
	}
	return states, reasons
}

// whichever is any state that kubectl shows.
const whichever = "any"

// says waits until kubectl shows the wanted state of each assignment. It then waits until the hub,
// the counts of promote status and the gate of prod agree.
func (d *day) says(step string, want map[string]string, gate string) {
	d.Helper()
	d.eventually(step, func() string {
		d.run("kubectl", "-n", "flux-system", "annotate", "gitrepositories.source.toolkit.fluxcd.io", "--all", "--overwrite", "reconcile.fluxcd.io/requestedAt="+time.Now().Format(time.RFC3339Nano))
		seen := d.seen()
		for name, state := range want {
			if seen[name] != state && state != whichever {
				return fmt.Sprintf("kubectl says %v, want %v", seen, want)
			}
		}
		d.observe()
		is, reasons := d.rows()
		maps.DeleteFunc(is, func(name, _ string) bool { return want[name] == "" }) // they are not bootstrapped yet
		if after := d.seen(); !maps.Equal(seen, after) {
			return "kubectl says something else than before"
		}
		if !maps.Equal(is, seen) {
			return fmt.Sprintf("the hub says %v, and kubectl %v: %v", is, seen, reasons)
		}
		return d.gate(seen, gate)
	})
}

// gate compares the output of promote status about dev, and the gate of prod, with the wanted
// results.
func (d *day) gate(want map[string]string, reason string) string {
	text, err := d.try("", "kalypso", "promote", "status", "-C", d.work, "--repo", d.repository("platform"), "--hub", d.url, "-o", "json")
	var found struct {
		Item struct {
			Stops []struct {
				Environment, Reason string
				Rollout             struct {
					Counts map[string]json.RawMessage
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		return fmt.Sprintf("promote status: %v\n%s", err, text)
	}
	if err != nil && !strings.Contains(text, "stops") {
		return fmt.Sprintf("promote status: %v", err)
	}
	names := map[string]string{"ok": "healthy", "drifted": "progressing", "behind": "progressing", "progressing": "progressing", "suspended": "suspended", "failed": "failed"}
	for _, stop := range found.Item.Stops {
		counts := map[string]int{}
		for name, state := range want {
			if strings.HasPrefix(name, stop.Environment+"/") {
				counts[names[state]]++
			}
		}
		for _, state := range []string{"healthy", "progressing", "suspended", "failed"} {
			is := 0
			_ = json.Unmarshal(stop.Rollout.Counts[state], &is) // absent for 0
			if len(counts) > 0 && is != counts[state] {
				return fmt.Sprintf("promote status counts %s in %s, want %v", stop.Rollout.Counts, stop.Environment, counts)
			}
		}
		if stop.Environment == "prod" && !strings.Contains(stop.Reason, reason) {
			return fmt.Sprintf("promote status says of prod: %s, want %s", stop.Reason, reason)
		}
	}
	return ""
}

// reason checks the hub's reason for a state.
func (d *day) reason(name, want string) {
	d.Helper()
	d.eventually("the reason of "+name, func() string {
		d.observe()
		if _, reasons := d.rows(); !strings.Contains(reasons[name], want) {
			return fmt.Sprintf("%q lacks %q", reasons[name], want)
		}
		return ""
	})
}

// hanging checks that an API server that does not answer does not delay the reports of others.
func (d *day) hanging(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	all, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		"clusters: [", `clusters: [{name: h, cluster: {server: "https://`+listener.Addr().String()+`", insecure-skip-tls-verify: true}}, `,
		"contexts: [", "contexts: [{name: h, context: {cluster: h, user: u}}, {name: e1, context: {cluster: c, user: u}}, ",
	).Replace(string(all))
	file := filepath.Join(d.tmp, "hanging.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := d.start(filepath.Join(d.tmp, "kalypso"), "observe", "--from", "kubeconfig", "--kubeconfig", file, "--context", "h,e1", "--every", "5s")
	defer func() {
		p.kill()
		d.running = slices.DeleteFunc(d.running, func(other *process) bool { return other == p })
	}()
	d.eventually("20 an API server that hangs", func() string {
		text := d.run("kalypso", "hub", "cluster", "e1", "-o", "json")
		var found struct{ Item struct{ Seen time.Time } }
		if err := json.Unmarshal([]byte(text), &found); err != nil || time.Since(found.Item.Seen) > 12*time.Second {
			return fmt.Sprintf("the last news is of %s, %v", found.Item.Seen, err)
		}
		return ""
	})
	var ages []time.Duration
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for range 20 {
		<-second.C
		var found struct{ Item struct{ Seen time.Time } }
		if err := json.Unmarshal([]byte(d.run("kalypso", "hub", "cluster", "e1", "-o", "json")), &found); err != nil {
			t.Fatal(err)
		}
		ages = append(ages, time.Since(found.Item.Seen))
	}
	if oldest := slices.Max(ages); oldest > 15*time.Second {
		t.Errorf("the news of e1 were up to %s old", oldest)
	}
}
