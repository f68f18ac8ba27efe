// Package worker does jobs on what is not trusted in processes of their own. A
// goroutine cannot be ended, so that input which loops for ever or asks for a
// terabyte takes its process with it: a process that does nothing else can be
// killed, and costs one job.
//
// A job and its answer are plain data that model.Encode knows. The processes run
// this same program: a main that is asked to be a worker calls Serve with what
// does the jobs.
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

// Pool has processes that do jobs. Each is started when it is first needed, and
// does many jobs, one after the other. One that takes more time than the limit,
// needs too much memory, or dies of its job is killed; the job is then a
// *BeyondError, and the next job gets another process. Several goroutines may use it.
type Pool struct {
	// Limit is how much time of processors a job may take, so that on a busy machine no
	// job is ended for waiting; one that does little else is ended after 20 times as
	// long by the clock. It is 30 seconds, and may be set before the first job.
	Limit time.Duration

	start func() (*exec.Cmd, error)
	// slots are as many as there may be processes; nil is one that is not started.
	slots chan *process
	close sync.Once
	done  chan struct{}
}

// NewPool returns a Pool of at most n processes, at least one. start returns the
// command of a process that calls Serve with its standard input and output, which
// is not started yet; without an Env of its own it gets none of this process's
// variables. Close ends the processes.
func NewPool(n int, start func() (*exec.Cmd, error)) *Pool {
	p := &Pool{Limit: 30 * time.Second, start: start, slots: make(chan *process, max(n, 1)), done: make(chan struct{})}
	for range cap(p.slots) {
		p.slots <- nil
	}
	return p
}

// BeyondError says that a job was beyond the bounds of a worker. A faster machine
// might finish it.
type BeyondError struct {
	Reason string // such as "it takes more than 30s of processor time"
}

func (e *BeyondError) Error() string { return e.Reason }

var errClosed = errors.New("the workers are closed")

// Do gives a job to what the workers know under a name, and decodes what it
// answers; it waits until a process is free. Errors are a *BeyondError, what the
// handler returned as text, or say that no process can be started. When the context
// ends, the process is killed and the context's error returned.
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

// give gives a job to a process, which it starts where it is nil, and returns it
// where it may be used again.
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

// Self returns a start function for NewPool that runs this program, under the name
// that it was run by, with arguments, which must make it call Serve.
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

// minimalEnvironment is what a process needs to start at all. It is not nil, which
// would be all variables of this process.
func minimalEnvironment() []string {
	if runtime.GOOS == "windows" {
		// Without it, programs on Windows cannot load the system's libraries.
		return []string{"SystemRoot=" + os.Getenv("SystemRoot")}
	}
	return []string{}
}
