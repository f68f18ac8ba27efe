package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// The hub accepts the events that Flux's and Argo CD's own types produce. Argo CD uses the template
// of docs/hub.md.
func TestSlowWebhooks(t *testing.T) {
	isolated.Slow(t, "builds a program with the libraries of Flux and Argo CD")
	program := hubtest.Webhooks(t, "../../internal/testing/webhooks")
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

	// Argo CD's view of the assignment: the times are seconds of one minute.
	app := func(status string) map[string]any {
		var out map[string]any
		text := `{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
			"metadata": {"name": "prod-edge-hello-main-assignment", "namespace": "argocd", "annotations": {"kalypso.io/assignment": "prod/edge/hello-main"}},
			"spec": {"destination": {"name": "c0", "namespace": "hello"}, "source": {"path": "live/edge.a/hello-main"}, "syncPolicy": {"automated": {}}}, "status": ` + status + `}`
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	status := func(sync, health, phase string, started, finished, compared int) map[string]any {
		return app(fmt.Sprintf(`{"reconciledAt": "2026-01-02T15:04:%02dZ", "sync": {"status": %q, "revision": %q}, "health": {"status": %q, "lastTransitionTime": "2026-01-02T15:00:00Z"},
			"operationState": {"phase": %q, "message": "one \"or\" more", "startedAt": "2026-01-02T15:04:%02dZ", "finishedAt": "2026-01-02T15:04:%02dZ", "retryCount": 2, "syncResult": {"revision": %q}}}`,
			compared, sync, commit, health, phase, started, finished, commit))
	}
	with := func(a map[string]any, value any, path ...string) map[string]any {
		at := a
		for _, name := range path[:len(path)-1] {
			at = at[name].(map[string]any)
		}
		at[path[len(path)-1]] = value
		return a
	}
	synced := func() map[string]any { return status("Synced", "Healthy", "Succeeded", 5, 9, 10) }
	ofCluster, ofAll := s.token(api.Token{Role: string(access.Cluster), Cluster: "c0"}), s.token(api.Token{Role: string(access.Operator)})
	for _, c := range []struct {
		name, token string
		want        state.State
		apps        []map[string]any
	}{
		{"degraded", ofCluster, state.Failed, []map[string]any{status("Synced", "Degraded", "Succeeded", 5, 9, 10)}},
		{"healthy", ofAll, state.OK, []map[string]any{synced()}},
		{"not synced", ofCluster, state.Failed, []map[string]any{status("OutOfSync", "Healthy", "Failed", 5, 9, 10)}},
		{"healthy, with the address of its own cluster", ofCluster, state.OK, []map[string]any{with(synced(), map[string]any{"server": "https://kubernetes.default.svc"}, "spec", "destination")}},
		{"tried again and again", ofCluster, state.Failed, []map[string]any{status("OutOfSync", "Healthy", "Running", 5, 9, 10)}},
		{"healthy, on Argo CD's own cluster", ofCluster, state.OK, []map[string]any{with(synced(), "in-cluster", "spec", "destination", "name")}},
		{"changed by hand", ofCluster, state.Drifted, []map[string]any{status("OutOfSync", "Healthy", "Succeeded", 5, 9, 10)}},
		{"not compared after it was synced", ofCluster, state.Progressing, []map[string]any{status("OutOfSync", "Healthy", "Succeeded", 5, 9, 8)}},
		{"synced in the second of a comparison", ofCluster, state.Progressing, []map[string]any{status("OutOfSync", "Healthy", "Succeeded", 9, 9, 9)}},
		{"changed in the second in which it was synced", ofCluster, state.Drifted, []map[string]any{status("OutOfSync", "Healthy", "Succeeded", 5, 9, 9)}},
		{"compared a moment later", ofCluster, state.OK, []map[string]any{status("OutOfSync", "Healthy", "Succeeded", 9, 9, 9), status("Synced", "Healthy", "Succeeded", 9, 9, 9)}},
		{"a newer commit is to be synced", ofCluster, state.Progressing, []map[string]any{with(status("OutOfSync", "Healthy", "Succeeded", 5, 9, 10), "0000000000000000000000000000000000000000", "status", "operationState", "syncResult", "revision")}},
		{"degraded, healthy and degraded again", ofCluster, state.Failed, []map[string]any{status("Synced", "Degraded", "Succeeded", 5, 9, 10), synced(),
			with(status("Synced", "Degraded", "Succeeded", 5, 9, 10), "2026-01-02T15:06:00Z", "status", "health", "lastTransitionTime")}},
		{"the rest is without effect", ofCluster, state.OK, []map[string]any{synced(),
			app(`{}`), with(app(`{}`), nil, "status"), // never compared, and without a status
			app(`{"sync": {"status": "OutOfSync", "revision": "` + commit + `"}, "health": {"status": "Missing"}}`),                                                                               // never synced
			with(with(status("Synced", "Degraded", "Succeeded", 5, 9, 10), "prod-edge-hello-main", "metadata", "name"), "1111111111111111111111111111111111111111", "status", "sync", "revision"), // the workload's own repository
		}},
		{"never synced, and degraded", ofCluster, state.Failed, []map[string]any{app(`{"sync": {"status": "Synced", "revision": "` + commit + `"}, "health": {"status": "Degraded"}}`)}},
		{"progressing", ofCluster, state.Progressing, []map[string]any{status("Synced", "Progressing", "Succeeded", 5, 9, 10)}},
	} {
		t.Log(c.name)
		send(c.want, map[string]any{"Token": c.token, "ConfigMap": hubtest.Notifications(t, "../../docs/hub.md"), "Applications": c.apps})
	}
}
