//go:build unix

package cputime

import (
	"syscall"
	"time"
)

// OfProcess returns the processor time of this process, for all its threads together.
func OfProcess() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
