package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// The bounds of a worker's memory: a gibibyte for what it renders, and what the
// program takes itself. The garbage collector works harder near the first; beyond
// the second the system gives no more, and the worker ends. A stack that is deeper
// than any template nests is one that grows for ever.
const (
	softMemory = 896 << 20
	hardMemory = 1280 << 20
	maxStack   = 256 << 20
	// spentMemory is how much memory a worker may keep after a job: a job that grew
	// one shall not be the reason that the next one fails.
	spentMemory = 512 << 20
)

// Serve is a worker's main: it renders the jobs that it reads from r, one after
// the other, and writes to w what became of them, until r ends. r and w are the
// process's standard input and output, and nobody else may use them. Where r ends
// while a job is rendered, nobody waits for it, and the process ends.
//
// It takes the process over: its memory is bounded, its environment emptied, its
// time zone UTC, and it can no longer reach a server by HTTP. So it must be
// called from nowhere else.
func Serve(r io.Reader, w io.Writer) error {
	if err := confine(); err != nil {
		return fmt.Errorf("confine the worker: %w", err)
	}
	var rendering atomic.Bool
	frames := make(chan frame)
	go func() {
		for {
			var f frame
			f.err = readFrame(r, maxJob, &f.job)
			if f.err != nil && rendering.Load() {
				os.Exit(1)
			}
			rendering.Store(f.err == nil)
			frames <- f
			if f.err != nil {
				return
			}
		}
	}()
	for f := range frames {
		switch {
		case errors.Is(f.err, io.EOF):
			return nil
		case f.err != nil:
			return fmt.Errorf("read a job: %w", f.err)
		}
		answer, spent, err := answer(&f.job, maxReply)
		if err != nil {
			return err
		}
		rendering.Store(false)
		if err := writeBytes(w, answer); err != nil || spent {
			return err
		}
	}
	return nil
}

// frame is a job, or why there is none.
type frame struct {
	job Job
	err error
}

// answer renders a job and returns what to answer, in limit bytes.
func answer(job *Job, limit int) (b []byte, spent bool, err error) {
	var a reply
	a.Outcome, err = InProcess().Render(context.Background(), job)
	if err != nil {
		a.Error = err.Error()
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	a.Spent = memory.Sys > spentMemory
	b, err = json.Marshal(a)
	if err == nil && len(b) > limit {
		a.Outcome = tooMuch()
		b, err = json.Marshal(a)
	}
	if err != nil {
		return nil, false, fmt.Errorf("answer a job: %w", err)
	}
	return b, a.Spent, nil
}

func tooMuch() Outcome { return unbounded("the manifests are larger than %d MiB", maxReply>>20) }

// confine bounds this process, and takes away what a source could reach if all
// that keeps it from it failed.
func confine() error {
	debug.SetMemoryLimit(softMemory)
	debug.SetMaxStack(maxStack)
	os.Clearenv()
	time.Local = time.UTC
	http.DefaultTransport = noNetwork{}
	// What a library prints must not come between frames.
	os.Stdout = os.Stderr
	return limitMemory(hardMemory)
}

type noNetwork struct{}

func (noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("a build fetches nothing: %s", r.URL.Redacted())
}
