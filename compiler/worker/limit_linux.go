package worker

import "golang.org/x/sys/unix"

// limitMemory bounds the memory that this process can write to, which is what a
// render needs. Its address space would be no measure: Go reserves much of it
// without using it.
func limitMemory(bytes uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &now); err != nil {
		return err
	}
	// A limit that is lower already cannot be raised, and need not be.
	bytes = min(bytes, now.Max)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes})
}
