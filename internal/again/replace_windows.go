package again

import (
	"context"
	"errors"
	"os"
	"os/signal"
)

// makeReplaceable makes this process one that replaceProcess can replace. Windows cannot make
// a process run another program, and a process beyond its bounds takes time and memory until
// it has ended, also while it waits for another. So a process that evaluates is always one
// below another one, which from the beginning only waits, starts it again when it requests
// that, and ends as it does.
func makeReplaceable() error {
	if os.Getenv(stateEnv) != "" {
		return endWithParent()
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	signal.Ignore(os.Interrupt) // the console interrupts the process below as well
	code, err := runBelow(context.Background(), replacement{program, os.Args, nil, "{}"}, os.Stdin,
		os.Stdout)
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

// endWithParent ends this process when the one above it has ended.
func endWithParent() error {
	parent, err := os.FindProcess(os.Getppid())
	if err != nil {
		return err
	}
	go func() {
		_, _ = parent.Wait() // Windows waits for any process
		os.Exit(1)
	}()
	return nil
}

// replaceProcess has the process above this one run the program again. It returns only with
// an error.
func replaceProcess(_ string, _, variables []string) error {
	if !askAgain(variables) {
		return errors.New("the process that waits for this one does not take what it is asked")
	}
	os.Exit(1)
	return nil
}
