package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"github.com/kalypso-io/kalypso/cmd/kalypso/internal/collector"
)

// softMemory is the collector's limit in bytes, where GOMEMLIMIT says nothing else. A
// command runs for seconds: most need no collection at all below it, and what needs more
// gets twice what lives.
const softMemory = 1 << 30

// tuneMemory makes the collector fit for commands that run once.
func tuneMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		memoryCeiling.Store(math.MaxInt64)
		limitMemory()
		afterCollection(limitMemory)
	}
}

// memoryCeiling is the most that the collector's limit may be; 0 where it is left alone.
var memoryCeiling atomic.Int64

// setMemoryCeiling sets the most that the collector's limit may be.
func setMemoryCeiling(bytes int64) {
	if memoryCeiling.Swap(bytes) == 0 {
		memoryCeiling.Store(0)
		return
	}
	limitMemory()
}

// limitMemory keeps the limit at twice what lives, at least, as near a limit the collector
// would do nothing but collect; but not beyond the ceiling.
func limitMemory() {
	debug.SetMemoryLimit(min(max(softMemory, 2*lives()), memoryCeiling.Load()))
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

// saveMemory is for commands that read much and need little of it for long: beyond a size in bytes
// their heap grows to twice what lives.
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
