//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/pages"
	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/view"
)

// serve is a hub. It prints its address when it is ready, and receives the desired state by HTTP.
func serve(ctx context.Context, o options) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.profile != "" {
		f, err := os.Create(filepath.Join(o.profile, fmt.Sprintf("cpu-%d.pprof", os.Getpid())))
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	debug.SetGCPercent(hub.CollectorPercent) // as kalypso-hub does
	db, err := store.Open(ctx, o.database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	h, err := hub.Open(ctx, hub.Options{Store: db, StaleAfter: 5 * time.Minute,
		Keep: 180 * 24 * time.Hour, Now: time.Now,
		Problem: func(err error) { fmt.Fprintln(os.Stderr, "hub:", err) }})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { h.Run(ctx); close(done) }()
	mux := http.NewServeMux()
	feed, source := &view.Feed{}, &pages.Source{Hub: h, Title: "hubbench", Why: func(string) string { return "" }}
	go source.Follow(ctx, feed)
	mux.Handle("/", server.New(server.Options{Hub: h, Tokens: access.NewTokens(db, time.Now),
		Pages: view.ObserverHandler(feed, "/diagnostics", "/changes")}))
	mux.HandleFunc("POST /want", func(w http.ResponseWriter, r *http.Request) {
		wanted := &state.DesiredState{}
		if err := json.NewDecoder(r.Body).Decode(wanted); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := h.Want(r.Context(), 0, wanted); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("POST /heap", func(http.ResponseWriter, *http.Request) {
		if o.profile == "" {
			return
		}
		if f, err := os.Create(filepath.Join(o.profile, "heap.pprof")); err == nil {
			_ = pprof.Lookup("heap").WriteTo(f, 0)
			_ = f.Close()
		}
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(listener) }()
	fmt.Println(listener.Addr())
	<-ctx.Done()
	<-done
	return nil
}

// process is a hub in a process.
type process struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
}

func startHub(ctx context.Context, o options) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-serve", "-database", o.database, "-profile", o.profile)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(errors.New("the hub did not start"), cmd.Wait())
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256}
	return &process{cmd, "http://" + strings.TrimSpace(address),
		&http.Client{Transport: transport, Timeout: 10 * time.Minute}}, nil
}

func (p *process) kill() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() }

func (p *process) end() { _ = p.cmd.Process.Signal(syscall.SIGTERM); _ = p.cmd.Wait() }

// cpu returns the CPU time of the process, as Linux has it; 0 elsewhere.
func (p *process) cpu() time.Duration {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // of a hundredth of a second
}

// memory returns the peak memory of the process in MiB, as Linux has it; 0 elsewhere.
func (p *process) memory() int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for line := range strings.SplitSeq(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kib >> 10
		}
	}
	return 0
}
