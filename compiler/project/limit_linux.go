package project

import "golang.org/x/sys/unix"

// limitMemory bounds the memory that this process can write to, which is what a
// render needs. Its address space would be no measure: Go reserves much of it
// without using it.
func limitMemory(bytes uint64) error {
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes})
}
