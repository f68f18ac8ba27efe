//go:build unix

package remote

import (
	"os/exec"
	"syscall"
)

// endTogether makes a program end together with its children: git starts others for
// connections. In a session of its own it has no terminal, on which ssh would prompt.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
