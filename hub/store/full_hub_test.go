package store_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// TestFullHub checks a hub whose database may not grow any more.
func TestFullHub(t *testing.T) {
	t.Parallel()
	name := hubtest.SQLite(t)()
	db := hubtest.Open(t, name)
	fullHub(t, name, db, false, func(full bool) error {
		if full {
			return db.Room(20)
		}
		return db.Room(1000)
	})
}

// TestSlowFullDisk checks hubs whose database is on a full file system.
func TestSlowFullDisk(t *testing.T) {
	isolated.Slow(t, "needs PostgreSQL, and root to mount a file system")
	for _, c := range []struct {
		name     string
		size     int64
		database func(dir string) string
	}{
		{"SQLite", 2 << 20, func(dir string) string { return filepath.Join(dir, "hub.db") }},
		{"PostgreSQL", 160 << 20, func(dir string) string {
			c, err := hubtest.StartPostgres(dir)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Stop)
			name, err := c.Database(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return name
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "full") // PostgreSQL runs as another user, and must reach it
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("full", dir, "tmpfs", 0, fmt.Sprint("mode=777,size=", c.size)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
				_ = os.Remove(dir)
			})
			name, ballast := c.database(dir), filepath.Join(dir, "ballast")
			fullHub(t, name, hubtest.Open(t, name), true, func(full bool) error {
				if !full {
					return os.Remove(ballast)
				}
				var disk syscall.Statfs_t
				if err := syscall.Statfs(dir, &disk); err != nil {
					return err
				}
				const left = 20 * 4096
				return os.WriteFile(ballast, make([]byte, int64(disk.Bavail)*disk.Bsize-left), 0o600)
			})
		})
	}
}

// fullHub checks a hub whose disk becomes full, for all hubs or only for that one. It refuses
// reports with 503, and is not ready. It still answers questions with the acknowledged state, even
// after a restart. When there is room again, it becomes ready by itself, and accepts reports.
func fullHub(t *testing.T, name string, db *store.Store, forAll bool, fill func(full bool) error) {
	var full atomic.Bool
	problem := func(err error) {
		if !full.Load() || !strings.Contains(err.Error(), "full") && !strings.Contains(err.Error(), "No space left") {
			t.Errorf("the hub says: %v", err)
		}
	}
	h := run(t, db, problem)
	commit := strings.Repeat("c", 40)
	err := h.Want(t.Context(), 0, &state.DesiredState{Environment: "prod", Commits: []state.Commit{{ID: commit}}, Clusters: []state.Cluster{{Name: "oslo", Folder: "edge"}}, Folders: []state.Folder{{
		Name: "edge", ClusterType: "edge", Listed: true, Targets: []state.Target{{Name: "hello-main", Workload: "hello", Digest: "d"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	serve := func(h *hub.Hub) string {
		web := httptest.NewServer(server.New(server.Options{Hub: h}))
		t.Cleanup(web.Close)
		return web.URL
	}
	do := func(method, address string, body []byte) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
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
	// Each report differs from the one before.
	report := func(web string, n int) (*http.Response, string) {
		t.Helper()
		at, is := now().Add(time.Duration(n-10_000)*time.Millisecond), []string{"progressing", "failed"}[n%2]
		body, err := json.Marshal(api.Report{Cluster: "oslo", At: at, Snapshot: true, Items: []api.Item{{
			Assignment: "prod/edge/hello-main", Commit: commit, State: is, Message: fmt.Sprint(n, " ", strings.Repeat("m", 200)),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		return do(http.MethodPost, web+"/v1/reports", body)
	}
	answers := func(web string) (all string) {
		t.Helper()
		questions := []string{"/v1/counts?environment=prod", "/v1/assignments", "/v1/rollout?environment=prod", "/metrics"}
		for _, path := range questions {
			res, text := do(http.MethodGet, web+path, nil)
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s: %s %s", path, res.Status, text)
			}
			for line := range strings.Lines(text) {
				if path != "/metrics" || strings.HasPrefix(line, "kalypso_assignments") {
					all += line
				}
			}
		}
		return all
	}
	tag := func(web string) string {
		res, _ := do(http.MethodGet, web+"/v1/counts", nil)
		return res.Header.Get("ETag")
	}
	ready := func(web string, want int, says string) {
		t.Helper()
		if res, text := do(http.MethodGet, web+"/readyz", nil); res.StatusCode != want || !strings.Contains(text, says) {
			t.Errorf("/readyz is %s %s, and should be %d %s", res.Status, text, want, says)
		}
	}
	const unready = "nothing can be written, and reports are refused: the database"
	web := serve(h)
	ready(web, http.StatusOK, "ok")
	full.Store(true)
	if err := fill(true); err != nil {
		t.Fatal(err)
	}
	sent, was, version := 1, "", ""
	for ; sent < 5000; sent++ {
		if res, text := report(web, sent); res.StatusCode == http.StatusServiceUnavailable {
			break
		} else if res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, text)
		}
		was, version = answers(web), tag(web)
	}
	if sent == 1 || sent == 5000 {
		t.Fatalf("of 5000 reports, %d were acknowledged", sent-1)
	}
	for n := range 4 {
		if is := answers(web); is != was {
			t.Fatalf("after %d were refused, it is\n%s, and what was acknowledged is\n%s", n+1, is, was)
		}
		ready(web, http.StatusServiceUnavailable, unready)
		res, text := report(web, sent+n)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("the disk is full: %s, %v, %s", res.Status, res.Header, text)
		}
	}
	if tag(web) == version {
		t.Error("who was answered while something was refused is not answered again")
	}
	again := run(t, hubtest.Open(t, name), problem)
	other := serve(again)
	if is := answers(other); is != was {
		t.Errorf("after a restart it is\n%s, and what was acknowledged is\n%s", is, was)
	}
	if forAll {
		if res, text := report(other, sent); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("the disk is full after a restart, too: %s %s", res.Status, text)
		}
		ready(other, http.StatusServiceUnavailable, unready)
	}
	if err := fill(false); err != nil {
		t.Fatal(err)
	}
	for _, changed := h.Version(); h.Unwritable() != nil; _, changed = h.Version() {
		<-changed
	}
	ready(web, http.StatusOK, "ok")
	if res, text := report(web, sent); res.StatusCode != http.StatusOK {
		t.Errorf("there is room again: %s %s", res.Status, text)
	}
	if is := answers(web); is == was || !strings.Contains(is, fmt.Sprint(`"`, sent, " mmm")) {
		t.Errorf("there is room again, and it is %s", is)
	}
	full.Store(false)
}
