package observe_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// What the hub knows of a cluster with a real Argo CD is what kubectl says.
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

	// The same by what its notifications send, of all Applications: no snapshot follows.
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

// applications returns what kubectl shows for the Applications of each assignment.
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
