package cputime

import (
	"time"

	"golang.org/x/sys/windows"
)

// OfProcess returns the processor time of this process, for all its threads together.
func OfProcess() (time.Duration, error) {
	var created, ended, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &ended, &kernel,
		&user); err != nil {
		return 0, err
	}
	ticks := func(t windows.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }
	return time.Duration(ticks(kernel)+ticks(user)) * 100, nil // each is 100 ns
}
