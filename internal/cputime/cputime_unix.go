//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// OfProcess returns how much time of processors this process has taken: all its
// threads together.
func OfProcess() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
