package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// replaceProcess runs a program in place of this one: Windows cannot replace a process, so
// that this one waits, with one processor for what it cannot end, and ends as the other
// does. It returns only with an error.
func replaceProcess(program string, args, variables []string) error {
	runtime.GOMAXPROCS(1)
	cmd := &exec.Cmd{Path: program, Args: args, Env: variables, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return err
	}
	os.Exit(cmd.ProcessState.ExitCode())
	return nil
}
