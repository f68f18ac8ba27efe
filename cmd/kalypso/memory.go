package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/kalypso-io/kalypso/cmd/kalypso/internal/collector"
)

// softMemory is the collector's limit in bytes, where GOMEMLIMIT says nothing else. A
// command runs for seconds: most need no collection at all below it, and what needs more
// gets twice what lives.
const softMemory = 1 << 30

// tuneMemory makes the collector fit for commands that run once.
func tuneMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
		afterCollection(raiseLimit)
	}
}

// raiseLimit keeps the limit at twice what lives, at least: near a limit the
// collector would do nothing but collect.
func raiseLimit() {
	if twice := 2 * lives(); twice > debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(twice)
	}
}

// lives is how many bytes lived at the last collection; 0 where nobody knows.
func lives() int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(live[0].Value.Uint64())
}

// littleHeap is up to which size in bytes the heap of a promotion grows as that of other
// commands.
const littleHeap = 64 << 20

// saveMemory is for promotions, which read much and need little of it for long: beyond
// littleHeap their heap grows to twice what lives.
func saveMemory() {
	if os.Getenv("GOGC") != "" {
		return
	}
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
