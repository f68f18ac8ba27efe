package observe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/observe"
	"github.com/kalypso-io/kalypso/internal/apiserver"
)

const (
	newer = "2222222222222222222222222222222222222222"
	older = "1111111111111111111111111111111111111111"

	kustomizations    = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
	helmReleases      = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"
	applications      = "/apis/argoproj.io/v1alpha1/applications"
	bundleDeployments = "/apis/fleet.cattle.io/v1alpha1/bundledeployments"
)

var now = time.Date(2026, 1, 2, 15, 30, 0, 0, time.UTC)

type object = map[string]any

// lists are an API server's objects, by path. Lists that are nil are forbidden. The API server
// lacks the API groups of all other paths.
type lists map[string][]object

// contexts serves clusters, and returns them as contexts c0, c1 ...
func contexts(t *testing.T, clusters ...lists) *observe.Clusters {
	t.Helper()
	var handlers []http.Handler
	for _, c := range clusters {
		handlers = append(handlers, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			items, there := c[r.URL.Path]
			switch {
			case items != nil:
				_ = json.NewEncoder(w).Encode(object{"kind": "List", "apiVersion": "v1", "items": items})
			case there, strings.Count(r.URL.Path, "/") == 4: // a client without permission to list learns nothing about groups
				w.WriteHeader(http.StatusForbidden)
				_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403})
			default:
				for path := range c {
					if strings.HasPrefix(path, r.URL.Path+"/") {
						_, _ = w.Write([]byte(`{"kind": "APIResourceList"}`))
						return
					}
				}
				w.WriteHeader(http.StatusNotFound)
				_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`))
			}
		}))
	}
	return serve(t, handlers...)
}

// serve serves API servers, and returns them as contexts c0, c1 ...
func serve(t *testing.T, handlers ...http.Handler) *observe.Clusters {
	t.Helper()
	config := object{"apiVersion": "v1", "kind": "Config", "users": []object{{"name": "u", "user": object{}}}}
	var names []string
	var servers, entries []object
	for i, h := range handlers {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		name := fmt.Sprint("c", i)
		names = append(names, name)
		servers = append(servers, object{"name": name, "cluster": object{"server": s.URL}})
		entries = append(entries, object{"name": name, "context": object{"cluster": name, "user": "u"}})
	}
	config["clusters"], config["contexts"] = servers, entries
	data, _ := json.Marshal(config) // JSON is YAML
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := apiserver.Open(path, names)
	if err != nil {
		t.Fatal(err)
	}
	return observe.NewClusters(opened, func(context string) string { return context }, func() time.Time { return now })
}

// text formats a report as CLUSTER: ITEM, ITEM ..., or as CLUSTER in part if it is not a snapshot.
func text(t *testing.T, c *observe.Clusters) string {
	t.Helper()
	reports, err := c.Reports(t.Context())
	var out []string
	for _, r := range reports {
		var items []string
		for _, i := range r.Items {
			commit := map[string]string{newer: "newer", older: "older", "": "-"}[i.Commit]
			before := map[string]string{newer: " after newer", older: " after older"}[i.Before]
			items = append(items, strings.TrimSpace(fmt.Sprintf("%s%s %s %s@%s%s %s", i.Assignment, i.Object, i.State, i.Path, commit, before, i.Message)))
		}
		part := ""
		if !r.Snapshot {
			part = " in part"
		}
		whole := r.Snapshot && (r.Digest == "") == (len(items) == 0) || !r.Snapshot && err != nil && r.Digest+r.UID == ""
		if !whole || !r.At.Equal(now) {
			t.Errorf("got %+v, %v", r, err)
		}
		out = append(out, r.Cluster+part+": "+strings.Join(items, "; "))
	}
	if err != nil {
		out = append(out, "error: "+err.Error())
	}
	return strings.Join(out, "\n")
}

// automated is the spec of an Application that follows its branch, with more.
func automated(spec string) string {
	return `{"syncPolicy": {"automated": {}}, ` + strings.TrimPrefix(spec, "{")
}

// of is an object of an assignment, with a JSON spec and status.
func of(name, assignment, spec, status string) object {
	meta := object{"name": name, "namespace": "n", "generation": 1}
	if assignment != "" {
		meta["annotations"] = object{"kalypso.io/assignment": assignment}
	}
	return object{"apiVersion": "x/v1", "kind": "X", "metadata": meta, "spec": json.RawMessage(spec), "status": json.RawMessage(status)}
}

func ready(state, message, applied, attempted string) string {
	quoted, _ := json.Marshal(message) // a string has JSON
	return fmt.Sprintf(`{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": %q, "reason": "R", "message": %s, "lastTransitionTime": "2026-01-02T15:00:00Z"}],
		"lastAppliedRevision": "prod@sha1:%s", "lastAttemptedRevision": "prod@sha1:%s"}`, state, quoted, applied, attempted)
}

// app is an Application that has applied an assignment's folder on a cluster.
func app(target, cluster string) object {
	return of("prod-eu-"+target+"-assignment", "prod/eu/"+target, automated(`{"destination": {"name": "`+cluster+`"}}`),
		`{"sync": {"status": "Synced", "revision": "`+newer+`"}, "health": {"status": "Healthy"}}`)
}

// kustomization is a Kustomization that has applied an assignment's folder.
func kustomization(target string) object {
	return of("prod-eu-"+target+"-assignment", "prod/eu/"+target, "{}", ready("True", "", newer, newer))
}

func TestFlux(t *testing.T) {
	const a, path = "prod/eu/shop-main", `{"path": "./tree/eu/shop-main"}`
	const name = "prod-eu-shop-main-assignment"
	again := func(state string) string { // the newer commit is being applied, and the older one was ready
		return strings.TrimSuffix(ready(state, "m", older, newer), "}") + `, "history": [{"lastReconciledStatus": "ReconciliationSucceeded"}]}`
	}
	for title, c := range map[string]struct {
		kustomizations, helmReleases []object
		want                         string
	}{
		"ready":                              {[]object{of(name, a, path, ready("True", "", newer, newer))}, nil, "prod/eu/shop-main ok tree/eu/shop-main@newer"},
		"failed":                             {[]object{of(name, a, path, ready("False", "m", older, newer))}, nil, "prod/eu/shop-main failed tree/eu/shop-main@newer Kustomization n/" + name + " R: m"},
		"on its way":                         {[]object{of(name, a, path, ready("Unknown", "m", older, newer))}, nil, "prod/eu/shop-main progressing tree/eu/shop-main@newer Kustomization n/" + name + " m"},
		"on its way from one that was ready": {[]object{of(name, a, path, again("Unknown"))}, nil, "prod/eu/shop-main progressing tree/eu/shop-main@newer after older Kustomization n/" + name + " m"},
		"failed after one that was ready":    {[]object{of(name, a, path, again("False"))}, nil, "prod/eu/shop-main failed tree/eu/shop-main@newer Kustomization n/" + name + " R: m"},
		"and so is the workload": {[]object{of(name, a, path, again("Unknown"))}, []object{of("shop", a, "{}", ready("Unknown", "m", "1.0.0", "1.1.0"))},
			"prod/eu/shop-main progressing tree/eu/shop-main@newer HelmRelease n/shop m"},
		"the workload failed before": {[]object{of(name, a, path, ready("Unknown", "m", older, newer)), of("shop", a, `{"path": "deploy"}`, ready("False", "refused", "1.0.0", "1.1.0"))}, nil,
			"prod/eu/shop-main failed tree/eu/shop-main@older Kustomization n/shop R: refused"},
		"the workload failed, and is waited for": {[]object{of(name, a, path, strings.Replace(ready("Unknown", "m", older, newer), "[", `[{"type": "Healthy", "status": "Unknown"}, `, 1)), of("shop", a, `{"path": "deploy"}`, ready("False", "refused", "1.0.0", "1.1.0"))}, nil,
			"prod/eu/shop-main failed tree/eu/shop-main@newer Kustomization n/shop R: refused"},
		"what it waits for failed": {[]object{of(name, a, path, ready("False", "timeout", older, newer)), of("shop", a, `{"path": "deploy"}`, ready("False", "refused", "1.0.0", "1.1.0"))}, nil,
			"prod/eu/shop-main failed tree/eu/shop-main@newer Kustomization n/shop R: refused"},
		"without annotation":        {[]object{of(name, "", path, ready("True", "", newer, newer))}, nil, name + " ok tree/eu/shop-main@newer"},
		"somebody else's":           {[]object{of("podinfo", "", path, ready("True", "", newer, newer))}, []object{of(name, "", "{}", ready("True", "", newer, newer))}, ""},
		"the workload of another":   {[]object{of(name, a, path, ready("True", "", newer, newer)), of("shop", a, `{"path": "deploy"}`, ready("True", "", older, older))}, nil, "prod/eu/shop-main ok tree/eu/shop-main@newer"},
		"the workload failed":       {[]object{of(name, a, path, ready("True", "", newer, newer))}, []object{of("shop", a, "{}", ready("False", "m", "1.0.0", "1.1.0"))}, "prod/eu/shop-main failed tree/eu/shop-main@newer HelmRelease n/shop R: m"},
		"a name of a team's own":    {[]object{of("anything", a, `{}`, ready("True", "", newer, newer))}, nil, "prod/eu/shop-main ok @newer"},
		"a release alone":           {nil, []object{of("shop", a, "{}", ready("True", "", newer, newer))}, ""},
		"hostile text":              {[]object{of(name, a, "{}", ready("False", "a\nb\x1b[2J"+strings.Repeat("x", 9000), newer, newer))}, nil, "prod/eu/shop-main failed @newer Kustomization n/" + name + " R: a b [2J"},
		"nothing could be applied":  {[]object{of(name, a, path, `{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "m"}]}`)}, nil, "prod/eu/shop-main failed tree/eu/shop-main@- Kustomization n/prod-eu-shop-main-assignment R: m"},
		"a status that cannot be":   {[]object{of(name, a, path, `{"conditions": 7}`)}, nil, ""},
		"two assignments, sorted":   {[]object{of("b", "prod/eu/b", "{}", ready("True", "", newer, newer)), of("a", "prod/eu/a", "{}", ready("True", "", newer, newer))}, nil, "prod/eu/a ok @newer; prod/eu/b ok @newer"},
		"the annotation of nothing": {[]object{of("a", "", "{}", ready("True", "", newer, newer))}, nil, ""},
	} {
		got := text(t, contexts(t, lists{kustomizations: c.kustomizations, helmReleases: append([]object{}, c.helmReleases...)}))
		if c.kustomizations == nil {
			got = text(t, contexts(t, lists{kustomizations: {}, helmReleases: c.helmReleases}))
		}
		if want := "c0: " + c.want; got != want && (!strings.Contains(title, "hostile") || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: got %s, want %s", title, got, want)
		}
		if len(got) > 5000 {
			t.Errorf("%s: %d bytes", title, len(got))
		}
	}
}

// A failed object stays failed during the next attempt, with its reason.
func TestFluxAgain(t *testing.T) {
	const a, path, name = "prod/eu/shop-main", `{"path": "tree/eu/shop-main"}`, "prod-eu-shop-main-assignment"
	failed := "c0: prod/eu/shop-main failed tree/eu/shop-main@newer Kustomization n/" + name + " R: refused"
	progressing := "c0: prod/eu/shop-main progressing tree/eu/shop-main@newer Kustomization n/" + name + " again"
	changed := of(name, a, path, strings.Replace(ready("Unknown", "again", older, newer), `"Ready"`, `"Ready", "observedGeneration": 2`, 1))
	changed["metadata"].(object)["generation"] = 2
	short := strings.TrimSuffix(ready("Unknown", "again", older, newer), "}") + `, "history": [{"lastReconciledStatus": "HealthCheckFailed", "metadata": {"revision": "prod@sha1:` + newer + `"}}]}`
	objects := lists{kustomizations: {of(name, a, path, ready("False", "refused", older, newer))}, helmReleases: {}}
	c := contexts(t, objects)
	for i, step := range []struct {
		is   object
		want string
	}{
		{of(name, a, path, ready("Unknown", "again", older, newer)), progressing},
		{of(name, a, path, short), "c0: prod/eu/shop-main failed tree/eu/shop-main@newer Kustomization n/" + name + " HealthCheckFailed: failed, and is tried again"},
		{of(name, a, path, ready("False", "refused", older, newer)), failed},
		{of(name, a, path, ready("Unknown", "again", older, newer)), failed},
		{of(name, a, path, short), failed},
		{of(name, a, path, ready("Unknown", "again", older, older)), strings.Replace(progressing, "newer", "older", 1)},
		{of(name, a, path, ready("Unknown", "again", older, newer)), progressing},
		{of(name, a, path, ready("False", "refused", older, newer)), failed},
		{changed, strings.Replace(progressing, " again", " was changed, and Flux has not looked at it since", 1)},
	} {
		objects[kustomizations] = []object{step.is}
		if got := text(t, c); got != step.want {
			t.Errorf("%d: got %s, want %s", i, got, step.want)
		}
	}
}

func TestArgoCD(t *testing.T) {
	app := func(name, spec, sync, revision, phase, synced string) object {
		return of(name, "prod/eu/shop-main", automated(spec), fmt.Sprintf(`{"sync": {"status": %q, "revision": %q}, "health": {"status": "Healthy"},
			"operationState": {"phase": %q, "message": "o", "syncResult": {"revision": %q}}}`, sync, revision, phase, synced))
	}
	const name, path = "prod-eu-shop-main-assignment", `{"source": {"path": "eu/shop-main"}}`
	const k = "Application n/" + name + " "
	retried := func(times int) object {
		return of(name, "prod/eu/shop-main", path, fmt.Sprintf(`{"sync": {"status": "OutOfSync", "revision": %q}, "health": {"status": "Healthy"},
			"operationState": {"phase": "Running", "message": "o", "retryCount": %d}}`, newer, times))
	}
	compared := func(started, ended, at int) object { // the seconds of a minute
		return of(name, "prod/eu/shop-main", automated(path), fmt.Sprintf(`{"reconciledAt": "2026-01-02T15:04:%02dZ", "sync": {"status": "OutOfSync", "revision": %q}, "health": {"status": "Healthy"},
			"operationState": {"phase": "Succeeded", "startedAt": "2026-01-02T15:04:%02dZ", "finishedAt": "2026-01-02T15:04:%02dZ", "syncResult": {"revision": %q}}}`, at, newer, started, ended, newer))
	}
	const early = "c0: prod/eu/shop-main progressing eu/shop-main@newer " + k + "was synced, and is not compared again yet"
	const drifted = "c0: prod/eu/shop-main drifted eu/shop-main@newer " + k + "is OutOfSync"
	for title, c := range map[string]struct {
		app  object
		want string
	}{
		"compared before its sync":                  {compared(2, 4, 1), early},
		"compared while it was synced":              {compared(2, 4, 3), early},
		"compared when its sync ended":              {compared(2, 4, 4), drifted},
		"compared after its sync":                   {compared(2, 4, 5), drifted},
		"compared in the second of its sync":        {compared(4, 4, 4), early},
		"compared in the second after a short sync": {compared(4, 4, 5), drifted},
		"synced":            {app(name, path, "Synced", newer, "Succeeded", newer), "c0: prod/eu/shop-main ok eu/shop-main@newer"},
		"changed by hand":   {app(name, path, "OutOfSync", newer, "Succeeded", newer), "c0: prod/eu/shop-main drifted eu/shop-main@newer " + k + "is OutOfSync"},
		"a newer commit":    {app(name, path, "OutOfSync", newer, "Succeeded", older), "c0: prod/eu/shop-main progressing eu/shop-main@newer " + k + "is OutOfSync"},
		"being synced":      {app(name, path, "OutOfSync", newer, "Running", newer), "c0: prod/eu/shop-main progressing eu/shop-main@newer " + k + "is being synced: o"},
		"retried once":      {retried(1), "c0: prod/eu/shop-main progressing eu/shop-main@newer " + k + "is being synced: o"},
		"retried":           {retried(2), "c0: prod/eu/shop-main failed eu/shop-main@newer " + k + "could not be synced: o"},
		"never synced":      {app(name, path, "OutOfSync", newer, "", ""), "c0: prod/eu/shop-main progressing eu/shop-main@newer " + k + "is OutOfSync"},
		"failed":            {app(name, path, "OutOfSync", newer, "Failed", newer), "c0: prod/eu/shop-main failed eu/shop-main@newer " + k + "could not be synced: o"},
		"of a set":          {app(name+"-eu-1", `{"destination": {"name": "eu-1"}}`, "Synced", newer, "Succeeded", newer), "c0: \neu-1: prod/eu/shop-main ok @newer"},
		"on its own":        {app(name, `{"destination": {"server": "https://kubernetes.default.svc"}}`, "Synced", newer, "Succeeded", newer), "c0: prod/eu/shop-main ok @newer"},
		"at an address":     {app(name, `{"destination": {"server": "https://eu-3.example:6443"}}`, "Synced", newer, "Succeeded", newer), "c0: \neu-3.example:6443: prod/eu/shop-main ok @newer"},
		"a chart's version": {app(name, path, "Synced", "1.2.3", "Succeeded", "1.2.3"), "c0: "},
	} {
		if got := text(t, contexts(t, lists{applications: {c.app}})); got != c.want {
			t.Errorf("%s: got %s, want %s", title, got, c.want)
		}
	}
}

func TestFleet(t *testing.T) {
	const ready = `"conditions": [{"type": "Ready", "status": "False", "message": "m"}, {"type": "Deployed", "status": "%s", "message": "d"}]`
	bundle := func(part, spec, status string) object {
		o := of("b-"+part, "", spec, status)
		o["metadata"].(object)["labels"] = object{"kalypso.io/environment": "prod", "kalypso.io/cluster-type": "eu", "kalypso.io/deployment-target": "shop-main", "kalypso.io/bundle": part,
			"fleet.cattle.io/cluster": "eu-1", "fleet.cattle.io/commit": newer}
		return o
	}
	const deployed = `{"deploymentID": "2", "stagedDeploymentID": "2"}`
	fine := bundle("workspace", deployed, `{"appliedDeploymentID": "2", "ready": true, "nonModified": true}`)
	const k = "BundleDeployment n/b-workload "
	for title, c := range map[string]struct{ spec, status, want string }{
		"deployed":     {deployed, `{"appliedDeploymentID": "2", "ready": true, "nonModified": true}`, "ok @newer"},
		"to come":      {deployed, `{"appliedDeploymentID": "1", "ready": true, "nonModified": true}`, "progressing @newer " + k + "is not deployed yet"},
		"held back":    {`{"deploymentID": "1", "stagedDeploymentID": "2"}`, `{"appliedDeploymentID": "1", "ready": true, "nonModified": true}`, "progressing @newer " + k + "is not deployed yet"},
		"not deployed": {deployed, `{"appliedDeploymentID": "1", ` + fmt.Sprintf(ready, "False") + `}`, "failed @newer " + k + "could not be deployed: d"},
		"not ready":    {deployed, `{"appliedDeploymentID": "2", ` + fmt.Sprintf(ready, "True") + `}`, "progressing @newer " + k + "is not ready: m"},
		"modified":     {deployed, `{"appliedDeploymentID": "2", "ready": true, ` + fmt.Sprintf(ready, "True") + `}`, "drifted @newer " + k + "was modified on the cluster: m"},
	} {
		if got, want := text(t, contexts(t, lists{bundleDeployments: {fine, bundle("workload", c.spec, c.status)}})), "c0: \neu-1: prod/eu/shop-main "+c.want; got != want {
			t.Errorf("%s: got %s, want %s", title, got, want)
		}
	}
}

// An object that has gone from a cluster changes the snapshot, too. A list that could not be read
// proves nothing.
func TestSnapshots(t *testing.T) {
	central, edge := lists{applications: {app("a", "eu-1")}}, lists{kustomizations: {kustomization("b")}}
	c := contexts(t, central, edge)
	if got, want := text(t, c), "c0: \nc1: prod/eu/b ok @newer\neu-1: prod/eu/a ok @newer"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	central[applications] = nil
	if got, want := text(t, c), "c1: prod/eu/b ok @newer\nerror: "; !strings.HasPrefix(got, want) || !strings.Contains(got, "listing the Applications of context c0") {
		t.Errorf("got %s, want %s", got, want)
	}
	central[kustomizations] = []object{} // the objects of other reconcilers are not on its list
	if got, want := text(t, contexts(t, central, edge)), "c0: \nc1: prod/eu/b ok @newer"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	edge[helmReleases] = nil // this kind belongs to the same reconciler
	if got, want := text(t, c), "listing the HelmReleases of context c1"; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	delete(central, kustomizations)
	delete(edge, helmReleases)
	central[applications] = []object{}
	if got, want := text(t, c), "c0: \nc1: prod/eu/b ok @newer\neu-1: "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The oldest object of a cluster distinguishes it from another cluster with the same name. It does
// so even if there are more objects, or a different order. If a list could not be read, there is no
// UID.
func TestUID(t *testing.T) {
	made := func(name, created string) object {
		o := of(name+"-assignment", "", "{}", ready("True", "", newer, newer))
		o["metadata"].(object)["uid"], o["metadata"].(object)["creationTimestamp"] = "uid-of-"+name, created
		return o
	}
	old, twin, young := made("b", "2026-01-02T15:00:00Z"), made("c", "2026-01-02T15:00:00Z"), made("a", "2026-01-02T15:00:01Z")
	for want, items := range map[string][]object{
		"uid-of-b": {young, old, twin},
		"uid-of-c": {twin, young},
		"uid-of-a": {young},
		"":         {},
	} {
		reports, err := contexts(t, lists{kustomizations: items}).Reports(t.Context())
		if err != nil || len(reports) != 1 || reports[0].UID != want {
			t.Errorf("%s: %+v, %v", want, reports, err)
		}
	}
	reports, err := contexts(t, lists{applications: {app("a", "c1")}}, lists{kustomizations: nil}).Reports(t.Context())
	if err == nil || len(reports) != 1 || reports[0].Cluster != "c1" || reports[0].UID != "" {
		t.Errorf("with a server that cannot be read: %+v, %v", reports, err)
	}
}

// While a server cannot be read, a removal is noticed on all clusters except those that it may have
// more about.
func TestUnreadable(t *testing.T) {
	argo := lists{applications: {app("a", "c4"), app("b", "eu-1")}}
	other := lists{applications: {app("g", "eu-2"), app("h", "eu-1")}}
	flux1 := lists{kustomizations: {kustomization("c"), kustomization("d")}}
	flux2 := lists{kustomizations: {kustomization("e")}}
	both := lists{kustomizations: {kustomization("f")}} // Flux and the first Argo CD
	all := []lists{argo, flux1, flux2, {}, both, other} // c0 to c5
	expect := func(c *observe.Clusters, when string, want ...string) {
		t.Helper()
		got, _, _ := strings.Cut(text(t, c), "\nerror: ")
		got = strings.NewReplacer(" ok @newer", "", "prod/eu/", "").Replace(got)
		if want := strings.Join(want, "\n"); got != want {
			t.Errorf("%s: got\n%s, want\n%s", when, got, want)
		}
	}
	down := func(l lists) (up func()) {
		was := maps.Clone(l)
		clear(l)
		for _, path := range []string{kustomizations, helmReleases, applications, bundleDeployments} {
			l[path] = nil
		}
		return func() { clear(l); maps.Copy(l, was) }
	}
	up := down(argo)
	c := contexts(t, all...)
	expect(c, "of a server that was never read nothing is known", "c1: c; d", "c2: e", "c4: f", "eu-1 in part: h", "eu-2 in part: g")
	up()
	expect(c, "it answers", "c0: ", "c1: c; d", "c2: e", "c3: ", "c4: a; f", "c5: ", "eu-1: b; h", "eu-2: g")
	up = down(argo)
	flux1[kustomizations], other[applications] = []object{kustomization("d")}, []object{app("h", "eu-1")}
	expect(c, "it is away again", "c1: d", "c2: e", "c3: ", "c4 in part: f", "c5: ", "eu-1 in part: h", "eu-2: ")
	up()
	up = down(flux2)
	argo[applications] = []object{app("b", "eu-1")}
	expect(c, "a cluster with Flux is away", "c0: ", "c1: d", "c3: ", "c4: f", "c5: ", "eu-1: b; h", "eu-2: ")
	up()
	expect(c, "all answer", "c0: ", "c1: d", "c2: e", "c3: ", "c4: f", "c5: ", "eu-1: b; h", "eu-2: ")
}

// A server that hangs does not delay the reads of others. Several such servers together take no
// longer than one.
func TestHanging(t *testing.T) {
	const healthy = "c10"
	handlers := make([]http.Handler, 21)
	for i := range handlers {
		handlers[i] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if fmt.Sprint("c", i) != healthy {
				<-r.Context().Done()
				return
			}
			list := object{"kind": "List", "apiVersion": "v1", "items": []object{}}
			if r.URL.Path == kustomizations {
				list["items"] = []object{kustomization("a")}
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(list)
		})
	}
	c := serve(t, handlers...)
	silent := fmt.Errorf("%w (2s)", apiserver.ErrSilent)
	var said string
	for round := range 3 {
		// In the first round, which servers hang is not known, and their time is over at once.
		// Later it is over only after the healthy server was read.
		read, over := make(chan struct{}), make(chan struct{})
		if round == 0 {
			close(over)
		} else {
			late := time.AfterFunc(time.Minute, func() {
				t.Error("a healthy server waits for those that hang")
				close(over)
			})
			go func() {
				if <-read; late.Stop() {
					close(over)
				}
			}()
		}
		c.Bound(func(ctx context.Context, name string) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			if name == healthy {
				return ctx, func() { cancel(nil); close(read) }
			}
			go func() { <-over; cancel(silent) }()
			return ctx, func() { cancel(nil) }
		})
		reports, err := c.Reports(t.Context())
		one := len(reports) == 1 && reports[0].Cluster == healthy && reports[0].Snapshot
		if !one || !errors.Is(err, apiserver.ErrSilent) {
			t.Fatalf("round %d: %+v, %v", round, reports, err)
		}
		const want = "listing the Kustomizations of context c7: no answer in time (2s)"
		if err.Error() != said && round > 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("round %d says %s, and before that %s", round, err, said)
		}
		said = err.Error()
	}
}

// The error contains the time limit of the server.
func TestTimeout(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	c.Timeout = time.Millisecond
	const want = " does not answer: listing the Kustomizations of context c0: no answer in time (1ms)"
	if got := text(t, c); !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
