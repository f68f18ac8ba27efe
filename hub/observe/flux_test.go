package observe_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// What the hub knows of a cluster with a real Flux is what kubectl says, by its events and by
// what kalypso observe lists with the permissions that bootstrap prints.
func TestSlowFlux(t *testing.T) {
	isolated.Slow(t, "runs Flux with KALYPSO_LONG=1")
	c := startConsumers(t)
	if c == nil {
		return // make test-long says so
	}
	const reconciler = `flux: interval: "1m"`
	c.commit("apps", "main", map[string]string{"hello/object.yaml": configMap("hello"), "other/object.yaml": configMap("other")})
	first := c.promote(reconciler, "hello")
	c.serve()
	c.startFlux()
	c.bootstrap()
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

	unrelated := c.commit("gitops", "prod", map[string]string{"README.md": "Nothing that is applied."})
	pull()
	c.agree("a commit that is about something else", applied, observe, both(answer{"ok", unrelated}))

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

	c.kill()
	c.serve()
	c.agree("a hub that was killed", applied, nothing, broken)

	c.commit("apps", "main", map[string]string{"hello/object.yaml": configMap("hello")})
	pull()
	c.agree("mended", applied, observe, both(answer{"ok", second}))
	back := c.promote(reconciler, "hello")
	pull()
	c.agree("rolled back", applied, observe, both(answer{"ok", back}))
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: b}\n"
}

// startFlux starts Flux's controllers, which send events to notification-controller.
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

// kustomizations returns what kubectl says of the Kustomizations of each assignment: failed where
// one is not ready, at the commit of the GitOps branch that the assignment's own has.
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
