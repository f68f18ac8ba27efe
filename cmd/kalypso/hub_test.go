package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/follow"
	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
)

// wantedProgram is `wanted`. It prints the desired state of the platform in the folder, as a hub
// reads it.
func wantedProgram() {
	if len(os.Args) > 1 {
		os.Exit(run()) // a worker
	}
	clockAnywhere = true
	if err := runWanted(); err != nil {
		fmt.Fprintln(os.Stderr, "wanted:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runWanted() error {
	workers := worker.NewPool(1, worker.Self(compiler.WorkerArgument))
	defer workers.Close()
	g := promoter{&platform{console: &console{streams: streams{os.Stdin, os.Stdout, os.Stderr}, dir: "."}, workers: workers}}
	c, err := cache.Open(cache.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	r, err := g.promotionRequest(&promotionOptions{}, c)
	if err != nil {
		return err
	}
	return follow.Write(context.Background(), os.Stdout, r)
}

// hubKey is the key of a script's hub among its values.
type hubKey struct{}

// scriptHub is the hub of a script. Its clock does not move by itself. It shows the value of
// KALYPSO_NOW at the last operation.
type scriptHub struct {
	*hub.Hub
	server  *httptest.Server
	now     atomic.Pointer[time.Time]
	problem atomic.Pointer[string] // why the desired state could not be read
}

// hubCommand is `hub start`, `hub look` or `hub stop`. start sets KALYPSO_HUB and
// KALYPSO_HUB_TOKEN. look reads the desired state of the platform in p, and the current time.
func hubCommand(ts *testscript.TestScript, neg bool, args []string) {
	const usage = "usage: hub start|look|stop"
	if neg || len(args) != 1 {
		ts.Fatalf(usage)
	}
	h, _ := ts.Value(hubKey{}).(**scriptHub)
	switch args[0] {
	case "start":
		*h = startHub(ts)
	case "look":
		(*h).tell(ts)
		(*h).look(ts)
	case "stop":
		(*h).server.Close()
	default:
		ts.Fatalf(usage)
	}
}

// tell sets the clock.
func (h *scriptHub) tell(ts *testscript.TestScript) {
	now := time.Now()
	if text := ts.Getenv(nowEnv); text != "" {
		var err error
		now, err = time.Parse(time.RFC3339, text)
		ts.Check(err)
	}
	h.now.Store(&now)
}

func startHub(ts *testscript.TestScript) *scriptHub {
	h := &scriptHub{}
	h.tell(ts)
	ctx, cancel := context.WithCancel(context.Background())
	db, err := store.Open(ctx, at(ts, "hub.db"))
	ts.Check(err)
	clock := func() time.Time { return *h.now.Load() }
	h.Hub, err = hub.Open(ctx, hub.Options{Store: db, StaleAfter: time.Hour, Now: clock, Problem: func(err error) { ts.Logf("hub: %v", err) }})
	ts.Check(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Run(ctx)
	}()
	tokens := access.NewTokens(db, clock)
	admin, err := tokens.Make(ctx, api.Token{Role: string(access.Admin), Note: "script"})
	ts.Check(err)
	h.server = httptest.NewServer(server.New(server.Options{Hub: h.Hub, Tokens: tokens, Problem: func(environment string) string {
		if why := h.problem.Load(); why != nil && environment == "" {
			return *why
		}
		return ""
	}}))
	ts.Defer(func() {
		h.server.Close()
		cancel()
		<-done
		_ = db.Close()
	})
	ts.Setenv(hubEnv, h.server.URL)
	ts.Setenv(hubTokenEnv, admin.Secret)
	return h
}

func (h *scriptHub) look(ts *testscript.TestScript) {
	p := at(ts, "p")
	if is, err := filepath.Rel(p, ts.MkAbs(".")); err != nil || is != "." {
		ts.Fatalf("hub look is to be done in p")
	}
	if err := ts.Exec("wanted"); err != nil {
		why := strings.TrimSpace(ts.ReadFile("stderr"))
		h.problem.Store(&why)
		return
	}
	h.problem.Store(nil)
	lines := json.NewDecoder(bytes.NewBufferString(ts.ReadFile("stdout")))
	for position := 0; ; position++ {
		var l follow.Line
		err := lines.Decode(&l)
		if errors.Is(err, io.EOF) {
			ts.Fatalf("wanted did not end")
		}
		ts.Check(err)
		if l.End != nil {
			ts.Check(h.Order(context.Background(), l.End.Environments))
			return
		}
		ts.Check(h.Want(context.Background(), position, l.Wanted))
	}
}

// TestDriftOldest holds that the oldest are listed, on whichever page of the hub they are.
func TestDriftOldest(t *testing.T) {
	ages := [][]int{{3, 9}, {1}, {8, 2}} // of the rows of each page, in hours
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &page)
		out := api.Assignments{}
		for _, age := range ages[page] {
			out.Assignments = append(out.Assignments, state.Row{Cluster: fmt.Sprintf("c-%d", age), State: state.Behind, Changed: time.Date(2026, 11, 20, 12-age, 0, 0, 0, time.UTC)})
		}
		if page+1 < len(ages) {
			out.Next = fmt.Sprint(page + 1)
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(hub.Close)
	for limit, want := range map[string]string{"1": "c-9", "2": "c-9 c-8", "4": "c-9 c-8 c-3 c-2", "0": "c-9 c-8 c-3 c-2 c-1", "5": "c-9 c-8 c-3 c-2 c-1"} {
		var out, said bytes.Buffer
		code := execute(t.Context(), []string{"hub", "drift", "--hub", hub.URL, "--limit", limit}, streams{in: strings.NewReader(""), out: &out, err: &said})
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
			got = append(got, strings.Fields(line)[0])
		}
		if more := strings.Contains(said.String(), "there are more than these "+limit); code != 0 || strings.Join(got, " ") != want || more != (limit == "1" || limit == "2" || limit == "4") {
			t.Errorf("--limit %s: %d, %v, %s", limit, code, got, said.String())
		}
	}
}
