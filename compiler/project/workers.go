package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
	"unicode/utf8"
)

// Workers is a Renderer that renders in processes of its own. Each is started when
// it is first needed, and renders many jobs, one after the other. One that takes
// longer than the limit, needs too much memory, or dies of its job is killed; the
// job becomes a diagnostic, and the next job gets another process.
type Workers struct {
	// Limit is how long a job may take. It is 30 seconds, and may be set before the
	// first job is rendered.
	Limit time.Duration

	start func() (*exec.Cmd, error)
	// slots are as many as there may be processes; nil is one that is not started.
	slots chan *worker
	close sync.Once
	done  chan struct{}
}

// NewWorkers returns Workers with at most n processes, at least one. start returns
// the command of a process that calls Serve with its standard input and output,
// which is not started yet; without an Env of its own it gets none of this
// process's variables. Close ends the processes.
func NewWorkers(n int, start func() (*exec.Cmd, error)) *Workers {
	w := &Workers{Limit: 30 * time.Second, start: start, slots: make(chan *worker, max(n, 1)), done: make(chan struct{})}
	for range cap(w.slots) {
		w.slots <- nil
	}
	return w
}

var errClosed = errors.New("render: the workers are closed")

// Render renders a job in one of the processes; it waits until one is free. It is
// an error when no process can be started. When the context ends, the process is
// killed and the context's error returned.
func (w *Workers) Render(ctx context.Context, job *Job) (Outcome, error) {
	select {
	case <-w.done:
		return Outcome{}, errClosed
	default:
	}
	if !carried(job) {
		return InProcess().Render(ctx, job)
	}
	var one *worker
	select {
	case one = <-w.slots:
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	case <-w.done:
		return Outcome{}, errClosed
	}
	outcome, one, err := w.render(ctx, one, job)
	w.slots <- one
	return outcome, err
}

// carried says whether JSON carries a job to a worker as it is. It changes file
// names that are not UTF-8, which are refused before anything is rendered.
func carried(job *Job) bool {
	if job.Kustomize != nil {
		for name := range job.Kustomize.Files {
			if !utf8.ValidString(name) {
				return false
			}
		}
	}
	return true
}

// render renders a job in a worker, which it starts where it is nil, and returns
// it where it may be used again.
func (w *Workers) render(ctx context.Context, one *worker, job *Job) (Outcome, *worker, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, one, err
	}
	if one == nil {
		var err error
		if one, err = startWorker(w.start); err != nil {
			return Outcome{}, nil, err
		}
	}
	answer, how := one.render(ctx, job, w.Limit)
	if how == answered && !answer.Spent {
		return answer.Outcome, one, answer.err()
	}
	one.stop()
	switch how {
	case answered:
		return answer.Outcome, nil, answer.err()
	case ended:
		return Outcome{}, nil, ctx.Err()
	case late:
		return unbounded("the render takes longer than %s", w.Limit), nil, nil
	case long:
		return tooMuch(), nil, nil
	}
	if one.served > 0 {
		// It may have died while it had nothing to do. If it was the job, the job will
		// end the next one as well.
		return w.render(ctx, nil, job)
	}
	return unbounded("the render cannot be finished: %s", one.reason()), nil, nil
}

func (r reply) err() error {
	if r.Error == "" {
		return nil
	}
	return errors.New(r.Error)
}

// Close ends the processes, once the jobs under way have ended. Render returns an
// error from then on.
func (w *Workers) Close() {
	w.close.Do(func() {
		close(w.done)
		for range cap(w.slots) {
			if one := <-w.slots; one != nil {
				one.stop()
			}
		}
	})
}

// Self returns a start function for NewWorkers that runs this program, under the
// name that it was run by, with arguments, which must make it call Serve.
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
