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

// The bounds of a worker's memory: a gibibyte for its jobs, and the memory of the program
// itself. Near the first bound, the garbage collector works harder. Beyond the second, the
// system gives no more memory, and the worker ends. A stack that is deeper than any input
// nests grows for ever.
const (
	softMemory = 896 << 20
	hardMemory = 1280 << 20
	maxStack   = 256 << 20
	// spentMemory is the memory that a worker may keep after a job. A job that made its
	// worker grow must not make the next one fail.
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

// Serve is a worker's main function. It does the jobs that it reads from r, one after the
// other, and writes their results to w, until r ends. r and w are the process's standard
// input and output, and nobody else may use them. If r ends during a job, nobody waits for
// the job, and the process ends.
//
// Serve takes over the process. It bounds the memory, empties the environment, sets the
// time zone to UTC, and blocks HTTP requests. So no other code may call it.
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

// frame is a request, or the error of reading it.
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

// confine bounds this process. It also removes the resources that a source could reach if
// all other barriers failed.
func confine() error {
	debug.SetMemoryLimit(softMemory)
	debug.SetMaxStack(maxStack)
	os.Clearenv()
	time.Local = time.UTC
	http.DefaultTransport = noNetwork{}
	// The output of a library must not come between frames.
	os.Stdout = os.Stderr
	return limitMemory(hardMemory)
}

type noNetwork struct{}

func (noNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("a build fetches nothing: %s", r.URL.Redacted())
}
