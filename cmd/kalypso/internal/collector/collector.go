// Package collector sets when garbage is collected, as it is initialized. What other packages
// allocate then lives on, and would be collected three times before main with Go's own setting.
// Go initializes packages in the order of their paths, once their imports are: this one, which
// imports little, comes before most that allocate much.
package collector

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// Percent of what lives is allocated between collections, where GOGC says nothing else.
const Percent = 400

// firstPercent lets a heap grow to 96 MiB before its first collection: Go's smallest one is of
// 4 MiB for 100 percent. Most commands end before, and of what the others have by then much
// lives on.
const firstPercent = 2400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(firstPercent)
		runtime.AddCleanup(new([16]byte), func(struct{}) { Begin() }, struct{}{}) // after the first
	}
}

// Begin begins to collect at Percent: for what must have a small heap, or runs for long.
var Begin = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(Percent)
	}
})
