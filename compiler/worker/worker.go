// Package worker runs jobs with untrusted input in separate processes. A goroutine cannot
// be ended, so an input that loops for ever or needs a terabyte takes its whole process
// with it. A process that does nothing else can be killed, and then only one job is lost.
//
// A job and its answer are plain data that model.Encode knows. The processes run the same
// program: if its main function is started as a worker, it calls Serve with the handlers of
// the jobs.
//
// For example, the package's tests have a handler "repeat". Its job has a Text and the number of
// Times to repeat it. For "ab" and 2, Do[string] returns "abab". The handler "loop" never ends. If
// the Pool has a Limit of 500ms, Do ends the process and returns a *BeyondError, with the text
//
//	it takes more than 500ms of processor time
package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Pool has processes that do jobs. A process is started when it is first needed, and does
// many jobs, one after the other. It is killed if a job exceeds the time limit, needs too
// much memory, or makes the process die. Then the job's error is a *BeyondError, and the
// next job gets another process. Several goroutines may use a Pool.
type Pool struct {
	// Limit is the processor time that a job may take, so a busy machine ends no job that
	// only waits. A job that mostly waits ends after 20 times as long by the clock. Limit
	// is 30 seconds; it may be set before the first job.
	Limit time.Duration

	start func() (*exec.Cmd, error)
	// slots has a slot for each process that may exist; a nil slot is a process that is not
	// started.
	slots chan *process
	close sync.Once
	done  chan struct{}
}

// NewPool returns a Pool of at most n processes, at least one. start returns a command, not
// started yet, of a process that calls Serve with its standard input and output. If the
// command has no Env of its own, the process gets none of this process's variables. Close
// ends the processes.
func NewPool(n int, start func() (*exec.Cmd, error)) *Pool {
	p := &Pool{Limit: 30 * time.Second, start: start, slots: make(chan *process, max(n, 1)),
		done: make(chan struct{})}
	for range cap(p.slots) {
		p.slots <- nil
	}
	return p
}

// BeyondError reports that a job exceeded the bounds of a worker. A faster machine might
// finish it.
type BeyondError struct {
	Reason string // such as "it takes more than 30s of processor time"
}

func (e *BeyondError) Error() string { return e.Reason }

var errClosed = errors.New("the workers are closed")

// Do sends a job to the handler with a name and decodes the answer. It waits until a
// process is free. The error is a *BeyondError, the text of the handler's error, or the
// reason why no process can be started. If the context ends, Do kills the process and
// returns the context's error.
func Do[Answer any](ctx context.Context, p *Pool, handler string, job any) (*Answer, error) {
	data, err := p.do(ctx, handler, model.Encode(job))
	if err != nil {
		return nil, err
	}
	answer := new(Answer)
	return answer, model.Decode(data, answer)
}

func (p *Pool) do(ctx context.Context, handler string, job []byte) ([]byte, error) {
	select {
	case <-p.done:
		return nil, errClosed
	default:
	}
	var one *process
	select {
	case one = <-p.slots:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, errClosed
	}
	answer, one, err := p.give(ctx, one, request{handler, job, int64(p.Limit)})
	p.slots <- one
	return answer, err
}

// give runs a job in a process, and starts the process if it is nil. It returns the process
// if it may be used again, and nil otherwise.
func (p *Pool) give(ctx context.Context, one *process, job request) ([]byte, *process, error) {
	if err := ctx.Err(); err != nil {
		return nil, one, err
	}
	if one == nil {
		var err error
		if one, err = startProcess(p.start); err != nil {
			return nil, nil, err
		}
	}
	answer, how := one.do(ctx, job)
	if how == answered && !answer.Spent {
		return answer.Data, one, answer.err()
	}
	one.stop()
	switch how {
	case answered:
		return answer.Data, nil, answer.err()
	case ended:
		return nil, nil, ctx.Err()
	case late:
		return nil, nil, &BeyondError{fmt.Sprintf("it takes more than %s of processor time", p.Limit)}
	case stuck:
		return nil, nil, &BeyondError{fmt.Sprintf("it has no answer after %s", patience*p.Limit)}
	case long:
		return nil, nil, tooLong()
	}
	if one.served > 0 {
		// It may have died while it had nothing to do. If it was the job, the job will
		// end the next one as well.
		return p.give(ctx, nil, job)
	}
	return nil, nil, &BeyondError{one.reason()}
}

func tooLong() error {
	return &BeyondError{fmt.Sprintf("it makes more than %d MiB", maxAnswer>>20)}
}

// Close ends the processes, once the jobs under way have ended. Do returns an error
// from then on.
func (p *Pool) Close() {
	p.close.Do(func() {
		close(p.done)
		for range cap(p.slots) {
			if one := <-p.slots; one != nil {
				one.stop()
			}
		}
	})
}

// Self returns a start function for NewPool that runs this program under its own name with
// arguments. The arguments must make it call Serve.
func Self(args ...string) func() (*exec.Cmd, error) {
	return func() (*exec.Cmd, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		cmd := exec.Command(self, args...)
		cmd.Args[0] = os.Args[0]
		return cmd, nil
	}
}

// minimalEnvironment returns the variables that a process needs to start. It is not nil,
// because nil means all variables of this process.
func minimalEnvironment() []string {
	if runtime.GOOS == "windows" {
		// Without it, programs on Windows cannot load the system's libraries.
		return []string{"SystemRoot=" + os.Getenv("SystemRoot")}
	}
	return []string{}
}
