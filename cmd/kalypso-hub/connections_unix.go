//go:build unix

package main

import (
	"math"
	"syscall"
)

// maxFiles is how many files a program may have open: Go has raised it to what it may be.
func maxFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt64
	}
	return uint64(limit.Cur) // it is signed on some systems
}
