//go:build unix

package main

import (
	"math"
	"syscall"
)

// maxFiles returns the number of files that a program may open. Go has raised it to the hard
// limit of the system.
func maxFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt64
	}
	return uint64(limit.Cur) // it is signed on some systems
}
