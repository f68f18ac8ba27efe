// Command kalypso compiles a platform, what runs where with which
// configuration, into the trees that GitOps reconcilers pull.
//
// It is large because it is wide: a file for each command, which reads flags, makes a call
// and prints, and nothing that another package could use.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kalypso-io/kalypso/cmd/kalypso/internal/collector"
	"github.com/kalypso-io/kalypso/compiler/evaluate/registration"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/project"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// workerArgument makes the program a process that works on what is not trusted, for
// another one of it.
const workerArgument = "worker"

// work is what such a process does.
func work() error {
	return worker.Serve(os.Stdin, os.Stdout, map[string]worker.Handler{
		project.HandlerName:      project.Handler(),
		registration.HandlerName: registration.Handler(),
		expr.HandlerName:         expr.Handler(),
	})
}

func main() {
	tuneMemory()
	os.Exit(run())
}

// grace is how long a command may take to end after it was asked to.
const grace = 2 * time.Second

// run is main without the exit, for tests.
func run() int {
	if len(os.Args) == 2 && os.Args[1] == workerArgument {
		collector.Begin() // there are several
		if err := work(); err != nil {
			return int(exitFailure)
		}
		return int(exitDone)
	}
	if len(os.Args) == 2 && os.Args[1] == cueServerArgument {
		return serveCUE()
	}
	signals := make(chan os.Signal, 2) // the second one counts as well
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return interruptible(signals, grace, func(ctx context.Context) int {
		return execute(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	})
}

// interruptible runs a command, whose exit code it returns, until a signal
// arrives; the exit code is then 128 and the signal's number, as shells have it.
// The signal cancels the command's context. What does not end within grace, or
// until a second signal, is left behind: CUE cannot be cancelled, and a write
// that breaks off is completed or undone by the next one.
func interruptible(signals <-chan os.Signal, grace time.Duration, command func(context.Context) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan int, 1)
	go func() { done <- command(ctx) }()
	select {
	case code := <-done:
		return code
	case s := <-signals:
		cancel()
		select {
		case code := <-done:
			if code != exitInterrupted {
				return code // it was done, or failed, before it noticed
			}
		case <-signals:
		case <-time.After(grace):
		}
		return exitOfSignal(s)
	}
}

// exitInterrupted is the exit code of a command whose context was cancelled.
const exitInterrupted = 130

func exitOfSignal(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok && number == syscall.SIGTERM {
		return 128 + int(number)
	}
	return exitInterrupted
}
