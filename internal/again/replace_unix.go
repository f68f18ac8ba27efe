//go:build unix

package again

import "syscall"

// makeReplaceable does nothing, because any process can be replaced.
func makeReplaceable() error { return nil }

// replaceProcess makes this process run a program from its beginning. It returns only with
// an error. Files that Go has opened are closed by it, and locks let go.
func replaceProcess(program string, args, variables []string) error {
	return syscall.Exec(program, args, variables)
}
