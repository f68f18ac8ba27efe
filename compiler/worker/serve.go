package worker

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// The bounds of a worker's memory: a gibibyte for what it works on, and what the
// program takes itself. The garbage collector works harder near the first; beyond
// the second the system gives no more, and the worker ends. A stack that is deeper
// than any input nests is one that grows for ever.
const (
	softMemory = 896 << 20
	hardMemory = 1280 << 20
	maxStack   = 256 << 20
	// spentMemory is how much memory a worker may keep after a job: a job that grew
	// one shall not be the reason that the next one fails.
	spentMemory = 512 << 20
)

// Handler does jobs of one kind: it decodes a job and returns its answer, encoded.
// It is called by one goroutine.
type Handler func(job []byte) (answer []byte, err error)

// Handle returns a Handler of jobs and answers of these types, as Do has them.
func Handle[Job, Answer any](do func(*Job) (Answer, error)) Handler {
	return func(data []byte) ([]byte, error) {
		job := new(Job)
		if err := model.Decode(data, job); err != nil {
			return nil, err
		}
		answer, err := do(job)
		if err != nil {
			return nil, err
		}
		return model.Encode(answer), nil
	}
}

// Serve is a worker's main: it does the jobs that it reads from r, one after the
// other, and writes to w what came of them, until r ends. r and w are the process's
// standard input and output, and nobody else may use them. Where r ends while a job
// is under way, nobody waits for it, and the process ends.
//
// It takes the process over: its memory is bounded, its environment emptied, its
// time zone UTC, and it can no longer reach a server by HTTP. So it must be
// called from nowhere else.
func Serve(r io.Reader, w io.Writer, handlers map[string]Handler) error {
	if err := confine(); err != nil {
		return fmt.Errorf("confine the worker: %w", err)
	}
	watch := watchdog{w: w}
	var working atomic.Bool
	frames := make(chan frame)
	go func() {
		for {
			var f frame
			f.err = readFrame(r, maxJob, &f.request)
			if f.err != nil && working.Load() {
				os.Exit(1)
			}
			working.Store(f.err == nil)
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
		if err := watch.begin(time.Duration(f.request.Limit)); err != nil {
			return fmt.Errorf("read the process's time: %w", err)
		}
		a := answer(handlers, f.request, maxAnswer)
		working.Store(false)
		if err := watch.end(a); err != nil || a.Spent {
			return err
		}
	}
	return nil
}

// frame is a request, or why there is none.
type frame struct {
	request request
	err     error
}

// answer does a job and returns what to answer, with at most limit bytes of data.
func answer(handlers map[string]Handler, r request, limit int) reply {
	var a reply
	if handler := handlers[r.Handler]; handler == nil {
		a.Error = fmt.Sprintf("no worker does jobs of %q", r.Handler)
	} else if data, err := handler(r.Job); err != nil {
		a.Error = err.Error()
	} else if len(data) > limit {
		a.TooLong = true
	} else {
		a.Data = data
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	a.Spent = memory.Sys > spentMemory
	return a
}

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
