package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// texts returns the texts of messages.
func texts(t *testing.T, bodies []string) []string {
	t.Helper()
	var out []string
	for _, b := range bodies {
		var m Message
		if err := json.Unmarshal([]byte(b), &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m.Text)
	}
	return out
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// cases are the tests that run on both databases.
var cases = map[string]func(t *testing.T, database string){
	"releases": releases, "replicas": replicas, "killed": killed, "failures": failures, "bad template": badTemplate, "groups": groups, "names": twoOfOneName, "group again": groupAgain,
	"signature and Slack": signatureAndSlack, "statuses": statuses, "statuses of old commits": statusesOfOld,
}

func TestSQLite(t *testing.T) {
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, hubtest.SQLite(t)()) })
	}
}

func TestSlowPostgres(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL")
	database := hubtest.Postgres(t)
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { test(t, database()) })
	}
}

func releases(t *testing.T, database string) {
	w := newWorld(t, database)
	n := w.notifier("[{name: ops, url: '" + w.URL + "/secret'}]")
	w.want(3, "canary 1")
	w.look(n)
	expect(t, "what was there before", w.sent())
	w.report("canary", "1", state.ReportedOK, 0, 3)
	w.wait(time.Minute)
	w.look(n)
	expect(t, "how it ends", w.sent())

	w.want(3, "canary 2", "canary 1")
	w.look(n)
	expect(t, "a promotion", texts(t, w.sent()), "prod/canary has 2222222 now: Promote <2> & more (ann)")
	w.look(n)
	expect(t, "the same again", w.sent())
	w.report("canary", "2", state.ReportedOK, 0, 2)
	w.report("canary", "2", state.ReportedFailed, 2, 3)
	w.wait(time.Minute)
	w.look(n)
	expect(t, "a failure", texts(t, w.sent()), "prod/canary: 2222222 has failed: 2/3 ok, 1 failed: canary-02 (shop)")
	w.report("canary", "2", state.ReportedOK, 2, 3)
	w.wait(time.Minute)
	w.look(n)
	bodies := w.sent()
	expect(t, "its end", texts(t, bodies), "prod/canary: 2222222 is complete: 3/3 ok, 1m0s after it was committed")
	want := `{"id":"ops/completed/prod/canary/0000000000000000000000000000000000000002","event":"completed","environment":"prod","ring":"canary","at":"2026-11-25T09:03:00Z",` +
		`"commit":"0000000000000000000000000000000000000002","base":"2222222222222222222222222222222222222222","author":"ann","subject":"Promote \u003c2\u003e \u0026 more","seconds":60,` +
		`"counts":{"wanted":3,"ok":3,"progressing":0,"behind":0,"drifted":0,"stale":0,"missing":0,"failed":0,"suspended":0},"link":"https://hub.example.com/rollouts/prod","text":"prod/canary: 2222222 is complete: 3/3 ok, 1m0s after it was committed"}`
	if len(bodies) != 1 || bodies[0] != want {
		t.Errorf("the message is\n%s\nand not\n%s", bodies, want)
	}
	// After a restart, and much later, nothing is sent again.
	for range 3 {
		w.look(w.notifier("[{name: ops, url: '" + w.URL + "/secret'}]"))
		w.wait(20 * 24 * time.Hour)
	}
	for _, text := range texts(t, w.sent()) {
		if !strings.Contains(text, "no news of") {
			t.Errorf("it is sent again: %s", text)
		}
	}
	kept, err := w.db.Notifications(t.Context(), "ops/completed/")
	if err != nil || len(kept) != 0 {
		t.Errorf("there are %v, %v", kept, err)
	}
}

// Of two hubs, only one sends.
func replicas(t *testing.T, database string) {
	w := newWorld(t, database)
	file := "[{name: ops, url: '" + w.URL + "'}, {name: dev, url: '" + w.URL + "', environments: [dev]}]"
	one, two := w.notifier(file), w.notifier(file)
	w.want(1)
	w.look(one)
	w.want(1, "canary 1")
	w.look(one)
	w.look(two)
	expect(t, "what is sent", texts(t, w.sent()), "prod/canary has 1111111 now: Promote <1> & more (ann)")
	expect(t, "what is said", w.said(), "notification dev: the platform has no environment dev, or its branch was not read yet", "notification dev: the platform has no environment dev, or its branch was not read yet")
}

// If a hub has claimed a message, and was killed before it sent it, another one sends it when the
// lease has ended.
func killed(t *testing.T, database string) {
	w := newWorld(t, database)
	n := w.notifier("[{name: ops, url: '" + w.URL + "'}]")
	w.want(1)
	w.look(n)
	w.want(1, "canary 1")
	key := "ops/promoted/prod/canary/0000000000000000000000000000000000000001"
	if ok, err := w.db.AddNotification(t.Context(), store.Notification{Key: key, At: w.time(), Reference: attempt{state: sending, number: 1}.String()}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	w.wait(lease - time.Second)
	w.look(n)
	expect(t, "within the lease", w.sent())
	w.wait(time.Second)
	w.look(n)
	if got := w.sent(); len(got) != 1 {
		t.Errorf("after the lease, %q", got)
	}
	kept, err := w.db.Notifications(t.Context(), key)
	if err != nil || kept[key].Reference != "sent 2 0 0" {
		t.Errorf("it is kept as %v, %v", kept, err)
	}
}

// A failed message is tried again, each time later, and not forever. No log line has the address.
func failures(t *testing.T, database string) {
	w := newWorld(t, database)
	n := w.notifier("[{name: ops, url: '" + w.URL + "/T0/secret'}]")
	w.want(1)
	w.look(n)
	w.want(1, "canary 1")
	w.answer(http.StatusFound)
	w.look(n)
	expect(t, "the log", w.said(), "notification ops (promoted of prod/canary): it answers 302 Found; it is tried again after 30s")
	w.look(n)
	w.wait(29 * time.Second)
	w.look(n)
	if got := w.sent(); len(got) != 1 {
		t.Errorf("too early, there are %d messages", len(got))
	}
	w.wait(time.Second)
	w.look(n)
	expect(t, "the log", w.said(), "notification ops (promoted of prod/canary): it answers 302 Found; it is tried again after 1m0s")
	for range maxAttempts {
		w.wait(longestPause)
		w.look(n)
	}
	if got := w.sent(); len(got) != maxAttempts-1 {
		t.Errorf("it was tried %d times after the first", len(got))
	}
	said := w.said()
	if last := said[len(said)-1]; last != "notification ops (promoted of prod/canary): it answers 302 Found; it is given up after 12 attempts" {
		t.Errorf("the last is %s", last)
	}
	// The server is down.
	w.want(1, "canary 2", "canary 1")
	w.Close()
	w.look(n)
	if said := w.said(); len(said) != 1 || !strings.Contains(said[0], "connection refused") || strings.Contains(said[0], "secret") {
		t.Errorf("the log has %q", said)
	}
}

// A template that fails in spite of its checks does not delay the message.
func badTemplate(t *testing.T, database string) {
	w := newWorld(t, database)
	n := w.notifier("[{name: ops, url: '" + w.URL + "', events: [promoted], template: '{{slice .Subject 0 (len .Author)}}{{if eq .Base \"" + strings.Repeat("2", 40) + "\"}}{{slice .Subject 999}}{{end}}'}]")
	w.want(1)
	w.look(n)
	w.want(1, "canary 1")
	w.look(n)
	expect(t, "by the template", texts(t, w.sent()), "Pro")
	w.want(1, "main 2", "canary 2", "canary 1")
	w.look(n)
	expect(t, "without it", texts(t, w.sent()), "prod/canary has 2222222 now: Promote <2> & more (ann) (the text is the default one: the template of this target failed)",
		"prod/main has 2222222 now: Promote <2> & more (ann) (the text is the default one: the template of this target failed)")
	if said := w.said(); len(said) != 1 || !strings.HasPrefix(said[0], "notification ops: the template fails for a message of the event promoted, which has the default text: template: ") {
		t.Errorf("the log has %q", said)
	}
}

func groups(t *testing.T, database string) {
	w := newWorld(t, database)
	n := w.notifier("[{name: ops, url: '" + w.URL + "', events: [drifted, stale]}]")
	w.want(20)
	w.look(n)
	w.report("canary", "0", state.ReportedOK, 0, 20)
	w.report("main", "0", state.ReportedOK, 0, 20)
	w.wait(time.Second)
	w.report("canary", "0", state.ReportedDrifted, 0, 7)
	w.look(n)
	expect(t, "at once", w.sent())
	w.wait(settle)
	w.look(n)
	bodies := w.sent()
	expect(t, "after a minute", texts(t, bodies), "prod: 7 assignments have drifted, on 7 clusters: canary-00 (shop), canary-01 (shop), canary-02 (shop), canary-03 (shop), canary-04 (shop) and 2 more")
	if !strings.Contains(bodies[0], `"link":"https://hub.example.com/running?environment=prod\u0026state=drifted"`) {
		t.Errorf("the message is %s", bodies[0])
	}
	w.report("canary", "0", state.ReportedDrifted, 7, 13)
	w.wait(again)
	w.look(n)
	expect(t, "a few more", w.sent())
	w.report("canary", "0", state.ReportedDrifted, 13, 14)
	w.look(n)
	if got := texts(t, w.sent()); len(got) != 1 || !strings.HasPrefix(got[0], "prod: 14 assignments") {
		t.Errorf("twice as many: %q", got)
	}
	// The event ends and returns soon, so there is no new message.
	w.wait(time.Second)
	w.report("canary", "0", state.ReportedOK, 0, 20)
	w.look(n)
	w.wait(gone - time.Second)
	w.look(n)
	w.report("canary", "0", state.ReportedDrifted, 0, 1)
	w.wait(settle)
	w.look(n)
	expect(t, "it comes back", w.sent())
	w.report("canary", "0", state.ReportedOK, 0, 1)
	w.look(n)
	w.wait(gone)
	w.look(n)
	w.report("canary", "0", state.ReportedDrifted, 3, 4)
	w.look(n)
	w.wait(settle)
	w.look(n)
	expect(t, "another one later", texts(t, w.sent()), "prod: 1 assignments have drifted, on 1 clusters: canary-03 (shop)")
	// All clusters of main are silent.
	w.wait(40 * time.Minute)
	w.report("canary", "0", state.ReportedOK, 0, 20)
	w.look(n)
	w.wait(settle)
	w.look(n)
	expect(t, "silence", texts(t, w.sent()), "prod: there is no news of 20 clusters, with 20 assignments: main-00, main-01, main-02, main-03, main-04 and 15 more")
}

// Two clusters with one name are reported as drift is.
func twoOfOneName(t *testing.T, database string) {
	w := newWorld(t, database)
	n := w.notifier("[{name: ops, url: '" + w.URL + "', events: [conflicting]}]")
	w.want(8)
	w.look(n)
	turns := func(uids string) {
		for _, uid := range uids {
			for i := range 6 {
				if _, err := w.Report(t.Context(), &state.Report{Cluster: fmt.Sprintf("main-%02d", i), Received: w.time(), At: w.time(), Snapshot: true, UID: string(uid)}); err != nil {
					t.Fatal(err)
				}
			}
			w.wait(settle)
			w.look(n)
		}
	}
	turns("ab")
	expect(t, "made anew", w.sent())
	turns("aba")
	bodies := w.sent()
	expect(t, "in turns", texts(t, bodies), "prod: two clusters report by one name, for 6 names: main-00, main-01, main-02, main-03, main-04 and 1 more")
	if !strings.Contains(bodies[0], `"event":"conflicting"`) || !strings.Contains(bodies[0], `"link":"https://hub.example.com/clusters/prod/main-00"`) {
		t.Errorf("the message is %s", bodies[0])
	}
}

// A message that is sent again has the same id.
func groupAgain(t *testing.T, database string) {
	w := newWorld(t, database)
	n := w.notifier("[{name: ops, url: '" + w.URL + "'}]")
	w.want(1)
	w.look(n)
	w.report("canary", "0", state.ReportedDrifted, 0, 1)
	w.look(n)
	w.wait(settle)
	w.answer(http.StatusBadGateway)
	w.look(n)
	w.wait(firstPause)
	w.answer(http.StatusNoContent)
	w.look(n)
	var ids []string
	for _, b := range w.sent() {
		var m Message
		if err := json.Unmarshal([]byte(b), &m); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	if len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("the ids are %q", ids)
	}
}

func signatureAndSlack(t *testing.T, database string) {
	w := newWorld(t, database)
	folder := t.TempDir()
	for name, text := range map[string]string{"key": "a-key-of-many-characters\n", "url": w.URL + "/services/T0/secret\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := w.notifier(`
- {name: ops, url: "` + w.URL + `", keyFile: ` + folder + `/key, events: [promoted]}
- name: chat
  kind: slack
  urlFile: ` + folder + `/url
  template: '*{{.Where}}* {{.Event}}: {{.Subject}}'
`)
	w.want(1)
	w.look(n)
	w.want(1, "canary 1")
	w.look(n)
	bodies := w.sent()
	if len(bodies) != 2 {
		t.Fatalf("there are %q", bodies)
	}
	mac := hmac.New(sha256.New, []byte("a-key-of-many-characters"))
	mac.Write([]byte(bodies[0]))
	if got := w.headers[0].Get("X-Signature"); got != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("the signature is %q", got)
	}
	var slack struct{ Text string }
	if err := json.Unmarshal([]byte(bodies[1]), &slack); err != nil {
		t.Fatal(err)
	}
	if slack.Text != "*prod/canary* promoted: Promote &lt;1&gt; &amp; more\n<https://hub.example.com/rollouts/prod|Open the hub>" {
		t.Errorf("the text is %q", slack.Text)
	}
}

func TestParse(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"": "",
		"[{name: a, url: 'https://a.example/secret'}]":                               "",
		`[{"name": "a", "kind": "slack", "url": "https://a.example/secret"}]`:        "",
		"[{name: A, url: 'https://a.example'}]":                                      "entry 1 needs a name of lower-case letters, digits and hyphens",
		"[{name: a, url: 'https://a.example'}, {name: a, url: 'https://a.example'}]": "a: there are two of that name",
		"[]\n---\n[{name: a, url: 'https://a.example'}]":                             "there is more after the first document of YAML: write one document, without ---",
		"[{name: a}]": "a: it needs url or urlFile, and not both",
		"[{name: a, url: 'https://a.example', urlFile: b}]":                                                    "a: it needs url or urlFile, and not both",
		"[{name: a, url: 'ftp://secret.example'}]":                                                             "a: the URL is none of http or https",
		"[{name: a, urlFile: /absent}]":                                                                        "a: urlFile: open /absent: no such file or directory",
		"[{name: a, url: 'https://a.example', kind: teams}]":                                                   `a: there is no kind "teams": there are webhook and slack`,
		"[{name: a, url: 'https://a.example', events: [done]}]":                                                `a: there is no event "done": there are [promoted completed failed drifted stale conflicting]`,
		"[{name: a, url: 'https://a.example', kind: slack, keyFile: " + key + "}]":                             "a: keyFile is for webhooks: Slack checks no signatures",
		"[{name: a, url: 'https://a.example', keyFile: " + key + "}]":                                          "a: keyFile " + key + ": a key of fewer than 16 characters can be guessed",
		"[{name: a, url: 'https://a.example', template: '{{.Cluster}}'}]":                                      "a: the template fails for the event promoted, which may be without some fields: template: :1:2: executing \"\" at <.Cluster>: can't evaluate field Cluster in type *notify.Message",
		"[{name: a, url: 'https://a.example', template: '{{slice .Commit 0 7}}'}]":                             "a: the template fails for the event drifted, which may be without some fields: template: :1:2: executing \"\" at <slice .Commit 0 7>: error calling slice: index out of range: 7",
		"[{name: a, url: 'https://a.example', events: [promoted], template: '{{slice .Commit 0 7}}'}]":         "",
		"[{name: a, url: 'https://a.example', events: [drifted, stale], template: '{{index .First 0}}'}]":      "",
		"[{name: a, url: 'https://a.example', events: [drifted], template: '{{with .Ring}}{{.Name}}{{end}}'}]": "",
		"[{name: a, url: 'https://a.example', events: [failed], template: '{{with .Ring}}{{.Name}}{{end}}'}]":  "a: the template fails for the event failed, which may be without some fields: template: :1:16: executing \"\" at <.Name>: can't evaluate field Name in type string",
		"[{name: a, url: 'https://a.example', events: [promoted], template: '{{index .First 0}}'}]":            "a: the template fails for the event promoted, which may be without some fields: template: :1:2: executing \"\" at <index .First 0>: error calling index: reflect: slice index out of range",
		"[{name: a, url: 'https://a.example', template: '{{'}]":                                                "a: the template: template: :1: unclosed action",
		"[{name: a, url: 'https://a.example', when: never}]":                                                   "yaml: unmarshal errors:\n  line 1: field when not found",
	} {
		_, err := Parse([]byte(text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// A template cannot make a text of unlimited length.
func TestLong(t *testing.T) {
	tm := mustTemplate(`{{range .First}}` + strings.Repeat("a", 1000) + `{{end}}`)
	text, err := execute(tm, &Message{First: make([]string, 1000)})
	if err != nil || len(text) != maxText {
		t.Errorf("it has %d bytes, %v", len(text), err)
	}
}
