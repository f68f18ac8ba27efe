package observe_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// The hub and kubectl agree about a cluster with a real Argo CD.
func TestSlowArgoCD(t *testing.T) {
	isolated.Long(t, "runs Argo CD")
	c := startConsumers(t, "argocd")
	if c == nil {
		return // make test-long says so
	}
	const reconciler = `argocd: {}`
	c.commit("apps", "main", map[string]string{"hello/object.yaml": configMap("hello"), "other/object.yaml": configMap("other")})
	first := c.promote(reconciler, "hello")
	c.serve()
	c.bootstrap("cluster", "prod/e1")
	account := c.account("argocd")
	refresh := func() {
		c.run("kubectl", "-n", "argocd", "annotate", "applications.argoproj.io", "--all", "--overwrite", "argocd.argoproj.io/refresh=hard")
	}
	observe := func() {
		refresh()
		c.run("kalypso", "observe", "--from", "kubeconfig", "--kubeconfig", account, "--cluster", "e1")
	}
	both := func(a answer) map[string]answer { return map[string]answer{"hello": a, "other": a} }

	c.agree("applied", c.applications, observe, both(answer{"ok", first}))
	second := c.promote(reconciler, "good morning")
	c.agree("a change", c.applications, observe, both(answer{"ok", second}))
	c.commit("apps", "main", map[string]string{"hello/object.yaml": strings.Replace(configMap("hello"), "{a: b}", "7", 1)})
	broken := map[string]answer{"hello": {"failed", second}, "other": {"ok", second}}
	c.agree("a workload that the API server refuses", c.applications, observe, broken)
	c.kill()
	c.serve()
	c.agree("a hub that was killed", c.applications, func() {}, broken)
	c.commit("apps", "main", map[string]string{"hello/object.yaml": configMap("hello")})
	c.agree("mended", c.applications, observe, both(answer{"ok", second}))
	c.agree("rolled back", c.applications, observe, both(answer{"ok", c.promote(reconciler, "hello")}))

	// The same with notifications of all Applications: no snapshot follows.
	program, config := hubtest.Webhooks(t, "../../internal/testing/webhooks"), hubtest.Notifications(t, "../../docs/hub.md")
	notify := func() {
		refresh()
		var found struct{ Items []any }
		if err := json.Unmarshal([]byte(c.run("kubectl", "get", "applications.argoproj.io", "-A", "-o", "json")), &found); err != nil {
			t.Fatal(err)
		}
		in, err := json.Marshal(map[string]any{"URL": c.url, "Token": c.token, "ConfigMap": config, "Applications": found.Items})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := c.try(string(in), program); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	c.agree("a change, by notifications", c.applications, notify, both(answer{"ok", c.promote(reconciler, "good evening")}))
}

// A real Argo CD keeps a null in a chart's values, in an Application and in one of an
// ApplicationSet. The null may be there from the beginning, or be added later. It goes when the
// values no longer contain it.
func TestSlowArgoCDKeepsNull(t *testing.T) {
	isolated.Long(t, "runs Argo CD")
	c := startConsumers(t, "argocd")
	if c == nil {
		return // make test-long says so
	}
	r := &removals{consumers: c, dir: t.TempDir()}
	r.write("cue.mod/module.cue", "module: \"consumers.example/platform@v0\"\nlanguage: version: \"v0.17.0\"\ndeps: \"kalypso.io@v0\": v: \"v0.1.0\"\n")
	build := func(probe, workloads string) {
		r.write("platform.cue", `package platform

import "kalypso.io/schema"

environments:       schema.#Environments
clusterTypes:       schema.#ClusterTypes
clusters:           schema.#Clusters
workloads:          schema.#Workloads
schedulingPolicies: schema.#SchedulingPolicies
reconcilers:        schema.#Reconcilers

environments: prod: gitops: {repo: "`+gitops+`", branch: "prod"}
clusterTypes: {edge: reconciler: "main", site: reconciler: "central"}
clusters: "in-cluster": {clusterType: "site", values: SITE: "{{ s1 }}"}
reconcilers: {main: argocd: {}, central: argocd: clusters: "inventory"}
workloads: [_]: {
	workspace: "team"
	deploymentTargets: main: {
		environment: "prod"
		manifests: helm: {repo: "https://charts.example.com", chart: "web", version: "1.0.0", platformValues: "platform", values: probe: `+probe+`}
	}
}
workloads: `+workloads+`
schedulingPolicies: all: {deploymentTargets: {}, clusterTypes: {}}
`)
		c.run("kalypso", "build", "prod", "-C", r.dir, "--flat", "--git", c.repository("gitops"), "--branch", "prod")
	}
	have := func(step, edge, site string, workloads ...string) {
		c.eventually(step, func() string {
			c.run("kubectl", "-n", "argocd", "annotate", "applications.argoproj.io", "--all", "--overwrite", "argocd.argoproj.io/refresh=hard")
			for _, name := range workloads {
				for application, want := range map[string]string{"prod-edge-" + name + "-main": edge, "prod-site-" + name + "-main-in-cluster": site} {
					got, _ := c.try("", "kubectl", "-n", "argocd", "get", "applications.argoproj.io", application, "-o", "jsonpath={.spec.source.helm}")
					if want = `{"releaseName":"` + name + `-main",` + want + "}"; got != want {
						return application + " has " + got + ", want " + want
					}
				}
			}
			return ""
		})
	}
	plain := func() {
		const edge, site = `{"platform":{},"probe":{"tcpSocket":{"port":5432}}}`, `{"platform":{"SITE":"{{ s1 }}"},"probe":{"tcpSocket":{"port":5432}}}`
		have("no null", `"valuesObject":`+edge, `"valuesObject":`+site, "one")
	}
	const port, null = `{tcpSocket: port: 5432}`, `{httpGet: null, tcpSocket: port: 5432}`
	build(port, "one: {}")
	r.bootstrap("edge", "site")
	plain()
	build(null, "{one: {}, two: {}}")
	const probe = `probe:\n  httpGet: null\n  tcpSocket:\n    port: 5432\n"`
	have("null", `"values":"platform: {}\n`+probe, `"values":"platform:\n  SITE: \"{{ s1 }}\"\n`+probe, "one", "two")
	build(port, "{one: {}, two: {}}")
	plain()
}

// applications returns the state of each assignment's Applications, as kubectl shows them.
func (c *consumers) applications() map[string]answer {
	c.Helper()
	return c.answers("applications.argoproj.io", func(o *objectOf, is *answer) {
		if strings.HasSuffix(o.Metadata.Name, "-assignment") { // the others are about the application's own repository
			is.commit = o.Status.Sync.Revision
		}
		switch s := o.Status; {
		case s.OperationState.Phase == "Failed" || s.OperationState.Phase == "Error" || s.OperationState.Phase == "Running" && s.OperationState.RetryCount > 1 || s.Health.Status == "Degraded":
			is.state = "failed"
		case (s.Sync.Status != "Synced" || s.Health.Status != "Healthy") && is.state == "ok":
			is.state = "progressing"
		}
	})
}
