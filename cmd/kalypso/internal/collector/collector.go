// Package collector configures the garbage collector while Go initializes it. Allocations by
// other packages at that time live until the end. With Go's own setting, the collector would run
// three times before main. Go initializes packages in the order of their paths, after their
// imports. This package imports little, so it comes before most packages that allocate much.
package collector

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// Percent is the growth of the heap between collections, as a percentage of the live heap. GOGC
// overrides it.
const Percent = 400

// firstPercent lets a heap grow to 96 MiB before its first collection: Go's smallest one is 4 MiB
// for 100 percent. Most commands end before the first collection. In the other commands, much of
// the heap at that point stays alive.
const firstPercent = 2400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(firstPercent)
		runtime.AddCleanup(new([16]byte), func(struct{}) { Begin() }, struct{}{}) // after the first
	}
}

// Begin starts to collect at Percent. It is for processes that need a small heap, or run for
// long.
var Begin = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(Percent)
	}
})
