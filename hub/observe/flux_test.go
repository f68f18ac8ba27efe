package observe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// The hub and kubectl agree about a cluster with a real Flux. The hub learns the state from Flux's
// events, and from kalypso observe with the permissions that bootstrap prints.
func TestSlowFlux(t *testing.T) {
	isolated.Long(t, "runs Flux")
	c := startConsumers(t)
	if c == nil {
		return // make test-long says so
	}
	const reconciler = `flux: {interval: "1m", timeout: "20s"}`
	c.commit("apps", "main", map[string]string{"hello/object.yaml": configMap("hello"), "other/object.yaml": configMap("other")})
	first := c.promote(reconciler, "hello")
	c.serve()
	c.startFlux()
	c.bootstrap("prod/edge")
	if _, err := c.try("Authorization: Bearer "+c.token, "kubectl", "-n", "flux-system", "create", "secret", "generic", "kalypso-hub", "--from-file=headers=/dev/stdin"); err != nil {
		t.Fatal(err)
	}
	account := c.account("flux-system")
	pull := func() {
		c.run("kubectl", "-n", "flux-system", "annotate", "gitrepositories.source.toolkit.fluxcd.io", "--all", "--overwrite", "reconcile.fluxcd.io/requestedAt="+time.Now().Format(time.RFC3339Nano))
	}
	observe := func() {
		c.run("kalypso", "observe", "--from", "kubeconfig", "--kubeconfig", account, "--cluster", "e1")
	}
	nothing := func() {}
	both := func(a answer) map[string]answer { return map[string]answer{"hello": a, "other": a} }
	applied := c.kustomizations

	c.agree("applied", applied, observe, both(answer{"ok", first}))

	never := func(step string, said map[string][]string, states ...string) {
		t.Helper()
		for workload, all := range said {
			for _, is := range all {
				if state, _, _ := strings.Cut(is, " "); slices.Contains(states, state) {
					t.Errorf("%s: %s was %s: %q", step, workload, state, all)
				}
			}
		}
	}
	const nothingNew = "a commit that is about something else"
	end := c.watch(account)
	unrelated := c.commit("gitops", "prod", map[string]string{"README.md": "Nothing that is applied."})
	c.reads("prod", unrelated)
	pull()
	c.agree(nothingNew, applied, nothing, both(answer{"ok", unrelated}))
	never(nothingNew, end(), "progressing", "behind", "drifted", "failed")

	const fast = "a commit that Flux knows before the hub does"
	end = c.watch(account)
	unrelated = c.commit("gitops", "prod", map[string]string{"README.md": "Still nothing that is applied."})
	pull()
	c.agree(fast, applied, nothing, both(answer{"ok", unrelated}))
	never(fast, end(), "behind", "drifted", "failed")

	second := c.promote(reconciler, "good morning")
	pull()
	c.agree("a change, by events alone", applied, nothing, both(answer{"ok", second}))
	c.agree("a change", applied, observe, both(answer{"ok", second}))

	c.commit("apps", "main", map[string]string{"hello/object.yaml": strings.Replace(configMap("hello"), "{a: b}", "7", 1)})
	pull()
	broken := map[string]answer{"hello": {"failed", second}, "other": {"ok", second}}
	c.agree("a workload that the API server refuses", applied, observe, broken)
	if text := c.run("kalypso", "hub", "status", "prod", "--state", "failed"); !strings.Contains(text, "hello") || !strings.Contains(text, "ConfigMap") {
		t.Errorf("no reason is given:\n%s", text)
	}

	const again = "what fails is tried again"
	end = c.watch(account)
	c.retries("hello-main")
	c.retries("hello-main")
	const assignment = "prod-edge-hello-main-assignment"
	failedAt := func(commit string) {
		t.Helper()
		c.eventually("it waits for "+commit+" in vain", func() string {
			o := c.kustomization(assignment)
			if !strings.HasSuffix(o.Status.LastAttemptedRevision, commit) || !slices.ContainsFunc(o.Status.Conditions, func(is conditionOf) bool { return is.Type == "Ready" && is.Status == "False" }) {
				return fmt.Sprintf("%+v", o.Status)
			}
			return ""
		})
	}
	failedAt(second)
	c.retries(assignment)
	unrelated = c.commit("gitops", "prod", map[string]string{"README.md": "Still nothing."})
	c.reads("prod", unrelated)
	pull()
	failedAt(unrelated)
	broken["other"] = answer{"ok", unrelated}
	c.agree(again, applied, nothing, broken)
	said := end()
	never(again, map[string][]string{"hello": said["hello"]}, "ok", "progressing", "behind", "drifted")
	c.Logf("%s: %q", again, said)
	if last := said["hello"][len(said["hello"])-1]; !strings.Contains(last, "ReconciliationFailed: ConfigMap/") {
		t.Errorf("the reason is not that of the API server: %s", last)
	}

	c.kill()
	c.serve()
	c.agree("a hub that was killed", applied, nothing, broken)

	c.commit("apps", "main", map[string]string{"hello/object.yaml": configMap("hello")})
	pull()
	c.agree("mended", applied, observe, both(answer{"ok", unrelated}))
	const rolledBack = "rolled back"
	end = c.watch(account)
	back := c.promote(reconciler, "hello")
	pull()
	c.agree(rolledBack, applied, nothing, both(answer{"ok", back}))
	said = end()
	c.Logf("%s: %q", rolledBack, said)
	never(rolledBack, said, "drifted", "failed")
	for workload, all := range said {
		if _, text, _ := strings.Cut(strings.Join(all, "\n"), back[:7]); strings.Contains(text, unrelated[:7]) {
			t.Errorf("%s: %s was at the commit before once more: %q", rolledBack, workload, all)
		}
	}
}

// retries waits until Flux has tried to apply a Kustomization once more.
func (c *consumers) retries(name string) {
	c.Helper()
	at := time.Now().Format(time.RFC3339Nano)
	c.run("kubectl", "-n", "flux-system", "annotate", "kustomizations.kustomize.toolkit.fluxcd.io", name, "--overwrite", "reconcile.fluxcd.io/requestedAt="+at)
	c.eventually("Flux tries "+name+" again", func() string {
		if is := c.kustomization(name).Status.LastHandledReconcileAt; is != at {
			return "it did at " + is
		}
		return ""
	})
}

// kustomization returns the Kustomization with a name.
func (c *consumers) kustomization(name string) (found objectOf) {
	c.Helper()
	for _, o := range c.objects("kustomizations.kustomize.toolkit.fluxcd.io") {
		if o.Metadata.Name == name {
			found = o
		}
	}
	return found
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: b}\n"
}

// startFlux starts Flux's controllers. They send events to notification-controller.
func (c *consumers) startFlux() {
	c.Helper()
	notification := "../../internal/testing/notifications"
	c.run("go", "-C", notification, "build", "-o", c.tmp, "github.com/fluxcd/notification-controller")
	for of, dir := range map[string]string{"source": "flux", "kustomize": "flux", "helm": "flux", "notification": ""} {
		at := notification
		if dir != "" {
			at = filepath.Join(c.dir, "modules", dir)
		}
		module := c.run("go", "-C", at, "list", "-mod=mod", "-m", "-f", "{{.Dir}}", "github.com/fluxcd/"+of+"-controller")
		c.run("kubectl", "apply", "--server-side", "-f", filepath.Join(strings.TrimSpace(module), "config", "crd", "bases"))
	}
	c.run("kubectl", "create", "namespace", "flux-system")
	artifacts := filepath.Join(c.tmp, "artifacts")
	if err := os.Mkdir(artifacts, 0o755); err != nil {
		c.Fatal(err)
	}
	const events = "127.0.0.1:9690"
	common := func(health string, more ...string) []string {
		return append([]string{"--metrics-addr=0", "--health-addr=127.0.0.1:" + health}, more...)
	}
	bin := func(name string) string { return filepath.Join(c.dir, "bin", name) }
	c.start(filepath.Join(c.tmp, "notification-controller"), common("9794", "--events-addr="+events, "--receiverAddr=127.0.0.1:9695", "--rate-limit-interval=1s")...)
	send := []string{"--events-addr=http://" + events, "--requeue-dependency=2s"}
	c.start(bin("source-controller"), common("9791", append(send, "--storage-path="+artifacts, "--storage-addr=127.0.0.1:9790", "--storage-adv-addr=127.0.0.1:9790")...)...)
	c.start(bin("kustomize-controller"), common("9792", send...)...)
	c.start(bin("helm-controller"), common("9793", send...)...)
}

// account returns a kubeconfig of the service account that bootstrap prints.
func (c *consumers) account(namespace string) string {
	c.Helper()
	token := strings.TrimSpace(c.run("kubectl", "-n", namespace, "create", "token", "kalypso-observe", "--duration=8h"))
	all, err := os.ReadFile(filepath.Join(c.dir, "kubeconfig"))
	if err != nil {
		c.Fatal(err)
	}
	file := filepath.Join(c.tmp, "account.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(all), "token: admin", "token: "+token, 1)), 0o600); err != nil {
		c.Fatal(err)
	}
	if text, err := c.try("", "kubectl", "--kubeconfig", file, "get", "secrets", "-A"); err == nil {
		c.Errorf("the account may read secrets:\n%s", text)
	}
	return file
}

// kustomizations returns the state of each assignment's Kustomizations, as kubectl shows them. The
// state is failed if one is not ready. The commit is the one in the GitOps branch that the
// assignment's own Kustomization has.
func (c *consumers) kustomizations() map[string]answer {
	c.Helper()
	return c.answers("kustomizations.kustomize.toolkit.fluxcd.io", func(o *objectOf, is *answer) {
		if _, commit, found := strings.Cut(o.Status.LastAppliedRevision, "prod@sha1:"); found {
			is.commit = commit
		}
		for _, condition := range o.Status.Conditions {
			switch {
			case condition.Type != "Ready" || condition.Status == "True":
			case condition.Status == "False":
				is.state = "failed"
			case is.state == "ok":
				is.state = "progressing"
			}
		}
	})
}
