//go:build unix

package worker

import (
	"syscall"
	"time"
)

// cpuTime returns how much time of processors this process has taken: all its
// threads together.
func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
