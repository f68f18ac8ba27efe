//go:build !unix

package remote

import "os/exec"

// endTogether does nothing on this system. The children of git end when their output is closed.
func endTogether(*exec.Cmd) {}
