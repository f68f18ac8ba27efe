package server_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// What Flux's and Argo CD's own types make is taken: of Argo CD, by the template of docs/hub.md.
func TestSlowWebhooks(t *testing.T) {
	isolated.Slow(t, "builds a program with the libraries of Flux and Argo CD")
	program := filepath.Join(t.TempDir(), "webhooks")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir, build.Env = "../../internal/testing/webhooks", append(os.Environ(), "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := serve(t, hubtest.SQLite(t)())
	send := func(want state.State, request map[string]any) {
		t.Helper()
		request["URL"], request["Key"], request["Commit"], request["Cluster"] = s.url, webhookKey, commit, "c0"
		in, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program)
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var is state.Row
		s.hub.Fleet().List(state.Filter{Environments: state.In("prod"), Cluster: "c0", Target: "hello-main"}, state.Position{}, func(r state.Row) bool { is = r; return false })
		if is.State != want || is.Commit != commit {
			t.Errorf("it is %s at %s, want %s\n%s", is.State, is.Commit, want, out)
		}
	}
	// The times of Flux's events are whole seconds.
	now := time.Now().Add(-time.Minute)
	for _, c := range []struct {
		event string
		after time.Duration
		want  state.State
	}{{"progressing", 0, state.Progressing}, {"ok", 0, state.OK}, {"failed", time.Second, state.Failed}, {"progressing", 2 * time.Second, state.Progressing}, {"failed", 2 * time.Second, state.Failed}, {"ok", 3 * time.Second, state.OK}} {
		send(c.want, map[string]any{"Flux": c.event, "At": now.Add(c.after)})
	}

	token := s.token(store.Token{Role: string(access.Cluster), Cluster: "c0"})
	for _, c := range []struct {
		phase, health string
		want          state.State
	}{{"Succeeded", "Degraded", state.Failed}, {"Succeeded", "Healthy", state.OK}, {"Failed", "Healthy", state.Failed}, {"Succeeded", "Progressing", state.Progressing}} {
		send(c.want, map[string]any{"Token": token, "ConfigMap": notifications(t), "Applications": []any{map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
			"metadata": map[string]any{"name": "prod-hello-main", "namespace": "argocd", "annotations": map[string]any{"kalypso.io/assignment": "prod/edge/hello-main"}},
			"spec":     map[string]any{"destination": map[string]any{"name": "c0", "namespace": "hello"}},
			"status": map[string]any{
				"sync": map[string]any{"status": "Synced", "revision": commit}, "health": map[string]any{"status": c.health},
				"operationState": map[string]any{"phase": c.phase, "message": "one \"or\" more objects", "finishedAt": "2026-01-02T15:04:05Z"},
			},
		}}})
	}
}

// notifications returns argocd-notifications-cm as docs/hub.md has it.
func notifications(t *testing.T) (config map[string]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/hub.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\nservice.webhook.kalypso:")
	block, _, found := strings.Cut(block, "\n```\n")
	if err := yaml.Unmarshal([]byte("service.webhook.kalypso:"+block), &config); err != nil || !found {
		t.Fatalf("docs/hub.md has no notifications of Argo CD: %v", err)
	}
	return config
}
