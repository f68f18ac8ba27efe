// Package unprivileged binds tests by the permissions of files, which do not bind root.
package unprivileged

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// Run runs a command that the permissions of files bind, with this process's input,
// output and environment. An error that is no *exec.ExitError is that it did not run.
func Run(args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return start(cmd)
}

func start(cmd *exec.Cmd) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // rights are a thread's, which ends with the goroutine
		err := takeRights()
		if err == nil {
			err = cmd.Run()
		}
		ended <- err
	}()
	return <-ended
}

const again = "KALYPSO_TEST_UNPRIVILEGED"

// Test reports whether the test, which must have no parents, continues in this process. For root,
// Test returns false, and runs the test in another process, in which it returns true.
func Test(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv(again) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), again+"="+t.Name())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := start(cmd)
	if err != nil {
		t.Errorf("without the rights of root: %v\n%s", err, &out)
	}
	return false
}
