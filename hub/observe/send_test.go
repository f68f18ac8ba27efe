package observe_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/observe"
)

// hubOf serves a hub that answers requests, and returns a client.
func hubOf(t *testing.T, answer func(r *http.Request, sent *api.Report) (status int, body string)) *api.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent api.Report
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		status, body := answer(r, &sent)
		w.Header().Set("Retry-After", "0.01")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	c, err := api.NewClient(s.URL, "secret")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func snapshotOf(states ...string) api.Report {
	var items []api.Item
	for i, s := range states {
		items = append(items, api.Item{Assignment: "prod/eu/" + string(rune('a'+i)), State: s, Message: "m", Since: time.Unix(int64(i), 0)})
	}
	return api.Report{Cluster: "eu-1", Snapshot: true, Digest: observe.DigestOf(items), Items: items}
}

// Items are sent when they differ from the last, and when the hub needs them.
func TestSendDigest(t *testing.T) {
	var got []string
	forgotten := false
	s := observe.NewSender(hubOf(t, func(_ *http.Request, sent *api.Report) (int, string) {
		got = append(got, map[bool]string{true: "items", false: "digest"}[len(sent.Items) > 0])
		if forgotten && len(sent.Items) == 0 {
			forgotten = false
			return 409, `{"title": "Conflict"}`
		}
		return 200, "{}"
	}))
	send := func(r api.Report, want string) {
		t.Helper()
		got = nil
		if sent, err := s.Send(t.Context(), []api.Report{r}); err != nil || sent.Err() != nil {
			t.Error(err, sent.Err())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	send(snapshotOf("ok", "ok"), "items")
	send(snapshotOf("ok", "ok"), "digest")
	later := snapshotOf("ok", "ok")
	later.Items[0].Since, later.Items[0].Message = time.Now(), "another"
	later.Digest = observe.DigestOf([]api.Item{later.Items[1], later.Items[0]})
	send(later, "digest")
	send(snapshotOf("ok", "failed"), "items")
	forgotten = true
	send(snapshotOf("ok", "failed"), "digest items")
	send(snapshotOf(), "digest") // which has none
	send(snapshotOf("ok", "failed"), "items")
}

func TestSendRefused(t *testing.T) {
	single := api.Report{Cluster: "eu-1", Items: []api.Item{{Assignment: "prod/eu/a", State: "ok"}}}
	for name, c := range map[string]struct {
		report  api.Report
		answers []int
		body    string
		unknown string
		problem string // of the report, or else the error
		err     string
		left    int
	}{
		"taken":                 {single, []int{200}, "{}", "", "", "", 0},
		"busy":                  {single, []int{429, 503, 200}, "{}", "", "", "", 0},
		"too busy":              {single, []int{429, 429, 429, 429}, `{"title": "x", "detail": "later"}`, "", "", "cluster eu-1: the hub says 429: later", 1},
		"unknown":               {single, []int{200}, `{"unknown": ["prod/eu/a"]}`, "the hub knows no assignment for prod/eu/a on cluster eu-1", "", "", 0},
		"unlisted":              {single, []int{404}, `{"title": "no cluster"}`, "", "cluster eu-1: the hub says 404: no cluster", "", 1},
		"unlisted and empty":    {snapshotOf(), []int{404}, `{"title": "no cluster"}`, "", "", "", 0},
		"another's token":       {snapshotOf("ok"), []int{403}, `{"title": "of eu-2"}`, "", "cluster eu-1: the hub says 403: of eu-2", "", 0},
		"no token":              {single, []int{401}, `{"title": "who"}`, "", "", "cluster eu-1: the hub says 401: who", 1},
		"an answer that is not": {single, []int{200}, `<html>`, "", "", "the hub's answer: ", 1},
	} {
		n := 0
		s := observe.NewSender(hubOf(t, func(r *http.Request, _ *api.Report) (int, string) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				t.Error("no token")
			}
			n++
			return c.answers[n-1], c.body
		}))
		sent, err := s.Send(t.Context(), []api.Report{c.report})
		problem := ""
		if sent.Err() != nil {
			problem = sent.Err().Error()
		}
		if sent.String() != c.unknown || problem != c.problem || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || len(sent.Left) != c.left || n != len(c.answers) {
			t.Errorf("%s: got %q, %q, %v, %d left, %d requests", name, sent.String(), problem, err, len(sent.Left), n)
		}
	}
}

// A hub that has too much to do holds nobody who is to end.
func TestSendEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := observe.NewSender(hubOf(t, func(*http.Request, *api.Report) (int, string) {
		cancel()
		return 503, `{"title": "later"}`
	}))
	if _, err := s.Send(ctx, []api.Report{snapshotOf("ok")}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRunReports(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(cluster, reports string) string {
		return `{"apiVersion": "kalypso.io/v1alpha1", "kind": "RolloutReport", "cluster": "` + cluster + `", "commit": "` + newer + `", "reports": [` + reports + `]}`
	}
	write("vm-1.json", file("vm-1", `{"assignment": "prod/vm/b", "state": "failed", "message": "m\nn", "at": "2026-01-02T15:00:00Z"},
		{"assignment": "prod/vm/a", "state": "healthy", "message": "m", "at": "2026-01-02T15:00:00Z"}, {"assignment": "prod/vm/c", "state": "progressing", "at": "2026-01-02T14:00:00Z"}`))
	write("vm-2.json", file("", `{"assignment": "prod/vm/a", "state": "healthy"}`))
	write("notes.txt", "no report")
	s := observe.NewRunReports([]string{dir}, "vm-9")
	lines := func(wantErr string) string {
		t.Helper()
		reports, err := s.Reports(t.Context())
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("got %v, want %s", err, wantErr)
		}
		var out []string
		for _, r := range reports {
			if r.Snapshot || r.Digest != "" {
				t.Errorf("got %+v", r)
			}
			for _, i := range r.Items {
				out = append(out, strings.TrimSpace(r.Cluster+" "+r.At.Format("15:04")+" "+i.Assignment+" "+i.State+" "+i.Message))
			}
		}
		return strings.Join(out, "\n")
	}
	if got, want := lines(""), "vm-1 14:00 prod/vm/c progressing\nvm-1 15:00 prod/vm/a ok\nvm-1 15:00 prod/vm/b failed m n\nvm-9 00:00 prod/vm/a ok"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	write("vm-3.json", "{")
	write("vm-1.json", file("vm-1", `{"assignment": "prod/vm/a", "state": "healthy", "at": "2026-01-02T16:00:00Z"}`))
	if got, want := lines("vm-3.json:1:2: ends too early"), "vm-1 16:00 prod/vm/a ok"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := observe.NewRunReports([]string{filepath.Join(dir, "vm-2.json")}, "").Reports(t.Context()); err == nil || !strings.Contains(err.Error(), "vm-2.json names no cluster") {
		t.Errorf("got %v", err)
	}
}

// What is carried to a hub is what was written.
func TestCarry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	written := []api.Report{snapshotOf("ok", "failed"), snapshotOf()}
	if err := errors.Join(observe.Write(f, written), f.Close()); err != nil {
		t.Fatal(err)
	}
	read, err := observe.ReadFile(path)
	if err != nil || len(read) != 2 || observe.DigestOf(read[0].Items) != written[0].Digest || !read[1].Snapshot {
		t.Errorf("got %+v, %v", read, err)
	}
	for text, want := range map[string]string{
		"{\"cluster\": \"a\"}\n\n{":         "reports.jsonl:3: this is no report that kalypso observe --out wrote: ",
		"{}":                                "reports.jsonl:1: this is no report",
		`{"cluster": "a", "x": 1}`:          `unknown field "x"`,
		`{"cluster": "a"} {"cluster": "b"}`: "reports.jsonl:1: ",
		strings.Repeat("x", 17<<20):         "token too long",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := observe.ReadFile(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
	}
}

func TestEnroll(t *testing.T) {
	asked := 0
	hub := hubOf(t, func(r *http.Request, sent *api.Report) (int, string) {
		if asked++; r.URL.Path != "/v1/enroll" || sent.Cluster != "eu-1" {
			t.Errorf("asked %s about %q", r.URL.Path, sent.Cluster)
		}
		return 200, `{"id": "1", "role": "cluster", "secret": "s3cret"}`
	})
	path := filepath.Join(t.TempDir(), "token")
	for range 2 {
		if token, err := observe.Enroll(t.Context(), hub, "eu-1", path); err != nil || token != "s3cret" || asked != 1 {
			t.Errorf("got %s, %v, asked %d times", token, err, asked)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if _, err := observe.Enroll(t.Context(), hub, "eu-1", filepath.Join(path, "no")); err == nil || asked != 1 {
		t.Errorf("got %v, asked %d times", err, asked)
	}
	if err := os.WriteFile(path, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := observe.ReadToken(path); err == nil || !strings.Contains(err.Error(), "has no token in it") {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
}
