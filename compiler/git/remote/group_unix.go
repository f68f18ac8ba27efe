//go:build unix

package remote

import (
	"os/exec"
	"syscall"
)

// endTogether has a program end with all that it runs: git leaves the speaking to
// others.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
