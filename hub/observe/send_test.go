package observe_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
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
	send(snapshotOf(), "digest") // without items
	send(snapshotOf("ok", "failed"), "items")
}

// The sender reports the unknown items of a snapshot each time, even if it sends only the digest,
// until the hub knows them.
func TestSendUnknown(t *testing.T) {
	known := false
	s := observe.NewSender(hubOf(t, func(_ *http.Request, sent *api.Report) (int, string) {
		switch {
		case len(sent.Items) > 0 && !known:
			return 200, `{"unknown": ["prod/eu/b"]}`
		case len(sent.Items) == 0 && known:
			return 409, `{"title": "Conflict"}`
		}
		return 200, "{}"
	}))
	for n, want := range []string{"prod/eu/b", "prod/eu/b", "prod/eu/b", "", ""} {
		known = n == 3
		sent, err := s.Send(t.Context(), []api.Report{snapshotOf("ok", "ok")})
		if want != "" {
			want = "the hub knows no assignment for " + want + " on cluster eu-1"
		}
		if got := sent.String(); got != want || err != nil || sent.Err() != nil {
			t.Errorf("%d: it says %q, %v, %v, and should say %q", n, got, err, sent.Err(), want)
		}
	}
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

// A busy hub does not delay a sender whose context ends.
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

// The carried reports are the same as the written ones.
func TestCarry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	written := []api.Report{snapshotOf("ok", "failed"), snapshotOf()}
	if err := errors.Join(observe.Write(f, written, ""), observe.Write(f, written[:1], "kalypso_01_secret"), f.Close()); err != nil {
		t.Fatal(err)
	}
	read := func() (reports []*observe.FileReport, err error) {
		for r, err := range observe.ReadFiles(nil, path, path) {
			if err != nil {
				return reports, err
			}
			reports = append(reports, r)
		}
		return reports, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for r, err := range observe.ReadFiles(bytes.NewReader(data), observe.Stdin) {
		if n++; err != nil || r.Place != fmt.Sprint("stdin:", n) {
			t.Errorf("on stdin: %+v, %v", r, err)
		}
	}
	reports, err := read()
	if n != 3 || err != nil || len(reports) != 6 || observe.DigestOf(reports[3].Items) != written[0].Digest || !reports[4].Snapshot || reports[4].Signed != nil {
		t.Errorf("got %+v, %v", reports, err)
	}
	key := func(string) (ed25519.PublicKey, error) {
		return api.SigningKey("secret").Public().(ed25519.PublicKey), nil
	}
	signed := reports[5]
	if id, err := signed.Signed.Verify(key); err != nil || id != "01" || signed.Digest != written[0].Digest {
		t.Errorf("got %s, %v", id, err)
	}
	signed.Signed.Report = append(signed.Signed.Report, ' ')
	if id, err := signed.Signed.Verify(key); !errors.Is(err, api.ErrSignature) {
		t.Errorf("a report that was changed: got %s, %v", id, err)
	}
	for text, c := range map[string]struct {
		read int
		want string
	}{
		"{\"cluster\": \"a\"}\n\n{":                                 {1, "reports.jsonl:3: this is no report that kalypso observe --out wrote: "},
		`{"report": {"cluster": "a", "x": 1}, "signature": "a..b"}`: {0, `unknown field "x"`},
		`{"report": {"cluster": "a"}}`:                              {0, `unknown field "report"`},
		"{}":                                                        {0, "reports.jsonl:1: this is no report"},
		`{"cluster": "a", "x": 1}`:                                  {0, `unknown field "x"`},
		`{"cluster": "a"} {"cluster": "b"}`:                         {0, "reports.jsonl:1: "},
		"{\"cluster\": \"a\"}\n" + strings.Repeat("x", 17<<20):      {1, "reports.jsonl:2: this line has more than 16 MiB, and no hub takes such a report"},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if reports, err := read(); err == nil || !strings.Contains(err.Error(), c.want) || len(reports) != c.read {
			t.Errorf("%.40q: got %d, %v, want %s", text, len(reports), err, c.want)
		}
	}
}

// Carried reports are sent while they are read, and a refused report does not stop the others.
func TestSendEach(t *testing.T) {
	taken := 0
	s := observe.NewSender(hubOf(t, func(_ *http.Request, sent *api.Report) (int, string) {
		switch sent.Cluster {
		case "nobody":
			return 404, `{"title": "Not Found", "detail": "no environment has it"}`
		case "away":
			return 401, `{"title": "Unauthorized"}`
		}
		taken++
		return 200, `{"unknown": ["x"]}`
	}))
	read := 0
	of := func(clusters ...string) iter.Seq2[*observe.FileReport, error] {
		return func(yield func(*observe.FileReport, error) bool) {
			for read = 1; read <= len(clusters); read++ {
				r := snapshotOf("ok")
				r.Cluster = clusters[read-1]
				if taken != read-1 && r.Cluster == "a" {
					t.Errorf("it reads on before it sends: %d of %d", taken, read)
				}
				if r.Cluster == "broken" {
					yield(nil, errors.New("line 4 is broken"))
					return
				}
				if !yield(&observe.FileReport{Report: r, Place: fmt.Sprint("x.jsonl:", read)}, nil) {
					return
				}
			}
		}
	}
	sent, err := s.SendEach(t.Context(), of("a", "a", "a", "broken", "a"))
	if err == nil || err.Error() != "line 4 is broken; nothing from there on was sent; reports before that: 3, of which the hub has taken 3" || taken != 3 || len(sent.Unknown) != 3 || sent.Err() != nil {
		t.Errorf("got %+v, %v", sent, err)
	}
	sent, err = s.SendEach(t.Context(), of(append(slices.Repeat([]string{"nobody"}, 150), "b")...))
	if err != nil || taken != 4 || len(sent.Problems) != 100 || !strings.HasSuffix(sent.Err().Error(), "\n50 more reports were not taken") {
		t.Errorf("got %d, %v, %v", taken, sent.Err(), err)
	}
	if _, err = s.SendEach(t.Context(), of("away", "b")); err == nil || read != 1 || taken != 4 || !strings.HasSuffix(err.Error(), "; from x.jsonl:1 on, nothing was taken") {
		t.Errorf("of a hub that lets nobody in it reads %d: %v", read, err)
	}
	for last, want := range map[string]string{
		"broken": "line 4 is broken; nothing from there on was sent; reports before that: 3, of which the hub has taken 2",
		"away":   "cluster away: the hub says 401: Unauthorized; from x.jsonl:4 on, nothing was taken; reports before that: 3, of which the hub has taken 2",
	} {
		sent, err := s.SendEach(t.Context(), of("b", "nobody", "b", last, "b"))
		if err == nil || err.Error() != want || sent.Err().Error() != "x.jsonl:2: cluster nobody: the hub says 404: no environment has it" {
			t.Errorf("got %v, %v", err, sent.Err())
		}
	}
	if sent, err := s.SendEach(t.Context(), of()); err != nil || sent.Read != 0 {
		t.Errorf("of nothing: %+v, %v", sent, err)
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
