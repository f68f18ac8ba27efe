package notify

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

// world is a hub of one environment, prod, with the rings canary and main, and a server that
// messages are sent to.
type world struct {
	*testing.T
	*hub.Hub
	*httptest.Server
	db *store.Store

	mu       sync.Mutex
	now      time.Time
	status   int // that the server answers with
	bodies   []string
	headers  []http.Header
	problems []string
}

var morning = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, database string) *world {
	t.Helper()
	w := &world{T: t, now: morning, status: http.StatusOK, db: hubtest.Open(t, database)}
	var err error
	w.Hub, err = hub.Open(t.Context(), hub.Options{Store: w.db, StaleAfter: time.Hour, Now: w.time, Problem: w.problem})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { w.Hub.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.bodies, w.headers = append(w.bodies, string(body)), append(w.headers, r.Header)
		out.Header().Set("Location", "/elsewhere")
		out.WriteHeader(w.status)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *world) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) problem(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, err.Error())
}

// wait moves the clock, and lets the hub do the work that is due.
func (w *world) wait(d time.Duration) {
	w.Helper()
	w.mu.Lock()
	w.now = w.now.Add(d)
	w.mu.Unlock()
	if err := w.Do(w.Context(), func(context.Context, *store.Tx) (*state.Changes, error) { return nil, nil }); err != nil {
		w.Fatal(err)
	}
}

// want gives the branch some releases, the newest first: <ring> <content of each ring>.
func (w *world) want(clusters int, releases ...string) {
	w.Helper()
	wanted := &state.DesiredState{Environment: "prod", Repository: "https://forge.example.com/acme/gitops", Branch: "prod"}
	has := map[string]string{"canary": "0", "main": "0"}
	for i := len(releases) - 1; i >= -1; i-- {
		number := len(releases) - 1 - i // of the commit, from 0
		if i < len(releases)-1 {
			ring, base, _ := strings.Cut(releases[i+1], " ")
			has[ring] = base
		}
		c := state.Commit{ID: fmt.Sprintf("%040d", number), Time: morning.Add(time.Duration(number) * time.Minute), Author: "ann", Subject: "Promote <" + has["canary"] + "> & more", Effect: &state.Effect{Removed: 19, RemovedFrom: 19, Added: 7, Emptied: number}}
		for _, ring := range []string{"canary", "main"} {
			c.Rings = append(c.Rings, state.Ring{Name: ring, Base: strings.Repeat(has[ring], 40)})
		}
		wanted.Commits = append([]state.Commit{c}, wanted.Commits...)
	}
	for _, ring := range []string{"canary", "main"} {
		digest := "of-" + has[ring]
		wanted.Folders = append(wanted.Folders, state.Folder{Name: ring, ClusterType: ring, Ring: ring, Listed: true, Base: has[ring], Targets: []state.Target{{Name: "web", Workload: "shop", Digest: digest}}})
		for i := range clusters {
			wanted.Clusters = append(wanted.Clusters, state.Cluster{Name: fmt.Sprintf("%s-%02d", ring, i), Folder: ring})
		}
	}
	if err := w.Want(w.Context(), 0, wanted); err != nil {
		w.Fatal(err)
	}
}

// report reports that some clusters of a ring run the content of a base.
func (w *world) report(ring, base string, is state.ReportedState, from, to int) {
	w.Helper()
	for i := from; i < to; i++ {
		_, err := w.Report(w.Context(), &state.Report{
			Cluster: fmt.Sprintf("%s-%02d", ring, i), Received: w.time(), At: w.time(), By: "test", Snapshot: true, Digest: fmt.Sprint(base, is, i),
			Items: []state.Item{{Assignment: "prod/" + ring + "/web", Digest: "of-" + base, State: is, Since: w.time()}},
		})
		if err != nil {
			w.Fatal(err)
		}
	}
}

// sent returns the bodies that the server has received since the last call.
func (w *world) sent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.bodies
	w.bodies = nil
	return out
}

func (w *world) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.problems
	w.problems = nil
	return out
}

func (w *world) answer(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
}

func (w *world) notifier(targets string) *Notifier {
	w.Helper()
	parsed, err := Parse([]byte(targets))
	if err != nil {
		w.Fatal(err)
	}
	return New(w.Hub, parsed, "https://hub.example.com/", w.problem)
}

func (w *world) look(n *Notifier) {
	w.Helper()
	for _, t := range n.Targets {
		if err := n.Look(w.Context(), t); err != nil {
			w.Fatal(err)
		}
	}
}
