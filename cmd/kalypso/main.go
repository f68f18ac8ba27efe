// Command kalypso compiles a platform into the trees that GitOps reconcilers pull. A platform
// defines what runs where, with which configuration.
//
// It is large because it is wide. It has a file for each command, which reads flags, makes a call
// and prints. It contains nothing that another package could use.
package main

import (
	"context"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kalypso-io/kalypso/cmd/kalypso/internal/collector"
	"github.com/kalypso-io/kalypso/compiler"
)

func main() {
	// Make the collector fit for commands that run once.
	if os.Getenv("GOMEMLIMIT") == "" {
		memoryCeiling.Store(math.MaxInt64)
		limitMemory()
		afterCollection(limitMemory)
	}
	os.Exit(run())
}

// grace is the time that a command has to end after a signal.
const grace = 2 * time.Second

// run is main without the exit, for tests.
func run() int {
	if len(os.Args) == 2 && os.Args[1] == compiler.WorkerArgument {
		collector.Begin() // there are several
		if err := compiler.ServeWorker(os.Stdin, os.Stdout); err != nil {
			return int(exitFailure)
		}
		return int(exitDone)
	}
	if len(os.Args) == 2 && os.Args[1] == cueServerArgument {
		return serveCUE()
	}
	signals := make(chan os.Signal, 2) // the second one counts as well
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return interruptible(signals, grace, func(ctx context.Context) int {
		return execute(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	})
}

// interruptible runs a command until a signal arrives, and returns its exit code. After a signal,
// the exit code is 128 plus the number of the signal, as in shells. The signal cancels the
// command's context. If the command does not end within grace, or if a second signal arrives,
// interruptible does not wait for it. CUE cannot be cancelled. The next run completes or undoes
// an interrupted write.
func interruptible(signals <-chan os.Signal, grace time.Duration,
	command func(context.Context) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan int, 1)
	go func() { done <- command(ctx) }()
	select {
	case code := <-done:
		return code
	case s := <-signals:
		cancel()
		select {
		case code := <-done:
			if code != exitInterrupted {
				return code // it was done, or failed, before it noticed
			}
		case <-signals:
		case <-time.After(grace):
		}
		if number, ok := s.(syscall.Signal); ok && number == syscall.SIGTERM {
			return 128 + int(number)
		}
		return exitInterrupted
	}
}

// exitInterrupted is the exit code of a command whose context was cancelled.
const exitInterrupted = 130

// softMemory is the collector's limit in bytes, unless GOMEMLIMIT is set. A command runs for
// seconds. Below the limit, most commands need no collection at all. Commands that need more
// memory get twice the live heap.
const softMemory = 1 << 30

// memoryCeiling is the upper bound of the collector's limit; 0 if nothing may set the limit.
var memoryCeiling atomic.Int64

// setMemoryCeiling sets the most that the collector's limit may be.
func setMemoryCeiling(bytes int64) {
	if memoryCeiling.Swap(bytes) == 0 {
		memoryCeiling.Store(0)
		return
	}
	limitMemory()
}

// limitMemory keeps the limit at least at twice the live heap, but not beyond the ceiling. Near a
// limit, the collector would use all time.
func limitMemory() { debug.SetMemoryLimit(min(max(softMemory, 2*lives()), memoryCeiling.Load())) }

// lives returns the number of live bytes at the last collection. It returns 0 if it is not known.
func lives() int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(live[0].Value.Uint64())
}

// saveMemory is for commands that read much and keep little of it for long. Beyond a size in
// bytes, their heap grows to twice the live heap.
func saveMemory(littleHeap int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	collector.Begin()
	afterCollection(func() {
		live := max(1, lives())
		debug.SetGCPercent(int(max(100, min(collector.Percent, 100*(littleHeap-live)/live))))
	})
}

// afterCollection calls a function after every collection.
func afterCollection(f func()) {
	sentinel := new([16]byte)
	runtime.AddCleanup(sentinel, func(struct{}) {
		f()
		afterCollection(f)
	}, struct{}{})
}
