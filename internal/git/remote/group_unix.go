//go:build unix

package remote

import (
	"os/exec"
	"syscall"
)

// endTogether has a program end with all that it runs: git leaves the speaking to
// others. In a session of its own it has no terminal, on which ssh would ask.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
