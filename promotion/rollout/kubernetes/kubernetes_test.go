package kubernetes_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kalypso-io/kalypso/internal/git"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/kubernetes"
)

const (
	kustomizations = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
	helmReleases   = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"
	applications   = "/apis/argoproj.io/v1alpha1/applications"

	commit = "2222222222222222222222222222222222222222"
	older  = "1111111111111111111111111111111111111111"
	token  = "s3cret-token"
)

// cluster is an API server that knows lists of objects, by path.
type cluster struct {
	*httptest.Server
	objects map[string][]object
	answer  func(w http.ResponseWriter, r *http.Request) bool // false for the usual
	asked   []string
}

type object = map[string]any

// serve answers as an API server does, two objects on a page.
func serve(t *testing.T, objects map[string][]object) *cluster {
	t.Helper()
	c := &cluster{objects: objects}
	c.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked = append(c.asked, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		if c.answer != nil && c.answer(w, r) {
			return
		}
		all, known := c.objects[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			refuse(w, http.StatusUnauthorized, "Unauthorized", "who are you")
		case !known:
			refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		default:
			first := 0
			_, _ = fmt.Sscanf(r.URL.Query().Get("continue"), "from-%d", &first)
			page, next := all[first:], ""
			if len(page) > 2 {
				page, next = page[:2], fmt.Sprintf("from-%d", first+2)
			}
			_ = json.NewEncoder(w).Encode(object{"kind": "List", "apiVersion": "v1", "metadata": object{"continue": next}, "items": page})
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}

// kubeconfig writes a kubeconfig with a context for each server, the first the current
// one. user is the user's part.
func kubeconfig(t *testing.T, user string, servers ...*httptest.Server) string {
	t.Helper()
	var clusters, contexts strings.Builder
	for i, s := range servers {
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		fmt.Fprintf(&clusters, "- name: c%d\n  cluster: {server: %q, certificate-authority-data: %s}\n", i, s.URL, base64.StdEncoding.EncodeToString(ca))
		fmt.Fprintf(&contexts, "- name: edge-%d\n  context: {cluster: c%d, user: me}\n", i, i)
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: edge-0\nclusters:\n" + clusters.String() + "contexts:\n" + contexts.String() + "users:\n- name: me\n  user: " + user + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const known = "{token: " + token + "}"

func open(t *testing.T, o kubernetes.Options) *kubernetes.Source {
	t.Helper()
	s, err := kubernetes.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wanted has assignment prod/edge/a, b ..., each applied by an object named a-assignment.
func wanted(backend string, names ...string) *rollout.DesiredState {
	w := &rollout.DesiredState{Commits: []git.Hash{plumbing.NewHash(commit)}}
	for _, n := range names {
		a := rollout.Assignment{ID: "prod/edge/" + n, Backend: backend}
		if backend == "flux" || backend == "argocd" {
			a.Object = n + "-assignment"
		}
		w.Assignments = append(w.Assignments, a)
	}
	return w
}

// flux is a Kustomization or HelmRelease of an assignment, with a JSON status.
func flux(name, assignment, status string) object {
	return named(name, assignment, object{}, `{"observedGeneration": 3, `+strings.TrimPrefix(status, "{"))
}

func named(name, assignment string, spec object, status string) object {
	meta := object{"name": name, "namespace": "flux-system", "generation": 3}
	if assignment != "" {
		meta["annotations"] = object{"kalypso.io/assignment": "prod/edge/" + assignment}
	}
	var s any
	if err := json.Unmarshal([]byte(status), &s); err != nil {
		panic(err.Error() + ": " + status)
	}
	return object{"apiVersion": "x/v1", "kind": "X", "metadata": meta, "spec": spec, "status": s}
}

// ready is a status at a revision of the branch.
func ready(state, reason, message, applied, attempted string) string {
	revision := func(c string) string {
		if c == "" {
			return ""
		}
		return "main@sha1:" + c
	}
	quoted, _ := json.Marshal(message) // a string has JSON
	return fmt.Sprintf(`{"conditions": [{"type": "Ready", "status": %q, "reason": %q, "message": %s, "lastTransitionTime": "2026-01-02T15:00:00Z"}],
		"lastAppliedRevision": %q, "lastAttemptedRevision": %q}`, state, reason, quoted, revision(applied), revision(attempted))
}

// text is the one report as STATE SINCE: MESSAGE.
func text(reports []rollout.Report) string {
	if len(reports) != 1 {
		return fmt.Sprintf("%d reports", len(reports))
	}
	r := reports[0]
	since := "-"
	if !r.Since.IsZero() {
		since = r.Since.UTC().Format("15:04")
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", r.State, since, r.Message), ": ")
}

func TestFlux(t *testing.T) {
	const k = "Kustomization flux-system/a-assignment "
	healthy := flux("a-assignment", "a", ready("True", "ReconciliationSucceeded", "", commit, commit))
	again := `{"conditions": [{"type": "Ready", "status": "Unknown", "reason": "Progressing", "message": "Reconciliation in progress", "lastTransitionTime": "2026-01-02T15:00:00Z"}],
		"lastAppliedRevision": "main@sha1:` + commit + `", "lastAttemptedRevision": "main@sha1:` + commit + `"`
	history := `, "history": [{"firstReconciled": "2026-01-02T12:00:00Z", "lastReconciled": "2026-01-02T15:00:00Z", "lastReconciledStatus": %q},
		{"firstReconciled": "2026-01-02T10:00:00Z", "lastReconciled": "2026-01-02T12:30:00Z", "lastReconciledStatus": "HealthCheckFailed"}]}`
	// The spec was changed at 14:00, and could not be applied since.
	changed := func(generation int, looked, last string) object {
		o := named("a-assignment", "a", object{}, fmt.Sprintf(`{"observedGeneration": 1, "conditions": [{"type": "Ready", "status": %s, "reason": "X", "message": "x", "lastTransitionTime": "2026-01-02T15:00:00Z"}],
			"lastAppliedRevision": "main@sha1:%[3]s", "lastAttemptedRevision": "main@sha1:%[4]s",
			"history": [{"firstReconciled": "2026-01-02T12:00:00Z", "lastReconciled": %[2]q, "lastReconciledStatus": "HealthCheckFailed", "metadata": {"revision": "main@sha1:%[4]s"}}]}`, looked, last, older, commit))
		meta := o["metadata"].(object)
		meta["generation"] = generation
		meta["managedFields"] = []object{{"manager": "kustomize-controller", "time": "2026-01-02T14:00:00Z", "fieldsV1": object{"f:spec": object{}}},
			{"manager": "flux", "time": "2026-01-02T16:00:00Z", "fieldsV1": object{"f:metadata": object{}}}}
		return o
	}
	release := func(more string) object {
		return flux("a", "a", `{"lastAttemptedGeneration": 3, `+more+`, "conditions": [{"type": "Ready", "status": "Unknown", "reason": "Progressing", "message": "Running 'upgrade'"},
			{"type": "Released", "status": "False", "reason": "UpgradeFailed", "message": "x", "lastTransitionTime": "2026-01-02T14:00:00Z"}]}`)
	}
	deleted := flux("a-assignment", "a", ready("True", "ReconciliationSucceeded", "", commit, commit))
	deleted["metadata"].(object)["deletionTimestamp"] = "2026-01-02T15:00:00Z"
	suspended := flux("a-assignment", "a", ready("True", "ReconciliationSucceeded", "", older, older))
	suspended["spec"].(object)["suspend"] = true
	for name, c := range map[string]struct {
		kustomizations, helmReleases []object
		want                         string
	}{
		"ready":                         {[]object{healthy}, nil, "healthy 15:00"},
		"by its name":                   {[]object{flux("a-assignment", "", ready("True", "", "", commit, commit))}, nil, "healthy 15:00"},
		"another's name":                {[]object{flux("a-assignment", "b", ready("True", "", "", commit, commit))}, nil, "0 reports"},
		"not wanted":                    {[]object{flux("c", "c", ready("True", "", "", commit, commit))}, nil, "0 reports"},
		"an older commit":               {[]object{flux("a-assignment", "a", ready("True", "", "", older, older))}, nil, "progressing -: " + k + "is not at a wanted commit: is at main@sha1:" + older},
		"failed":                        {[]object{flux("a-assignment", "a", ready("False", "HealthCheckFailed", "timeout", older, commit))}, nil, "failed 15:00: " + k + "HealthCheckFailed: timeout"},
		"failed before":                 {[]object{flux("a-assignment", "a", ready("False", "BuildFailed", "x", older, older))}, nil, "progressing -: " + k + "is not at a wanted commit: BuildFailed: x"},
		"failed at once":                {[]object{flux("a-assignment", "a", ready("False", "ArtifactFailed", "x", "", ""))}, nil, "failed 15:00: " + k + "ArtifactFailed: x"},
		"ready, and not all is written": {[]object{flux("a-assignment", "a", ready("True", "", "Applied revision", older, commit))}, nil, "progressing -: " + k + "Applied revision"},
		"waiting":                       {[]object{flux("a-assignment", "a", ready("False", "DependencyNotReady", "b is not ready", older, older))}, nil, "progressing -: " + k + "b is not ready"},
		"on its way":                    {[]object{flux("a-assignment", "a", ready("Unknown", "Progressing", "Reconciliation in progress", older, commit))}, nil, "progressing -: " + k + "Reconciliation in progress"},
		"once more":                     {[]object{flux("a-assignment", "a", again+fmt.Sprintf(history, "ReconciliationSucceeded"))}, nil, "healthy 12:30"},
		"once more, after failures":     {[]object{flux("a-assignment", "a", again+fmt.Sprintf(history, "HealthCheckFailed"))}, nil, "progressing -: " + k + "Reconciliation in progress"},
		"tried again":                   {[]object{changed(1, `"Unknown"`, "2026-01-02T13:00:00Z")}, nil, "failed 12:00: " + k + "HealthCheckFailed: failed, and is tried again"},
		"failed as changed":             {[]object{changed(2, `"False", "observedGeneration": 2`, "2026-01-02T14:30:00Z")}, nil, "failed 12:00: " + k + "X: x"},
		"tried again, as changed":       {[]object{changed(2, `"Unknown", "observedGeneration": 2`, "2026-01-02T14:30:00Z")}, nil, "failed 12:00: " + k + "HealthCheckFailed: failed, and is tried again"},
		"failed, and was changed":       {[]object{changed(2, `"Unknown", "observedGeneration": 2`, "2026-01-02T13:00:00Z")}, nil, "progressing -: " + k + "was changed, and Flux has not looked at it since"},
		"health is not waited for":      {[]object{flux("a-assignment", "a", ready("False", "HealthCheckCanceled", "New reconciliation", older, commit))}, nil, "progressing -: " + k + "New reconciliation"},
		"a release, tried again":        {[]object{healthy}, []object{release(`"failures": 1`)}, "failed 14:00: HelmRelease flux-system/a UpgradeFailed: x"},
		"a release, tried":              {[]object{healthy}, []object{release(`"failures": 0`)}, "progressing -: HelmRelease flux-system/a Running 'upgrade'"},
		"not a wanted one's failure":    {[]object{flux("a-assignment", "a", ready("True", "", "", older, older))}, []object{release(`"failures": 1`)}, "progressing -: HelmRelease flux-system/a is not of a wanted commit: UpgradeFailed: x"},
		"a failure from before":         {[]object{flux("a-assignment", "a", ready("Unknown", "", "Reconciliation in progress", older, commit))}, []object{release(`"failures": 1`)}, "progressing -: HelmRelease flux-system/a is not of a wanted commit: UpgradeFailed: x"},
		"a failure of what it brought": {[]object{flux("a-assignment", "a", strings.Replace(ready("Unknown", "", "", older, commit), "[", `[{"type": "Healthy", "status": "Unknown"}, `, 1))}, []object{release(`"failures": 1`)},
			"failed 14:00: HelmRelease flux-system/a UpgradeFailed: x"},
		"it waits for the release": {[]object{flux("a-assignment", "a", ready("False", "HealthCheckFailed", "timeout", older, commit))}, []object{release(`"failures": 1`)}, "failed 15:00: HelmRelease flux-system/a UpgradeFailed: x"},
		"once more, nobody knows":  {[]object{flux("a-assignment", "a", again+"}")}, nil, "progressing -: " + k + "Reconciliation in progress"},
		"stalled": {[]object{flux("a-assignment", "a", `{"conditions": [{"type": "Stalled", "status": "True", "message": "bad path", "lastTransitionTime": "2026-01-02T15:00:00Z"}, {"type": "Ready", "status": "False"}]}`)}, nil,
			"failed 15:00: " + k + "is stalled: bad path"},
		"deleted":   {[]object{deleted}, nil, "progressing -: " + k + "is being deleted"},
		"suspended": {[]object{suspended}, nil, "suspended 15:00: " + k + "is suspended: it is at main@sha1:" + older},
		"not looked at": {[]object{named("a-assignment", "a", object{}, strings.Replace(ready("True", "", "", commit, commit), "{", `{"observedGeneration": 2, `, 1))}, nil,
			"progressing -: " + k + "was changed, and Flux has not looked at it since"},
		"no status":     {[]object{flux("a-assignment", "a", `{"x": 1}`)}, nil, "progressing -: " + k + "is not ready yet"},
		"hostile types": {[]object{named("a-assignment", "a", object{}, `{"conditions": "ready", "observedGeneration": []}`)}, nil, "progressing -: " + k + "has a status that cannot be read: "},
		"hostile text":  {[]object{flux("a-assignment", "a", ready("False", "X", "a\nb\x1b[2J", commit, commit))}, nil, "failed 15:00: " + k + "X: a b [2J"},
		"an origin": {[]object{flux("a-assignment", "a", `{"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T15:00:00Z"}],
			"lastAppliedRevision": "latest@sha256:abc", "lastAppliedOriginRevision": "main@sha1:`+commit+`"}`)}, nil, "healthy 15:00"},
		"a branch that looks like a commit": {[]object{flux("a-assignment", "a", ready("True", "", "", older+"@sha1:"+commit+"/main", ""))}, nil,
			"progressing -: " + k + "is not at a wanted commit: is at main@sha1:" + older + "@sha1:" + commit[:24]},
		"the workload, too":        {[]object{healthy}, []object{flux("a", "a", ready("True", "", "", "", ""))}, "healthy 15:00"},
		"the workload failed":      {[]object{healthy}, []object{flux("a", "a", ready("False", "InstallFailed", "x", "", ""))}, "failed 15:00: HelmRelease flux-system/a InstallFailed: x"},
		"only the workload":        {nil, []object{flux("a", "a", ready("True", "", "", commit, commit))}, "progressing -: no object says which commit runs: a-assignment is not there"},
		"a release with this name": {nil, []object{flux("a-assignment", "", ready("True", "", "", commit, commit))}, "0 reports"},
	} {
		s := serve(t, map[string][]object{kustomizations: c.kustomizations, helmReleases: c.helmReleases})
		reports, err := open(t, kubernetes.Options{Kubeconfig: kubeconfig(t, known, s.Server)}).Reports(t.Context(), wanted("flux", "a", "b"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := text(reports); got != c.want && (name != "hostile types" || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestArgoCD(t *testing.T) {
	const k = "Application flux-system/a-assignment "
	status := func(sync, revision, health, phase, synced string) string {
		return fmt.Sprintf(`{"sync": {"status": %q, "revision": %q}, "health": {"status": %q, "message": "m", "lastTransitionTime": "2026-01-02T15:00:00Z"},
			"operationState": {"phase": %q, "message": "o", "finishedAt": "2026-01-02T15:01:00Z", "syncResult": {"revision": %q}}, "conditions": [{"type": "x"}]}`,
			sync, revision, health, phase, synced)
	}
	withError := func(kind string) string {
		return `{"sync": {"status": "Unknown"}, "conditions": [{"type": "` + kind + `", "message": "x"}]}`
	}
	for name, c := range map[string]struct{ status, want string }{
		"healthy":             {status("Synced", commit, "Healthy", "Succeeded", commit), "healthy 15:01"},
		"degraded":            {status("Synced", commit, "Degraded", "Succeeded", commit), "failed 15:00: " + k + "is degraded: m"},
		"degraded before":     {status("Synced", older, "Degraded", "Succeeded", older), "progressing -: " + k + "is not at a wanted commit: is degraded: m"},
		"an older commit":     {status("Synced", older, "Healthy", "Succeeded", older), "progressing -: " + k + "is not at a wanted commit: is at " + older},
		"out of sync":         {status("OutOfSync", commit, "Healthy", "Succeeded", older), "progressing -: " + k + "is OutOfSync"},
		"being synced":        {status("OutOfSync", commit, "Healthy", "Running", commit), "progressing -: " + k + "is being synced: o"},
		"not synced":          {status("OutOfSync", commit, "Healthy", "Failed", commit), "failed 15:01: " + k + "could not be synced: o"},
		"not synced at all":   {status("Unknown", commit, "Healthy", "Error", ""), "failed 15:01: " + k + "could not be synced: o"},
		"not synced before":   {status("OutOfSync", commit, "Healthy", "Failed", older), "progressing -: " + k + "is OutOfSync"},
		"a hook failed":       {status("Synced", commit, "Healthy", "Failed", commit), "failed 15:01: " + k + "could not be synced: o"},
		"progressing":         {status("Synced", commit, "Progressing", "Succeeded", commit), "progressing -: " + k + "is Progressing: m"},
		"suspended":           {status("Synced", commit, "Suspended", "Succeeded", commit), "progressing -: " + k + "is Suspended: m"},
		"missing":             {status("Synced", commit, "Missing", "Succeeded", commit), "progressing -: " + k + "is Missing: m"},
		"nothing yet":         {`{}`, "progressing -: " + k + "is in no state yet"},
		"a bad spec":          {withError("InvalidSpecError"), "failed -: " + k + "reports InvalidSpecError: x"},
		"no repository":       {withError("ComparisonError"), "progressing -: " + k + "reports ComparisonError: x"},
		"several sources":     {`{"sync": {"status": "Synced", "revisions": ["1.2.3", "` + commit + `"]}, "health": {"status": "Healthy"}}`, "healthy -"},
		"no commit but a tag": {`{"sync": {"status": "Synced", "revision": "1.2.3"}, "health": {"status": "Healthy"}}`, "progressing -: " + k + "is not at a wanted commit: is at 1.2.3"},
	} {
		s := serve(t, map[string][]object{applications: {named("a-assignment", "a", automated, c.status)}})
		reports, err := open(t, kubernetes.Options{Kubeconfig: kubeconfig(t, known, s.Server)}).Reports(t.Context(), wanted("argocd", "a"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := text(reports); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// automated is the spec of an Application that follows its branch.
var automated = object{"syncPolicy": object{"automated": object{"prune": true}}}

// One Argo CD deploys to many clusters, and its Applications name them.
func TestDestinations(t *testing.T) {
	healthy := `{"sync": {"status": "Synced", "revision": "` + commit + `"}, "health": {"status": "Healthy"}}`
	to := func(name string, d object) object {
		return named(name, "a", object{"destination": d, "syncPolicy": automated["syncPolicy"]}, healthy)
	}
	s := serve(t, map[string][]object{applications: {
		to("a-assignment-eu-1", object{"name": "ignored"}),
		to("a-assignment", object{"name": "eu-2"}),
		to("a-assignment", object{"name": "in-cluster"}),
		to("a-assignment", object{"server": "https://eu-3.example.test"}),
	}})
	w := wanted("argocd", "a")
	w.Assignments[0].Objects = map[string]string{"a-assignment-eu-1": "eu-1"}
	reports, err := open(t, kubernetes.Options{Kubeconfig: kubeconfig(t, known, s.Server)}).Reports(t.Context(), w)
	var got []string
	for _, r := range reports {
		got = append(got, fmt.Sprintf("%q %s", r.Cluster, r.State))
	}
	if want := `"" healthy, "edge-0" healthy, "eu-1" healthy, "eu-2" healthy`; err != nil || strings.Join(got, ", ") != want {
		t.Errorf("got %s, %v, want %s", strings.Join(got, ", "), err, want)
	}
}

// A team's own backend may name its objects in any way. Objects that report their applied commit
// count.
func TestOwnBackend(t *testing.T) {
	s := serve(t, map[string][]object{kustomizations: {
		flux("anything", "a", ready("True", "", "", commit, commit)),
		flux("else", "b", ready("True", "", "", older, older)),
	}})
	reports, err := open(t, kubernetes.Options{Kubeconfig: kubeconfig(t, known, s.Server)}).Reports(t.Context(), wanted("gotemplate", "a", "b"))
	if err != nil || len(reports) != 2 || reports[0].State != rollout.Healthy || reports[1].State != rollout.Progressing {
		t.Errorf("got %v, %v", reports, err)
	}
}

func TestPages(t *testing.T) {
	var all []object
	var names []string
	for i := range 7 {
		names = append(names, fmt.Sprint("w", i))
		all = append(all, flux(names[i]+"-assignment", names[i], ready("True", "", "", commit, commit)))
	}
	s := serve(t, map[string][]object{kustomizations: all})
	expired := false
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("continue") == "from-4" && !expired {
			expired = true
			refuse(w, http.StatusGone, "Expired", "the provided continue parameter is too old")
			return true
		}
		return false
	}
	source := open(t, kubernetes.Options{Kubeconfig: kubeconfig(t, known, s.Server)})
	reports, err := source.Reports(t.Context(), wanted("flux", names...))
	if err != nil || len(reports) != len(names) || !expired {
		t.Errorf("got %d reports, %v", len(reports), err)
	}
	for _, r := range reports {
		if r.State != rollout.Healthy || r.Cluster != "edge-0" || r.By != "context edge-0" {
			t.Errorf("got %+v", r)
		}
	}
	for _, request := range s.asked {
		if !strings.HasPrefix(request, "GET /apis/") || strings.HasSuffix(request, "applications") {
			t.Errorf("asked %s", request)
		}
	}
	// A list that is forgotten each time is given up.
	s.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("continue") == "" {
			return false
		}
		refuse(w, http.StatusGone, "Expired", "too old")
		return true
	}
	if _, err := source.Reports(t.Context(), wanted("flux", names...)); err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("got %v", err)
	}
}

func TestErrors(t *testing.T) {
	s := serve(t, map[string][]object{kustomizations: {}})
	for name, c := range map[string]struct {
		user   string
		answer func(http.ResponseWriter)
		want   any // for errors.As
		text   string
	}{
		"nobody":    {"{token: another}", nil, new(*forge.AuthError), "listing the Kustomizations of context edge-0: "},
		"forbidden": {known, func(w http.ResponseWriter) { refuse(w, 403, "Forbidden", "kustomizations is forbidden\x1b[2J") }, new(*forge.AuthError), "kustomizations is forbidden [2J"},
		"busy":      {known, func(w http.ResponseWriter) { refuse(w, 503, "ServiceUnavailable", "later") }, new(*forge.UnavailableError), "later"},
		"no JSON":   {known, func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) }, nil, "listing the Kustomizations of context edge-0"},
		"no plugin": {"{exec: {apiVersion: client.authentication.k8s.io/v1, command: /no/such/plugin, interactiveMode: IfAvailable}}", nil, nil, "/no/such/plugin"},
	} {
		s.answer = func(w http.ResponseWriter, _ *http.Request) bool {
			if c.answer == nil {
				return false
			}
			c.answer(w)
			return true
		}
		reports, err := open(t, kubernetes.Options{Kubeconfig: kubeconfig(t, c.user, s.Server)}).Reports(t.Context(), wanted("flux", "a"))
		if err == nil || !strings.Contains(err.Error(), c.text) || len(reports) > 0 || c.want != nil && !errors.As(err, c.want) {
			t.Errorf("%s: got %v, %T %v", name, reports, err, err)
		}
		if err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("%s: the error tells the token: %v", name, err)
		}
	}
}

// If a server or a plugin does not answer, nobody has to wait for it, and the reports of the
// other clusters are returned.
func TestSilence(t *testing.T) {
	fine := serve(t, map[string][]object{kustomizations: {flux("a-assignment", "a", ready("True", "", "", commit, commit))}})
	silent, done := serve(t, nil), make(chan struct{})
	silent.answer = func(http.ResponseWriter, *http.Request) bool {
		<-done
		return false
	}
	defer close(done)
	path := kubeconfig(t, known, fine.Server, silent.Server)
	reports, err := open(t, kubernetes.Options{Kubeconfig: path, Contexts: []string{"edge-1", "edge-0"}, Timeout: 3 * time.Second}).Reports(t.Context(), wanted("flux", "a"))
	if unavailable := (*forge.UnavailableError)(nil); !errors.As(err, &unavailable) || len(reports) != 1 || reports[0].Cluster != "edge-0" {
		t.Errorf("got %v, %v", reports, err)
	}
	plugin := kubeconfig(t, "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sleep, args: ['2'], interactiveMode: IfAvailable}}", fine.Server)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := open(t, kubernetes.Options{Kubeconfig: plugin}).Reports(ctx, wanted("flux", "a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestNew(t *testing.T) {
	s := serve(t, nil)
	path := kubeconfig(t, known, s.Server)
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options kubernetes.Options
		want    string
	}{
		"no file":    {kubernetes.Options{Kubeconfig: bad + "x"}, "reading the kubeconfig: "},
		"no YAML":    {kubernetes.Options{Kubeconfig: bad}, "reading the kubeconfig: "},
		"no context": {kubernetes.Options{Kubeconfig: path, Contexts: []string{"x"}}, `has no context "x": it has "edge-0"`},
	} {
		if _, err := kubernetes.New(c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if reports, err := open(t, kubernetes.Options{Kubeconfig: path}).Reports(t.Context(), wanted("ansible", "a")); err != nil || reports != nil || len(s.asked) > 0 {
		t.Errorf("there is nothing to ask a cluster: got %v, %v, asked %v", reports, err, s.asked)
	}
}
