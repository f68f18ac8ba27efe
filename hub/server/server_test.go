package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// served is a hub with the environments prod and dev, and its server.
type served struct {
	*testing.T
	hub    *hub.Hub
	tokens *access.Tokens
	url    string
	// problem is why the wanted state of all environments cannot be read.
	problem atomic.Pointer[string]
}

const webhookKey = "0123456789abcdef"

func serve(t *testing.T, database string) *served {
	t.Helper()
	db := hubtest.Open(t, database)
	ctx, cancel := context.WithCancel(context.Background())
	problem := func(err error) { t.Errorf("the hub says: %v", err) }
	h, err := hub.Open(ctx, hub.Options{Store: db, StaleAfter: time.Hour, Now: time.Now, Problem: problem})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { h.Run(ctx); close(done) }()
	s := &served{T: t, hub: h, tokens: access.NewTokens(db, time.Now)}
	why := func(environment string) string {
		if is := s.problem.Load(); is != nil && environment == "" {
			return *is
		}
		return ""
	}
	web := httptest.NewServer(server.New(server.Options{Hub: h, Tokens: s.tokens, People: granted, Problem: why, Secrets: map[string][]string{"flux": {webhookKey}, "argocd": {webhookKey}, "forge": {webhookKey}}}))
	t.Cleanup(func() {
		web.Close()
		cancel()
		<-done
	})
	for i, environment := range []string{"prod", "dev"} {
		w := hubtest.New(1).Wanted()
		w.Environment, w.Branch = environment, environment
		for f := range w.Folders {
			w.Folders[f].Base = platformCommit
			for n := range w.Folders[f].Targets {
				w.Folders[f].Targets[n].Object = environment + "-" + w.Folders[f].Targets[n].Name
			}
		}
		w.Commits[0].ID = commit
		if environment == "dev" {
			w.Clusters = w.Clusters[2:3]
			w.Clusters = append(w.Clusters, state.Cluster{Name: "d0", Folder: "edge.a"})
		}
		if err := h.Want(ctx, i, w); err != nil {
			t.Fatal(err)
		}
	}
	s.url = web.URL
	return s
}

const platformCommit = "abcdef0123456789abcdef0123456789abcdef01"

const commit = "00000000000000000000000000000000000000aa"

// granted returns an identity with the grants in the header Test-Grants: roles with environments.
func granted(r *http.Request) (*access.Identity, error) {
	i := &access.Identity{Name: "ann"}
	for _, grant := range strings.Fields(r.Header.Get("Test-Grants")) {
		role, environment, _ := strings.Cut(grant, "/")
		i.Grants = append(i.Grants, access.Grant{Role: access.Role(role), Environment: environment})
	}
	if i.Grants == nil {
		return nil, nil
	}
	return i, nil
}

func (s *served) token(of api.Token) string {
	s.Helper()
	made, err := s.tokens.Make(context.Background(), of)
	if err != nil {
		s.Fatal(err)
	}
	return made.Secret
}

// do sends a request; body may be nil.
func (s *served) do(token, method, path string, body any, headers ...string) (*http.Response, string) {
	s.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	case []byte:
		in = bytes.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			s.Fatal(err)
		}
		in = bytes.NewReader(data)
	}
	r, err := http.NewRequest(method, s.url+path, in)
	if err != nil {
		s.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	return res, string(text)
}

func (s *served) expect(want int, token, method, path string, body any, headers ...string) string {
	s.Helper()
	res, text := s.do(token, method, path, body, headers...)
	if res.StatusCode != want {
		s.Errorf("%s %.100s: %s %.300s, and should be %d", method, path, res.Status, text, want)
	}
	return text
}

func TestSQLite(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(serve(t, hubtest.SQLite(t)())) })
	}
}

func TestSlowPostgres(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	database := hubtest.Postgres(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.test(serve(t, database())) })
	}
}

var cases = []struct {
	name string
	test func(*served)
}{
	{"other clusters", otherClusters}, {"signed", signed}, {"forget", forget}, {"scopes", scopes}, {"several roles", severalRoles}, {"roles", roles}, {"webhooks", webhooks}, {"large", large}, {"at once", atOnce}, {"other clocks", otherClocks}, {"hostile texts", hostileTexts}, {"cursors", cursors}, {"past", past}, {"fresh", fresh}, {"names", names}, {"addresses", addresses}, {"events", events},
}

func report(cluster, environment string, items ...any) map[string]any {
	r := map[string]any{"cluster": cluster, "snapshot": true}
	if len(items) == 0 {
		items = []any{map[string]any{"assignment": environment + "/edge/hello-main", "commit": commit, "state": "ok"}}
	}
	r["items"] = items
	return r
}

func (s *served) ok(cluster string) int {
	groups := s.hub.Fleet().Count(state.Filter{Cluster: cluster})
	if len(groups) == 0 {
		return 0
	}
	return groups[0].Tally[state.OK]
}

// otherClusters checks a cluster that reports about another one.
func otherClusters(s *served) {
	mine := s.token(api.Token{Role: "cluster", Cluster: "c0"})
	s.expect(403, mine, "POST", "/v1/reports", report("c1", "prod"))
	s.expect(403, mine, "POST", "/v1/reports", report("C0", "prod"))
	s.expect(200, mine, "POST", "/v1/reports", report("c0", "prod"))
	if s.ok("c0") != 1 || s.ok("c1") != 0 {
		s.Error("c0 has written what it may not, or not what it may")
	}
	for _, path := range []string{"/v1/environments", "/v1/counts", "/v1/assignments", "/v1/clusters/c0", "/v1/history", "/v1/releases", "/v1/rollout?environment=prod", "/v1/events", "/v1/tokens", "/v1/audit", "/metrics"} {
		s.expect(403, mine, "GET", path, nil)
	}
	s.expect(403, mine, "POST", "/v1/enroll", map[string]any{"cluster": "c0"})
	s.expect(403, mine, "POST", "/v1/tokens", map[string]any{"role": "admin"})
	// The same applies to events with the cluster's token instead of a signature.
	event := map[string]any{"cluster": "c1", "application": "prod-hello-main", "revision": commit, "sync": "Synced", "health": "Healthy", "phase": "Succeeded"}
	s.expect(403, mine, "POST", "/v1/ingest/argocd", event)
	// Argo CD's own cluster is the cluster of the token. With a token for all clusters, it is not
	// known.
	event["cluster"] = "in-cluster"
	s.expect(204, mine, "POST", "/v1/ingest/argocd", event)
	if text := s.expect(422, s.token(api.Token{Role: "operator"}), "POST", "/v1/ingest/argocd", event); !strings.Contains(text, "write its name") {
		s.Error(text)
	}
	event["server"] = "https://c1:6443"
	s.expect(403, mine, "POST", "/v1/ingest/argocd", event)
	s.expect(401, "", "POST", "/v1/reports", report("c0", "prod"))
}

// signed sends signed reports. They count as reports of their signers.
func signed(s *served) {
	mine, expired := s.token(api.Token{Role: "cluster", Cluster: "c0"}), s.token(api.Token{Role: "cluster", Cluster: "c0", Expires: time.Now().Add(-time.Hour)})
	sign := func(token, cluster string) *api.SignedReport {
		out, err := api.Sign(token, &api.Report{Cluster: cluster, Snapshot: true, Items: []api.Item{{Assignment: "prod/edge/hello-main", Commit: commit, State: "ok"}}})
		if err != nil {
			s.Fatal(err)
		}
		return out
	}
	other := sign(mine, "c0")
	altered := *other
	altered.Report = bytes.Replace(altered.Report, []byte(`"ok"`), []byte(`"failed"`), 1)
	unsigned := sign(strings.Replace(mine, api.TokenPrefix, api.TokenPrefix+"00", 1), "c0") // a token that does not exist
	operator := s.token(api.Token{Role: "operator"})
	for _, c := range []struct {
		status int
		*api.SignedReport
	}{{401, &altered}, {401, unsigned}, {401, sign(expired, "c0")}, {403, sign(mine, "c1")}, {401, &api.SignedReport{Report: other.Report, Signature: "a.b.c"}}} {
		s.expect(c.status, "", "POST", "/v1/reports", []byte(c.Report), api.SignatureHeader, c.Signature)
		s.expect(c.status, operator, "POST", "/v1/reports", []byte(c.Report), api.SignatureHeader, c.Signature)
	}
	if s.ok("c0") != 0 {
		s.Error("a report was taken whose signature is wrong")
	}
	for range 2 {
		s.expect(200, "", "POST", "/v1/reports", []byte(other.Report), api.SignatureHeader, other.Signature)
	}
	if s.ok("c0") != 1 {
		s.Error("a report was not taken that is signed")
	}
	s.expect(401, "", "GET", "/v1/environments", nil, api.SignatureHeader, other.Signature)
}

// forget checks who may forget clusters.
func forget(s *served) {
	operator, dev := s.token(api.Token{Role: "operator"}), s.token(api.Token{Role: "operator", Environment: "dev"})
	s.expect(200, operator, "POST", "/v1/reports", report("c0", "prod"))
	s.expect(403, s.token(api.Token{Role: "viewer"}), "DELETE", "/v1/clusters/c0", nil)
	s.expect(403, dev, "DELETE", "/v1/clusters/c0", nil)
	s.expect(404, operator, "DELETE", "/v1/clusters/nobody", nil)
	if text := s.expect(409, operator, "DELETE", "/v1/clusters/c0", nil); !strings.Contains(text, "the platform lists cluster c0, in prod: take it out of the platform") {
		s.Errorf("got %s", text)
	}
	s.expect(200, operator, "POST", "/v1/reports", report("v9", "prod", map[string]any{"assignment": "prod/box/hello-main", "commit": commit, "state": "ok"}))
	s.expect(204, operator, "DELETE", "/v1/clusters/v9", nil)
	s.expect(404, operator, "DELETE", "/v1/clusters/v9", nil)
	if text := s.expect(200, s.token(api.Token{Role: "admin"}), "GET", "/v1/audit", nil); !strings.Contains(text, `"action":"forget","subject":"v9"`) {
		s.Errorf("the audit is %s", text)
	}
}

// scopes has a client for one environment request data of another, at every path.
func scopes(s *served) {
	viewer, operator, admin := s.token(api.Token{Role: "viewer", Environment: "dev"}), s.token(api.Token{Role: "operator", Environment: "dev"}), s.token(api.Token{Role: "admin", Environment: "dev"})
	all := s.token(api.Token{Role: "operator"})
	s.expect(200, all, "POST", "/v1/reports", report("c0", "prod"))
	for _, token := range []string{viewer, operator, admin} {
		for _, path := range []string{"/v1/counts", "/v1/assignments", "/v1/history", "/v1/releases", "/v1/rollout"} {
			s.expect(403, token, "GET", path+"?environment=prod", nil)
		}
		for _, path := range []string{
			"/v1/environments", "/v1/counts?by=environment", "/v1/counts?by=cluster", "/v1/assignments?limit=1000", "/v1/history?limit=1000", "/v1/releases", "/metrics", "/v1/clusters/c2", "/v1/rollout",
			"/v1/assignments?at=2100-01-01T00:00:00Z&cluster=c0", "/v1/assignments?at=2100-01-01T00:00:00Z&limit=1000", "/v1/counts?at=2100-01-01T00:00:00Z&by=environment", "/v1/counts?at=2100-01-01T00:00:00Z&cluster=c0",
		} {
			if text := s.expect(200, token, "GET", path, nil); strings.Contains(text, "prod") || strings.Contains(text, `"c0"`) {
				s.Errorf("GET %s shows prod to who may see dev: %s", path, text)
			}
		}
		s.expect(404, token, "GET", "/v1/clusters/c0", nil)
	}
	// A reporter for dev changes nothing of prod: c2 is in both, and c0 only in prod.
	s.expect(200, all, "POST", "/v1/reports", report("c2", "prod"))
	before := s.ok("c2")
	for _, body := range []any{
		report("c2", "prod"), report("c2", "dev"), map[string]any{"cluster": "c2", "snapshot": true, "items": []any{}}, map[string]any{"cluster": "c2", "snapshot": true, "digest": "x"},
		map[string]any{"cluster": "c2", "items": []any{map[string]any{"object": "prod-hello-main", "commit": commit, "state": "failed"}}},
		report("c0", "prod"), map[string]any{"cluster": "c0", "snapshot": true, "items": []any{}},
	} {
		for _, token := range []string{operator, s.token(api.Token{Role: "cluster", Cluster: "c2", Environment: "dev"})} {
			s.do(token, "POST", "/v1/reports", body)
			event := map[string]any{"cluster": body.(map[string]any)["cluster"], "application": "prod-hello-main", "revision": commit, "sync": "Synced", "health": "Degraded", "phase": "Succeeded"}
			s.do(token, "POST", "/v1/ingest/argocd", event)
		}
	}
	prod := s.hub.Fleet().Count(state.Filter{Environments: state.In("prod")})[0].Tally
	if before != 1 || prod[state.OK] != 2 || prod[state.Failed] != 0 {
		s.Errorf("who reports for dev has changed prod: %v, before %d", prod, before)
	}
	s.expect(200, operator, "POST", "/v1/reports", report("d0", "dev"))
	// An admin of dev may create tokens for dev.
	s.expect(403, admin, "POST", "/v1/tokens", map[string]any{"role": "viewer"})
	s.expect(403, admin, "POST", "/v1/tokens", map[string]any{"role": "admin", "environment": "prod"})
	s.expect(201, admin, "POST", "/v1/tokens", map[string]any{"role": "viewer", "environment": "dev"})
	if text := s.expect(200, admin, "GET", "/v1/tokens", nil); strings.Contains(text, `"role":"operator","made"`) {
		s.Errorf("tokens of all environments are shown: %s", text)
	}
	id := strings.Split(all, "_")[1]
	s.expect(404, admin, "DELETE", "/v1/tokens/"+id, nil)
	s.expect(403, admin, "GET", "/v1/audit", nil)
}

// severalRoles checks a client with different roles in different environments.
func severalRoles(s *served) {
	s.expect(200, s.token(api.Token{Role: "operator"}), "POST", "/v1/reports", report("c0", "prod"))
	as := func(grants string, want int, method, path string, body any) string {
		s.Helper()
		return s.expect(want, "", method, path, body, "Test-Grants", grants)
	}
	const both, other = "viewer/prod operator/dev", "operator/dev viewer/stage"
	for path, want := range map[string][]string{
		"/v1/environments": {`"prod"`, `"dev"`}, "/v1/counts?by=environment": {`"prod"`, `"dev"`}, "/v1/assignments?limit=1000": {`"prod"`, `"dev"`},
		"/v1/counts?environment=prod&by=environment": {`"prod"`}, "/v1/counts?environment=prod,dev&by=environment": {`"prod"`, `"dev"`}, "/metrics": {`"prod"`, `"dev"`}, "/v1/history?limit=1000": {`"prod"`},
		"/v1/rollout?environment=prod": {`"prod"`}, "/v1/counts?at=2100-01-01T00:00:00Z&by=environment": {}, "/v1/assignments?at=2100-01-01T00:00:00Z&cluster=c0": {`"prod"`},
		"/v1/releases": {}, "/v1/performance": {},
	} {
		text := as(both, 200, "GET", path, nil)
		for _, environment := range want {
			if !strings.Contains(text, environment) {
				s.Errorf("GET %s shows nothing of %s: %.500s", path, environment, text)
			}
		}
		if !strings.Contains(path, "environment=prod") {
			if text := as(other, 200, "GET", path, nil); strings.Contains(text, "prod") || strings.Contains(text, `"c0"`) {
				s.Errorf("GET %s shows prod to who may not see it: %.500s", path, text)
			}
			continue
		}
		as(other, 403, "GET", path, nil)
	}
	as(both, 403, "GET", "/v1/rollout", nil) // the environment is ambiguous
	as(both, 200, "POST", "/v1/reports", report("d0", "dev"))
	as(both, 403, "POST", "/v1/reports", report("c0", "prod"))
	as(both, 403, "POST", "/v1/reports", report("c2", "dev")) // it is in prod, too
	as("operator/prod operator/dev", 200, "POST", "/v1/reports", report("c2", "dev"))
	as(both, 403, "GET", "/v1/tokens", nil)
	const admin = "admin/dev viewer"
	as(admin, 201, "POST", "/v1/tokens", map[string]any{"role": "viewer", "environment": "dev"})
	as(admin, 403, "POST", "/v1/tokens", map[string]any{"role": "viewer"})
	as(admin, 403, "POST", "/v1/tokens", map[string]any{"role": "viewer", "environment": "prod"})
	as(admin, 403, "GET", "/v1/audit", nil)
	as(admin, 404, "POST", "/v1/enroll", map[string]any{"cluster": "c0"})
	as(admin, 200, "POST", "/v1/enroll", map[string]any{"cluster": "d0"})
	first, _ := s.do("", "GET", "/v1/environments", nil, "Test-Grants", both)
	second, _ := s.do("", "GET", "/v1/environments", nil, "Test-Grants", other)
	if tag := first.Header.Get("ETag"); tag == "" || tag == second.Header.Get("ETag") {
		s.Errorf("two who see different environments get the version %s", tag)
	}
}

// roles has each role request data and actions that it may not have.
func roles(s *served) {
	for role, want := range map[string][]int{ // of reports, lists, tokens, enrolment
		"viewer": {403, 200, 403, 403}, "operator": {200, 200, 403, 403}, "admin": {200, 200, 200, 200}, "enroll": {403, 403, 403, 200},
	} {
		token := s.token(api.Token{Role: role})
		s.expect(want[0], token, "POST", "/v1/reports", report("c0", "prod"))
		s.expect(want[1], token, "GET", "/v1/counts", nil)
		s.expect(want[2], token, "GET", "/v1/tokens", nil)
		text := s.expect(want[3], token, "POST", "/v1/enroll", map[string]any{"cluster": "c3"})
		if want[3] == 200 {
			var made struct{ Secret string }
			if err := json.Unmarshal([]byte(text), &made); err != nil {
				s.Fatal(err)
			}
			s.expect(200, made.Secret, "POST", "/v1/reports", report("c3", "prod"))
			s.expect(404, token, "POST", "/v1/enroll", map[string]any{"cluster": "nobody"})
		}
	}
}

func sign(body []byte) string {
	mac := hmac.New(sha256.New, []byte(webhookKey))
	_, _ = mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func fluxEvent(at time.Time, severity, reason string) []byte {
	data, _ := json.Marshal(map[string]any{
		"involvedObject": map[string]any{"kind": "Kustomization", "namespace": "flux-system", "name": "prod-hello-main"}, "severity": severity, "timestamp": at, "reason": reason, "message": "no such image",
		"metadata": map[string]any{"kustomize.toolkit.fluxcd.io/revision": "prod@sha1:" + commit, "cluster": "c0"},
	})
	return data
}

// webhooks checks events with a wrong signature, and events that arrive again.
func webhooks(s *served) {
	is := func() state.State {
		var is state.State
		s.hub.Fleet().List(state.Filter{Environments: state.In("prod"), Cluster: "c0", Target: "hello-main"}, state.Position{}, func(r state.Row) bool { is = r.State; return false })
		return is
	}
	for _, kind := range server.Senders() { // each has a handler
		status := http.StatusUnprocessableEntity
		if kind == "forge" {
			status = http.StatusAccepted
		}
		s.expect(status, s.token(api.Token{Role: "operator"}), "POST", "/v1/ingest/"+kind, map[string]any{})
	}
	now := time.Now().Add(-time.Second) // a time after the hub's clock counts as the hub's time
	failed, ok := fluxEvent(now.Add(-time.Minute), "error", "HealthCheckFailed"), fluxEvent(now, "info", "ReconciliationSucceeded")
	for _, signature := range []string{"", "sha256=", "sha256=00", "sha256=zz", sign(ok), sign(failed)[:40], "sha1=" + sign(failed)[7:]} {
		s.expect(401, "", "POST", "/v1/ingest/flux", failed, "X-Signature", signature)
	}
	if is() != state.Missing {
		s.Fatal("an event was taken that was not signed")
	}
	s.expect(204, "", "POST", "/v1/ingest/flux", failed, "X-Signature", sign(failed))
	if is() != state.Failed {
		s.Errorf("it failed, and is %s", is())
	}
	s.expect(204, "", "POST", "/v1/ingest/flux", ok, "X-Signature", sign(ok))
	version, _ := s.hub.Version()
	for range 3 { // an attacker repeats it
		s.expect(204, "", "POST", "/v1/ingest/flux", failed, "X-Signature", sign(failed))
		s.expect(204, "", "POST", "/v1/ingest/flux", ok, "X-Signature", sign(ok))
	}
	if after, _ := s.hub.Version(); is() != state.OK || after != version {
		s.Errorf("it is %s, and something has changed: %t", is(), after != version)
	}
	argo := func(at time.Time, phase, health string) []byte {
		data, _ := json.Marshal(map[string]any{"application": "prod-hello-main", "cluster": "c0", "revision": commit, "sync": "Synced", "health": health, "phase": phase, "at": at})
		return data
	}
	degraded, healthy := argo(now.Add(time.Millisecond), "Succeeded", "Degraded"), argo(now.Add(2*time.Millisecond), "Succeeded", "Healthy")
	for _, body := range [][]byte{degraded, healthy, degraded} {
		s.expect(204, "", "POST", "/v1/ingest/argocd", body, "X-Hub-Signature-256", sign(body))
	}
	if is() != state.OK {
		s.Errorf("it is %s, after an event that came again", is())
	}
	unnamed := bytes.Replace(fluxEvent(now.Add(3*time.Millisecond), "error", "HealthCheckFailed"), []byte(`"cluster":"c0",`), nil, 1)
	s.expect(422, s.token(api.Token{Role: string(access.Operator)}), "POST", "/v1/ingest/flux", unnamed)
	if s.expect(204, s.token(api.Token{Role: string(access.Cluster), Cluster: "c0"}), "POST", "/v1/ingest/flux", unnamed); is() != state.Failed {
		s.Errorf("it is %s, after an event with the token of the cluster alone", is())
	}
	for _, body := range []string{"", "null", "[]", "{", `{"severity":7}`, "\xff\x00"} {
		s.expect(422, "", "POST", "/v1/ingest/flux", body, "X-Signature", sign([]byte(body)))
		s.expect(422, "", "POST", "/v1/ingest/argocd", body, "X-Signature", sign([]byte(body)))
	}
	s.expect(401, "", "POST", "/v1/ingest/forge", "{}", "X-Gitlab-Token", "wrong")
	s.expect(202, "", "POST", "/v1/ingest/forge", "{}", "X-Gitlab-Token", webhookKey)
	s.expect(202, "", "POST", "/v1/ingest/forge", "{}", "X-Hub-Signature-256", sign([]byte("{}")))
}

// large checks bodies that are too large, and the largest report.
func large(s *served) {
	token := s.token(api.Token{Role: "operator"})
	padded, err := json.Marshal(report("c1", "prod"))
	if err != nil {
		s.Fatal(err)
	}
	// The largest request is only one byte over the limit: the server reads it all, and its answer
	// is not lost.
	for _, c := range []struct {
		token, path string
		size, want  int
	}{
		{token, "/v1/reports", 10<<20 - 1, 200}, {token, "/v1/reports", 10 << 20, 413}, {token, "/v1/reports", 10<<20 + 1, 413},
		{token, "/v1/ingest/flux", 10<<20 + 1, 413}, {token, "/v1/ingest/argocd", 10<<20 + 1, 413},
		{"", "/v1/ingest/flux", 2<<20 + 1, 413}, {"", "/v1/ingest/argocd", 2<<20 + 1, 413}, {"", "/v1/reports", 10 << 10, 401},
	} {
		body := append(bytes.Repeat([]byte(" "), c.size-len(padded)), padded...)
		if text := s.expect(c.want, c.token, "POST", c.path, body); len(text) > 1000 {
			s.Errorf("%s of %d bytes: the answer has %d", c.path, c.size, len(text))
		}
	}
	if s.ok("c1") != 1 {
		s.Error("the largest report that may be was not taken")
	}
	var items []any
	for i := range 50_000 {
		items = append(items, map[string]any{"object": fmt.Sprint("some-application-of-somebody-", i), "commit": commit, "state": "failed", "message": strings.Repeat("m", 20)})
	}
	items = append(items, map[string]any{"assignment": "prod/edge/hello-main", "commit": commit, "state": "ok"})
	if text := s.expect(200, token, "POST", "/v1/reports", report("c0", "prod", items...)); s.ok("c0") != 1 || !strings.Contains(text, "some-application-of-somebody-49999") {
		s.Errorf("c0 has %d, %.100s", s.ok("c0"), text)
	}
	s.expect(422, token, "POST", "/v1/reports", report("c0", "prod", make([]any, 100_001)...))
	s.expect(422, token, "POST", "/v1/reports", map[string]any{"cluster": strings.Repeat("c", 300)})
}

// atOnce sends many bodies at once, and many requests with one token.
func atOnce(s *served) {
	address := strings.TrimPrefix(s.url, "http://")
	begin := func(token, path string, length int, body string) net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() { _ = c.Close() })
		header := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, length)
		if token != "" {
			header += "Authorization: Bearer " + token + "\r\n"
		}
		_, _ = io.WriteString(c, header+"\r\n"+body) // it may end before all is sent
		return c
	}
	// Of webhooks without a token that never end, some are refused, and small requests are still
	// accepted.
	part := strings.Repeat(" ", 2<<20-1)
	answers := make(chan int, 100)
	for range 30 {
		c := begin("", "/v1/ingest/flux", 2<<20, part)
		go func() {
			if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				_ = res.Body.Close()
				answers <- res.StatusCode
			}
		}()
	}
	if got := <-answers; got != http.StatusServiceUnavailable {
		s.Errorf("of too many webhooks, one gets %d", got)
	}
	// One token has one large body in progress, which does not block another token.
	one, other := s.token(api.Token{Role: "cluster", Cluster: "c0"}), s.token(api.Token{Role: "operator"})
	large := make(chan int, 3)
	// The order of the two is not known.
	second := begin(one, "/v1/reports", 9<<20, "{")
	third := begin(one, "/v1/reports", 9<<20, "{")
	for _, c := range []net.Conn{second, third} {
		go func() {
			if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				_ = res.Body.Close()
				large <- res.StatusCode
			}
		}()
	}
	if got := <-large; got != http.StatusTooManyRequests {
		s.Errorf("of more than one large body, one gets %d", got)
	}
	s.expect(200, other, "POST", "/v1/reports", report("c1", "prod"))
	s.expect(200, one, "POST", "/v1/reports", report("c0", "prod")) // a small one
	// The hub does not echo a large invalid body.
	if text := s.expect(400, other, "POST", "/v1/reports", strings.Repeat("x", 1<<20)); len(text) > 1000 {
		s.Errorf("the error has %d bytes", len(text))
	}
	// Open streams count as requests, too.
	viewer := s.token(api.Token{Role: "viewer"})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for n := range 1001 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/events", nil)
		if err != nil {
			s.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+viewer)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() { _ = res.Body.Close() })
		if want := map[bool]int{true: http.StatusOK, false: http.StatusTooManyRequests}[n < 1000]; res.StatusCode != want {
			s.Errorf("stream %d: %s", n, res.Status)
			break
		}
	}
	s.expect(200, other, "GET", "/v1/counts", nil)
}

// otherClocks checks reports with wrong clocks: no time is in the future.
func otherClocks(s *served) {
	token := s.token(api.Token{Role: "operator"})
	for _, at := range []string{"9999-12-31T23:59:59Z", "0001-01-01T00:00:01Z"} {
		body := report("c0", "prod", map[string]any{"assignment": "prod/edge/hello-main", "commit": commit, "state": "failed", "since": at})
		body["at"] = at
		s.expect(200, token, "POST", "/v1/reports", body)
		if text := s.expect(200, token, "GET", "/v1/clusters/c0", nil); strings.Contains(text, "9999-") {
			s.Errorf("it is in the future: %s", text)
		}
	}
	for now := time.Now().UnixMilli(); time.Now().UnixMilli() == now; { // if two reports have the same millisecond, the worse counts
		runtime.Gosched()
	}
	s.expect(200, token, "POST", "/v1/reports", report("c0", "prod"))
	if s.ok("c0") != 1 {
		s.Error("a report of a clock that is far ahead keeps out those after it")
	}
}

var hostile = []string{
	"<script>alert(1)</script>", `=HYPERLINK("http://x.example","a")`, "\x1b[2J\x1b]0;title\x07", "a\x00b", "a\u202eb", "'; DROP TABLE term; --", "%s%n", "../../etc/passwd", "\u2028", strings.Repeat("\U0001F600", 1000), "\\u0000",
}

// hostileTexts sends names and messages with code, or with text that a database cannot store.
func hostileTexts(s *served) {
	token := s.token(api.Token{Role: "operator"})
	for _, text := range hostile {
		for _, field := range []string{"cluster", "by", "digest", "message", "path", "commit", "assignment", "object"} {
			item := map[string]any{"assignment": "prod/edge/hello-main", "commit": commit, "state": "failed"}
			body := report("c0", "prod", item)
			if field == "cluster" || field == "by" || field == "digest" {
				body[field] = text
			} else {
				item[field] = text
			}
			res, answer := s.do(token, "POST", "/v1/reports", body)
			if res.StatusCode >= 500 {
				s.Errorf("%s %.20q: %s %s", field, text, res.Status, answer)
			}
			if strings.ContainsAny(answer, "\x1b\x00") {
				s.Errorf("%s %.20q: it comes back: %q", field, text, answer)
			}
		}
		// A cluster that the platform does not list exists once it reports, under any name.
		body := report(text, "prod", map[string]any{"assignment": "prod/box/hello-main", "commit": commit, "state": "failed", "message": text})
		if res, answer := s.do(token, "POST", "/v1/reports", body); res.StatusCode >= 500 {
			s.Errorf("cluster %.20q: %s %s", text, res.Status, answer)
		}
	}
	// The hub still works.
	s.expect(200, token, "POST", "/v1/reports", report("c1", "prod"))
	for _, escape := range []string{"%00", "%FF", "%1b", "%27", "%3Cscript%3E", "%E2%80%AE", "..%2f..%2fetc"} {
		for _, path := range []string{"/v1/counts?workload=", "/v1/counts?at=2100-01-01T00:00:00Z&environment=", "/v1/assignments?cluster=", "/v1/assignments?at=2100-01-01T00:00:00Z&cluster=", "/v1/assignments?at=2100-01-01T00:00:00Z&ring=", "/v1/history?workload=", "/v1/history?environment=", "/v1/history?ring=", "/v1/history?base=", "/v1/releases?environment=", "/v1/clusters/", "/v1/tokens/", "/v1/rollout?environment="} {
			method := "GET"
			if path == "/v1/tokens/" {
				method = "DELETE"
			}
			if res, answer := s.do(s.token(api.Token{Role: "admin"}), method, path+escape, nil); res.StatusCode >= 500 || strings.ContainsAny(answer, "\x1b\x00") {
				s.Errorf("%s %s%s: %s %q", method, path, escape, res.Status, answer)
			}
		}
	}
	admin := s.token(api.Token{Role: "admin"})
	for _, text := range hostile {
		res, answer := s.do(admin, "POST", "/v1/tokens", map[string]any{"role": "viewer", "note": text})
		if res.StatusCode >= 500 {
			s.Errorf("a token's note %.20q: %s %s", text, res.Status, answer)
		}
		res, answer = s.do(admin, "POST", "/v1/tokens", map[string]any{"role": "cluster", "cluster": text})
		if res.StatusCode >= 500 {
			s.Errorf("a token's cluster %.20q: %s %s", text, res.Status, answer)
		}
	}
	s.expect(200, admin, "GET", "/v1/audit?limit=1000", nil)
	if text := s.expect(200, admin, "GET", "/v1/assignments?limit=1000", nil); strings.Contains(text, "\x1b") || strings.Contains(text, `\u001b`) {
		s.Errorf("what is listed has code in it: %s", text)
	}
}

// cursors checks forged cursors, and follows valid ones.
func cursors(s *served) {
	token := s.token(api.Token{Role: "admin"})
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, cursor := range []string{"!", "a", encode("{"), encode(`"x"`), encode(`[1,2]`), encode(`1e99`), strings.Repeat("a", 2000)} {
		for _, path := range []string{"/v1/assignments", "/v1/history", "/v1/audit"} {
			s.expect(422, token, "GET", path+"?cursor="+cursor, nil)
		}
	}
	for _, cursor := range []string{encode(`{}`), encode("null"), encode("-1"), encode("0"), encode(`{"Environment":"prod"}`)} {
		for _, path := range []string{"/v1/assignments", "/v1/history", "/v1/audit", "/v1/releases", "/v1/tokens"} {
			s.expect(422, token, "GET", path+"?cursor="+cursor, nil)
		}
	}
	s.expect(410, token, "GET", "/v1/assignments?cursor="+encode(`{"Environment":"gone","Cluster":"c0","Target":"\u0000"}`), nil)
	for _, path := range []string{"/v1/history", "/v1/audit"} {
		s.expect(200, token, "GET", path+"?cursor="+encode("9223372036854775807"), nil)
	}
	for range 4 {
		s.token(api.Token{Role: "viewer"})
	}
	err := s.hub.Do(s.Context(), func(ctx context.Context, tx *store.Tx) (*state.Changes, error) {
		at := time.Now()
		var all []api.Release
		for i := range 5 {
			all = append(all, api.Release{Environment: []string{"prod", "dev"}[i%2], Commit: fmt.Sprint("r", i), Base: "b", Own: "o", Committed: at, At: at.Add(time.Duration(i/3) * time.Second)})
		}
		return nil, tx.Releases(ctx, all)
	})
	if err != nil {
		s.Fatal(err)
	}
	for cursor, status := range map[string]int{encode(`{"Environment":"no such"}`): 410, encode(`{"Environment":"prod","Workload":"\u0000"}`): 200, encode("null"): 422, encode(`{}`): 422} {
		s.expect(status, token, "GET", "/v1/assignments?at=2100-01-01T00:00:00Z&cursor="+cursor, nil)
	}
	for _, path := range []string{"/v1/releases?limit=2", "/v1/tokens?limit=2", "/v1/assignments?limit=7", "/v1/history?limit=7", "/v1/assignments?limit=4&at=2100-01-01T00:00:00Z", "/v1/assignments?limit=4&at=2100-01-01T00:00:00Z&environment=prod&workload=hell"} {
		seen, next := map[string]bool{}, ""
		for range 20 {
			var page struct {
				Assignments, Transitions, Releases, Tokens []json.RawMessage
				Next                                       string
			}
			if err := json.Unmarshal([]byte(s.expect(200, token, "GET", path+"&cursor="+next, nil)), &page); err != nil {
				s.Fatal(err)
			}
			for _, row := range slices.Concat(page.Assignments, page.Transitions, page.Releases, page.Tokens) {
				if seen[string(row)] {
					s.Errorf("%s: %s comes twice", path, row)
				}
				seen[string(row)] = true
			}
			if next = page.Next; next == "" {
				break
			}
		}
		want := len(hubtest.Rows(s.hub.Fleet()))
		switch {
		case strings.Contains(path, "workload="):
			want = 6
		case strings.Contains(path, "/releases"): // two of them are there from the beginning
			want = 7
		case strings.Contains(path, "/tokens"):
			want = 5
		}
		if len(seen) != want {
			s.Errorf("%s: %d rows on all pages, and should be %d", path, len(seen), want)
		}
	}
}

// past asks about moments that the hub knows in full, not at all, or not yet.
func past(s *served) {
	token := s.token(api.Token{Role: "viewer"})
	s.expect(200, s.token(api.Token{Role: "operator"}), "POST", "/v1/reports", report("c0", "prod"))
	now, future := time.Now().UTC().Format(time.RFC3339Nano), "2100-01-01T00:00:00Z"
	for path, want := range map[string]string{
		"/v1/counts?by=environment&at=" + future:          `"warning":"2100-01-01T00:00:00Z is to come: `,
		"/v1/assignments?at=" + future:                    `"warning":"2100-01-01T00:00:00Z is to come: `,
		"/v1/counts?at=2001-01-01T00:00:00Z":              `"warning":"this hub knows of nothing before 20`,
		"/v1/assignments?at=2001-01-01T00:00:00Z":         `"warning":"this hub knows of nothing before 20`,
		"/v1/counts?by=environment,clusterType&at=" + now: `{"values":{"clusterType":"edge","environment":"prod"},"wanted":18,"ok":0,"progressing":0,"behind":0,"drifted":0,"stale":0,"missing":18,"failed":0,"suspended":0},{"values":{"clusterType":"box","environment":"dev"}`,
		"/v1/counts?by=environment&at=" + now:             `{"values":{"environment":"prod"},"wanted":21,`,
		"/v1/counts?by=cluster&cluster=c0&at=" + now:      `{"values":{"cluster":"c0"},"wanted":`,
		"/v1/counts?environment=prod&at=" + now:           `"oldest":"`,
		"/v1/assignments?class=edge.a&at=" + now:          `"folder":"edge.a"`,
		"/v1/assignments?state=missing&at=" + now:         `"state":"missing"`,
		"/v1/history?class=edge.a&state=missing":          `"folder":"edge.a"`,
		"/v1/history?version=none":                        `"warning":"there is no version none`,
		"/v1/history?environment=prod&clusterType=edge":   `"clusterType":"edge"`,
	} {
		if text := s.expect(200, token, "GET", path, nil); !strings.Contains(text, want) {
			s.Errorf("%s does not have %s: %s", path, want, text)
		}
	}
	for path, want := range map[string]string{
		"/v1/assignments?workspace=x&at=" + now: "workspaces are not known: ask for a workload",
		"/v1/counts?by=workspace&at=" + now:     "workspaces are not known: ask for a workload",
		"/v1/counts?by=cluster&at=" + now:       "but for those of one cluster: name it, or ask for the assignments",
		"/v1/counts?class=edge.a&at=" + now:     "but for those of one cluster: name it, or ask for the assignments",
		"/v1/history?state=bad":                 "is no state",
	} {
		if text := s.expect(422, token, "GET", path, nil); !strings.Contains(text, want) {
			s.Errorf("%s does not say %s: %s", path, want, text)
		}
	}
}

// fresh checks conditional requests.
func fresh(s *served) {
	token := s.token(api.Token{Role: "operator"})
	for _, path := range []string{"/v1/environments", "/v1/counts"} {
		res, _ := s.do(token, "GET", path, nil)
		tag := res.Header.Get("ETag")
		if res.StatusCode != 200 || tag == "" {
			s.Fatalf("%s: %s, ETag %q", path, res.Status, tag)
		}
		bare := strings.TrimPrefix(tag, "W/")
		for _, seen := range []string{tag, bare, `"x", ` + tag, "W/\"x\"," + bare, "*"} {
			s.expect(304, token, "GET", path, nil, "If-None-Match", seen)
		}
		s.expect(200, token, "GET", path, nil, "If-None-Match", `"x"`)
		r, err := http.NewRequest(http.MethodGet, s.url+path, nil)
		if err != nil {
			s.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + token}, "If-None-Match": {`"x"`, tag}}
		if two, err := http.DefaultClient.Do(r); err != nil || two.StatusCode != 304 || two.Body.Close() != nil {
			s.Errorf("%s: of two headers the second is passed over: %v", path, err)
		}
		s.expect(200, s.token(api.Token{Role: "viewer", Environment: "dev"}), "GET", path, nil, "If-None-Match", tag)
		s.expect(422, token, "GET", path+"?wait=61", nil)
		s.expect(304, token, "GET", path+"?wait=1", nil, "If-None-Match", tag)
		answer := make(chan string)
		go func() {
			_, text := s.do(token, "GET", path+"?wait=60", nil, "If-None-Match", tag)
			answer <- text
		}()
		item := map[string]any{"assignment": "prod/edge/hello-main", "commit": commit, "state": "failed", "message": path}
		s.expect(200, token, "POST", "/v1/reports", report("c4", "prod", item))
		if text := <-answer; !strings.Contains(text, `"failed":1`) {
			s.Errorf("%s: what changed is not in the answer: %s", path, text)
		}
	}
}

// names asks for unknown names, and for names that are cut short.
func names(s *served) {
	token := s.token(api.Token{Role: "viewer"})
	for path, c := range map[string]struct {
		status int
		want   string
	}{
		"/v1/counts?environment=prd":                                            {404, `"there is no environment prd; did you mean prod?"`},
		"/v1/history?environment=prd":                                           {404, "did you mean prod?"},
		"/v1/releases?environment=prd":                                          {404, "did you mean prod?"},
		"/v1/performance?environment=prd":                                       {404, "did you mean prod?"},
		"/v1/assignments?environment=prd&workload=hell&at=2026-01-02T15:04:05Z": {404, "did you mean prod?"},
		"/v1/counts?workload=helo":                                              {404, "there is no workload helo; did you mean hell?"},
		"/v1/assignments?workload=helo":                                         {404, "did you mean hell?"},
		"/v1/history?workload=helo":                                             {404, "did you mean hell?"},
		"/v1/history?workload=helo&since=2026-01-02T15:04:05Z":                  {200, `"warning":"there is no workload helo; did you mean hell?"`},
		"/v1/counts?ring=none":                                                  {404, "there is no ring none"},
		"/v1/counts?clusterType=egde":                                           {404, "there is no cluster type egde; did you mean edge?"},
		"/v1/counts?workspace=none":                                             {404, "there is no workspace none"},
		"/v1/counts?deploymentTarget=hello-mian":                                {404, "did you mean hello-main?"},
		"/v1/counts?class=nope":                                                 {404, "there is no class nope; there are: "},
		"/v1/counts?class=edge.a":                                               {200, `"wanted":`},
		"/v1/counts?class=a":                                                    {200, `"wanted":`},
		"/v1/counts?base=" + platformCommit[:7]:                                 {200, `"wanted":`},
		"/v1/counts?base=" + strings.ToUpper(platformCommit[:12]):               {200, `"wanted":`},
		"/v1/counts?base=" + platformCommit[:6]:                                 {404, "there is no commit " + platformCommit[:6]},
		"/v1/counts?base=fffffff":                                               {404, "there is no commit fffffff"},
		"/v1/counts?base=" + strings.Repeat("f", 40):                            {200, `"warning":"there is no commit ffff`},
		"/v1/counts?version=99":                                                 {200, `"warning":"there is no version 99`},
		"/v1/assignments?state=failed&workload=hell":                            {200, `"assignments":[]`},
		"/v1/assignments?cluster=c00":                                           {200, `"warning":"there is no cluster c00; did you mean c`},
		"/v1/clusters/c00":                                                      {404, "did you mean c"},
	} {
		if text := s.expect(c.status, token, "GET", path, nil); !strings.Contains(text, c.want) {
			s.Errorf("GET %s: %s, and not %s", path, text, c.want)
		}
	}
	// A viewer of one environment learns nothing about others.
	of := s.token(api.Token{Role: "viewer", Environment: "dev"})
	if text := s.expect(200, of, "GET", "/v1/assignments?cluster=c1", nil); !strings.Contains(text, "there is no cluster c1") {
		s.Error(text)
	}
	// Each answer contains the error that keeps a hub from reading, and a change of the error ends
	// waiting.
	for _, path := range []string{"/v1/environments", "/v1/counts", "/v1/assignments", "/v1/history", "/v1/releases"} {
		if text := s.expect(200, token, "GET", path, nil); strings.Contains(text, `"problem"`) {
			s.Errorf("GET %s: %s", path, text)
		}
	}
	res, _ := s.do(token, "GET", "/v1/environments", nil)
	answer := make(chan string)
	go func() {
		_, text := s.do(token, "GET", "/v1/environments?wait=60", nil, "If-None-Match", res.Header.Get("ETag"))
		answer <- text
	}()
	why := "the server is away"
	s.problem.Store(&why)
	s.hub.Changed()
	if text := <-answer; !strings.Contains(text, `"problem":"the server is away"`) {
		s.Error(text)
	}
	for _, path := range []string{"/v1/counts", "/v1/assignments", "/v1/history", "/v1/releases", "/v1/counts?version=99"} {
		if text := s.expect(200, token, "GET", path, nil); !strings.Contains(text, `"problem":"the server is away"`) {
			s.Errorf("GET %s: %s", path, text)
		}
	}
	if text := s.expect(404, token, "GET", "/v1/counts?environment=stage", nil); !strings.Contains(text, "the server is away") {
		s.Error(text)
	}
}

// addresses requests unknown addresses, methods and parameters.
func addresses(s *served) {
	token := s.token(api.Token{Role: "admin"})
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/v1", 404, ""}, {"GET", "/v1/", 404, ""}, {"GET", "/v1/environment", 404, "did you mean /v1/environments?"}, {"GET", "/v1/environments/", 404, "did you mean"},
		{"GET", "/v1/clusters/", 404, "name one: /v1/clusters/{name}"}, {"GET", "/v1/clusters/c0/x", 404, "nothing at this address"}, {"POST", "/v1/nowhere", 404, ""},
		{"POST", "/v1/counts", 405, "takes GET"}, {"PUT", "/v1/tokens", 405, "takes GET and POST"}, {"GET", "/v1/ingest/flux", 405, "takes POST"}, {"PATCH", "/v1/clusters/c0", 405, "takes DELETE and GET"},
		{"GET", "/v1/counts?workloads=till", 422, `there is no parameter \"workloads\"; did you mean workload?`}, {"GET", "/v1/environments?environment=prod", 422, "there is no parameter"},
		{"GET", "/v1/clusters/c0?at=2026-01-02T15:04:05Z", 422, "there is no parameter"}, {"GET", "/v1/rollout?env=prod", 422, "environment"}, {"GET", "/v1/events?since=1", 422, "there is no parameter"},
		{"GET", "/v1/history?limt=3", 422, "did you mean limit?"}, {"GET", "/v1/audit?limt=3", 422, "did you mean limit?"}, {"GET", "/v1/counts?%zz", 422, "cannot be read"},
		{"GET", "/v1/releases?environment=deev", 404, "there is no environment deev; did you mean dev?"},
		{"GET", "/v1/releases?environment=prod,deev", 404, "there is no environment deev; did you mean dev?"},
	} {
		res, text := s.do(token, c.method, c.path, nil)
		if res.StatusCode != c.status || res.Header.Get("Content-Type") != "application/problem+json" || !json.Valid([]byte(text)) || !strings.Contains(text, c.want) {
			s.Errorf("%s %s: %s, %s: %s", c.method, c.path, res.Status, res.Header.Get("Content-Type"), text)
		}
		if allow := res.Header.Get("Allow"); (allow != "") != (c.status == 405) {
			s.Errorf("%s %s: Allow is %q", c.method, c.path, allow)
		}
	}
	if res, _ := s.do(token, "HEAD", "/v1/counts", nil); res.StatusCode != 200 {
		s.Error(res.Status)
	}
}

// events reads events of changes, and the comments between them.
func events(s *served) {
	web := httptest.NewServer(server.New(server.Options{Hub: s.hub, Beat: time.Millisecond}))
	s.Cleanup(web.Close)
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, web.URL+"/v1/events", nil)
	if err != nil {
		s.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	next := func(prefix string, but ...string) string {
		for lines.Scan() {
			text, is := strings.CutPrefix(lines.Text(), prefix)
			if is {
				return text
			}
			if !slices.Contains(but, lines.Text()) {
				s.Errorf("after %s: %q", prefix, lines.Text())
			}
		}
		s.Fatalf("no %s: %v", prefix, lines.Err())
		return ""
	}
	version := func() string {
		next("event: change", "", ": waiting")
		var data struct{ Version string }
		if err := json.Unmarshal([]byte(next("data: ")), &data); err != nil || data.Version == "" {
			s.Error(err, data)
		}
		return data.Version
	}
	first := version()
	next(": waiting", "")
	s.hub.Changed()
	if version() == first {
		s.Error("another version has the same name")
	}
}
