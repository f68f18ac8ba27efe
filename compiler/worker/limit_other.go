//go:build !linux

package worker

import (
	"fmt"
	"os"
	"runtime/metrics"
	"time"
)

// limitMemory ends this process when it has more memory than it may. Systems other than
// Linux do not bound the memory of a Go program, so a goroutine checks it now and then. A
// single allocation beyond all bounds fails by itself.
func limitMemory(bytes uint64) error {
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"},
			{Name: "/memory/classes/heap/released:bytes"}}
		for range time.Tick(20 * time.Millisecond) {
			metrics.Read(sample)
			if sample[0].Value.Uint64()-sample[1].Value.Uint64() > bytes {
				// The same text as Go's own, so the parent process understands it.
				fmt.Fprintln(os.Stderr, "fatal error: runtime: out of memory")
				os.Exit(2)
			}
		}
	}()
	return nil
}

// peak returns 0: on these systems, a process itself reports that it has too much memory.
func peak(*os.ProcessState) int64 { return 0 }
