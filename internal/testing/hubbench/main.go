//go:build unix

// Hubbench measures a hub. It runs a hub in a process of its own, and lets many clusters report
// to it over HTTP. Meanwhile it sends questions to it, and it prints the times:
//
//	go run ./internal/testing/hubbench [-clusters 20000] [-targets 10] [-seconds 30] [-postgres]
//		[-dir DIR] [-profile DIR]
//
// Each cluster reports once a minute, with a token of its own, so that 20,000 make 333 requests a
// second. The load is made on the same machine, and counts. If PostgreSQL is installed, it runs
// the report of kalypso-observability-hub as well.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kalypso-io/kalypso/internal/testing/hubtest"
)

type options struct {
	clusters, targets, seconds int
	dir, database, profile     string
	postgres, serve            bool
	transitions                int
}

func main() {
	var o options
	flag.IntVar(&o.clusters, "clusters", 20_000, "`number` of clusters")
	flag.IntVar(&o.targets, "targets", 10, "`number` of assignments on each")
	flag.IntVar(&o.seconds, "seconds", 30, "how long each kind of load lasts")
	flag.BoolVar(&o.postgres, "postgres", false, "use a PostgreSQL, which is started, and not a SQLite file")
	flag.StringVar(&o.dir, "dir", "", "`folder` for the database, for its file system (default: "+
		"where temporary files are)")
	flag.StringVar(&o.database, "database", "", "of -serve: the database")
	flag.StringVar(&o.profile, "profile", "", "`folder` for CPU and memory profiles of the hub")
	flag.IntVar(&o.transitions, "history", 0, "measure a history of so many transitions instead")
	flag.BoolVar(&o.serve, "serve", false, "be the hub")
	flag.Parse()
	run := measure
	if o.serve {
		run = serve
	}
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "hubbench:", err)
		os.Exit(1)
	}
}

// measure measures everything.
func measure(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp(o.dir, "hubbench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	o.database = filepath.Join(dir, "hub.db")
	if o.postgres {
		if err := os.Chmod(dir, 0o711); err != nil { // it runs as somebody else
			return err
		}
		c, err := hubtest.StartPostgres(dir)
		if err != nil {
			return err
		}
		defer c.Stop()
		if o.database, err = c.Database(ctx); err != nil {
			return err
		}
	}
	if o.transitions > 0 {
		return history(ctx, o, o.transitions)
	}
	t, err := makeTokens(ctx, o)
	if err != nil {
		return err
	}
	h, err := startHub(ctx, o)
	if err != nil {
		return err
	}
	defer func() { h.kill() }()
	f := newFleet(o, t)
	fmt.Printf("%d clusters with %d assignments each, on %s\n", o.clusters, o.targets, kindOf(o))
	fmt.Printf("%-44s %10s %10s %10s %10s\n", "", "a second", "p50", "p99", "most")
	if err := h.fill(ctx, f); err != nil {
		return err
	}
	rate := float64(o.clusters) / 60
	var ours *times
	for _, load := range []struct {
		name string
		next func(*fleet) report
	}{
		{"ingest: 98% the same, 2% with a change", (*fleet).mostlySame},
		{"ingest: all with their items", (*fleet).full},
	} {
		questions := h.ask(f)
		cpu, begin := h.cpu(), time.Now()
		took, err := h.load(f, load.next, rate, int(rate*float64(o.seconds)))
		if err != nil {
			return err
		}
		took.print(load.name, rate)
		fmt.Printf("  CPU time of the hub's process: %.0f%% of a processor\n",
			100*float64(h.cpu()-cpu)/float64(time.Since(begin)))
		for _, q := range questions() {
			q.took.print("  GET "+q.path, 0)
			if q.path == byVersion {
				ours = q.took
			}
		}
	}
	if err := h.release(f); err != nil {
		return err
	}
	fmt.Printf("memory, at most: %d MiB\n", h.memory())
	h.end()
	begin := time.Now()
	if h, err = startHub(ctx, o); err != nil {
		return err
	}
	fmt.Printf("start with %d assignments: %.1f s, %.1f s of CPU time, memory %d MiB\n",
		o.clusters*o.targets, time.Since(begin).Seconds(), h.cpu().Seconds(), h.memory())
	h.end()
	return original(ctx, o, ours)
}

func kindOf(o options) string {
	if o.postgres {
		return "PostgreSQL"
	}
	return "SQLite"
}
