package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// TestFullHub has a hub whose disk is full: it refuses reports with 503, and answers questions.
// What it acknowledged stays, and it goes on by itself when there is room.
func TestFullHub(t *testing.T) {
	name := hubtest.SQLite(t)()
	db := hubtest.Open(t, name)
	var full atomic.Bool
	h := run(t, db, func(err error) {
		if !full.Load() || !strings.Contains(err.Error(), "full") {
			t.Errorf("the hub says: %v", err)
		}
	})
	commit := strings.Repeat("c", 40)
	err := h.Want(t.Context(), 0, &state.Wanted{Environment: "prod", Commits: []state.Commit{{ID: commit}}, Clusters: []state.Cluster{{Name: "oslo", Folder: "edge"}}, Folders: []state.Folder{{
		Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "hello-main", Workload: "hello", Digest: "d"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server.New(server.Options{Hub: h}))
	t.Cleanup(web.Close)
	message := func(n int) string { return fmt.Sprint(n, " ", strings.Repeat("m", 200)) }
	report := func(n int) (*http.Response, string) {
		t.Helper()
		body, err := json.Marshal(api.Report{Cluster: "oslo", At: now().Add(time.Duration(n-10_000) * time.Millisecond), Snapshot: true, Items: []api.Item{{Assignment: "prod/edge/hello-main", Commit: commit, State: "failed", Message: message(n)}}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Post(web.URL+"/v1/reports", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(text)
	}
	is := func(h *hub.Hub) string {
		t.Helper()
		for _, row := range hubtest.Rows(h.Fleet()) {
			if row.Cluster == "oslo" {
				return row.Message
			}
		}
		return ""
	}
	full.Store(true)
	if err := db.Room(20); err != nil {
		t.Fatal(err)
	}
	sent := 1
	for ; sent < 1000; sent++ {
		if res, text := report(sent); res.StatusCode == http.StatusServiceUnavailable {
			break
		} else if res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, text)
		}
	}
	if sent == 1 || sent == 1000 {
		t.Fatalf("of 1000 reports, %d were acknowledged", sent-1)
	}
	for n := range 3 {
		if res, text := report(sent + n); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("the disk is full: %s, %v, %s", res.Status, res.Header, text)
		}
	}
	if res, err := http.Get(web.URL + "/v1/counts"); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("a question: %v, %v", res, err)
	}
	other := run(t, hubtest.Open(t, name), func(err error) { t.Error(err) })
	if got, want := is(other), message(sent-1); got != want {
		t.Errorf("what was acknowledged is %.5q, and should be %.5q", got, want)
	}
	if err := db.Room(1000); err != nil {
		t.Fatal(err)
	}
	if res, text := report(sent); res.StatusCode != http.StatusOK || is(h) != message(sent) {
		t.Errorf("there is room again: %s %s, and it is %.5q", res.Status, text, is(h))
	}
	full.Store(false)
}
