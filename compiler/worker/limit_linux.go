package worker

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitMemory bounds the memory that this process can write to, because a render needs that
// memory. A bound of the address space would not work: Go reserves much of it without using
// it.
func limitMemory(bytes uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &now); err != nil {
		return err
	}
	// A limit that is lower already cannot be raised, and need not be.
	bytes = min(bytes, now.Max)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes})
}

// peak returns the most memory, in bytes, that an ended process had. The number is too
// large if a larger process started it, because it had that process's memory until it ran
// its own program.
func peak(ended *os.ProcessState) int64 {
	if ended == nil {
		return 0
	}
	if usage, ok := ended.SysUsage().(*syscall.Rusage); ok {
		return int64(usage.Maxrss) << 10 // getrusage(2): in kilobytes
	}
	return 0
}
