package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test binary is its own worker.
const (
	workerArgument = "serve-as-a-worker"
	dyingArgument  = "die-after-a-job"
	sayingArgument = "say"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case workerArgument:
			if err := Serve(os.Stdin, os.Stdout, handlers); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case dyingArgument:
			dieAfterAJob()
		case sayingArgument:
			said, _ := hex.DecodeString(os.Args[2])
			_, _ = os.Stdout.Write(said)
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

type job struct {
	Text  string
	Times int
}

// handlers are the handlers of the workers in the tests.
var handlers = map[string]Handler{
	"repeat": Handle(func(j *job) (string, error) { return strings.Repeat(j.Text, j.Times), nil }),
	"fail":   Handle(func(j *job) (string, error) { return "", errors.New(j.Text) }),
	"loop": Handle(func(*job) (string, error) {
		for n := uint64(1); ; n++ {
			if n == 0 {
				return "", nil // after centuries
			}
		}
	}),
	"wait": Handle(func(j *job) (string, error) {
		time.Sleep(time.Duration(j.Times) * time.Millisecond)
		return j.Text, nil
	}),
	"grow": Handle(func(*job) (int, error) {
		b := []byte{1}
		for {
			b = append(b, b...)
		}
	}),
	"crash": Handle(func(j *job) (int, error) {
		memory := bytes.Repeat([]byte{1}, j.Times)
		fmt.Fprintln(os.Stderr, "SIGSEGV: segmentation violation\nPC=0x1 m=0 sigcode=1", len(memory))
		os.Exit(2)
		return 0, nil
	}),
	"recurse": Handle(func(*job) (int, error) { return recurse(1), nil }),
	"environment": Handle(func(*job) (string, error) {
		return strings.Join(os.Environ(), " "), nil
	}),
	"print": Handle(func(*job) (string, error) {
		fmt.Println("in between")
		return "", nil
	}),
}

func recurse(n int) int {
	if n < 0 {
		return 0
	}
	return recurse(n+1) + n
}

// dieAfterAJob is a worker that is killed by someone else between two jobs.
func dieAfterAJob() {
	var r request
	if err := readFrame(os.Stdin, maxJob, &r); err != nil {
		os.Exit(1)
	}
	if err := writeFrame(os.Stdout, answer(handlers, r, maxAnswer)); err != nil {
		os.Exit(1)
	}
	os.Exit(3)
}

func newPool(t testing.TB, n int, args ...string) *Pool {
	p := NewPool(n, Self(args...))
	t.Cleanup(p.Close)
	return p
}

// wantDone checks that a pool does a job.
func wantDone(t *testing.T, p *Pool, text string) {
	t.Helper()
	if got, err := Do[string](t.Context(), p, "repeat", job{text, 2}); err != nil || *got != text+text {
		t.Fatalf("%v, %v", got, err)
	}
}

// wantBeyond checks that a job is beyond the bounds.
func wantBeyond(t *testing.T, p *Pool, handler string, j job, want string) {
	t.Helper()
	_, err := Do[string](t.Context(), p, handler, j)
	var beyond *BeyondError
	if !errors.As(err, &beyond) || !strings.Contains(beyond.Reason, want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// A job that would end this process fails in a worker, and the worker does the next job.
func TestBeyond(t *testing.T) {
	p := newPool(t, 1, workerArgument)
	for _, c := range []struct {
		handler string
		limit   time.Duration
		want    string
	}{
		{"loop", 500 * time.Millisecond, "it takes more than 500ms of processor time"},
		{"grow", time.Minute, "it needs more than a gibibyte of memory"},
		{"recurse", time.Minute, "it recurses without end"},
	} {
		p.Limit = c.limit
		wantBeyond(t, p, c.handler, job{}, c.want)
		p.Limit = time.Minute
		wantDone(t, p, "after "+c.handler)
	}
	p.Limit = time.Minute
	wantBeyond(t, p, "repeat", job{"x", maxAnswer + 1}, "it makes more than 64 MiB")
	wantDone(t, p, "after a long one")
}

// A job that waits, as each job does on a busy machine, takes no processor time. Only a job
// that waits for ever is ended.
func TestWaiting(t *testing.T) {
	p := newPool(t, 1, workerArgument)
	p.Limit = 250 * time.Millisecond
	if got, err := Do[string](t.Context(), p, "wait", job{"done", 500}); err != nil || *got != "done" {
		t.Errorf("%v, %v", got, err)
	}
	p.Limit = 100 * time.Millisecond // on a busy machine, the job may need some of it to begin
	wantBeyond(t, p, "wait", job{"never", 1 << 30}, "it has no answer after 2s")
}

// If the system gives it no more memory, Go may crash without an error about memory.
func TestCrash(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux bounds what Go takes")
	}
	p := newPool(t, 1, workerArgument)
	p.Limit = time.Minute
	wantBeyond(t, p, "crash", job{Times: 1}, "the process that works on it ended: SIGSEGV: segmentation violation")
	wantBeyond(t, p, "crash", job{Times: 600 << 20}, "it needs more than a gibibyte of memory")
}

func TestErrors(t *testing.T) {
	p := newPool(t, 1, workerArgument)
	for handler, want := range map[string]string{"fail": "so it is", "unknown": `no worker does jobs of "unknown"`} {
		if _, err := Do[string](t.Context(), p, handler, job{Text: "so it is"}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", handler, err)
		}
	}
	if _, err := Do[string](t.Context(), p, "repeat", "no job"); err == nil {
		t.Error("a job of another type is done")
	}
	wantDone(t, p, "after")
}

// If one job is killed, other jobs continue.
func TestBeside(t *testing.T) {
	p := newPool(t, 2, workerArgument)
	p.Limit = time.Minute
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if i == 0 {
				wantBeyond(t, p, "grow", job{}, "memory")
			} else {
				wantDone(t, p, fmt.Sprint("v", i))
			}
		})
	}
	wg.Wait()
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	start := Self(workerArgument)
	p := NewPool(1, func() (*exec.Cmd, error) {
		cancel() // while the job waits for its process, or is under way
		return start()
	})
	defer p.Close()
	for range 2 {
		if _, err := Do[string](ctx, p, "loop", job{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	wantDone(t, p, "after")
}

// A worker that claims a longer answer than there may be is killed.
func TestLongAnswer(t *testing.T) {
	head := string(binary.BigEndian.AppendUint64(nil, maxAnswer+2<<20))
	p := newPool(t, 1, sayingArgument, fmt.Sprintf("%x", head))
	wantBeyond(t, p, "repeat", job{"x", 1}, "it makes more than 64 MiB")
}

// A worker that somebody kills while it has nothing to do is replaced.
func TestDiedIdle(t *testing.T) {
	p := newPool(t, 1, dyingArgument)
	for i := range 3 {
		wantDone(t, p, fmt.Sprint("v", i))
	}
}

func TestStart(t *testing.T) {
	p := NewPool(0, func() (*exec.Cmd, error) { return exec.Command("/no/such/program"), nil })
	if _, err := Do[string](t.Context(), p, "repeat", job{}); err == nil || !strings.Contains(err.Error(), "start a worker") {
		t.Errorf("%v", err)
	}
	p.Close()
	p.Close()
	if _, err := Do[string](t.Context(), p, "repeat", job{}); !errors.Is(err, errClosed) {
		t.Errorf("%v", err)
	}
	wantBeyond(t, newPool(t, 1, "-test.run=^$"), "repeat", job{}, "the process that works on it ended: ")
}

// Workers have none of this process's variables. The output of a library is not read as an
// answer.
func TestConfined(t *testing.T) {
	t.Setenv("KALYPSO_SECRET", "do-not-tell")
	one, err := startProcess(Self(workerArgument))
	if err != nil {
		t.Fatal(err)
	}
	defer one.stop()
	for _, variable := range one.cmd.Environ() {
		if strings.Contains(variable, "do-not-tell") || strings.HasPrefix(variable, "HOME=") || strings.HasPrefix(variable, "PATH=") {
			t.Error(variable)
		}
	}
	p := newPool(t, 1, workerArgument)
	if got, err := Do[string](t.Context(), p, "environment", job{}); err != nil || *got != "" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := Do[string](t.Context(), p, "print", job{}); err != nil || *got != "" {
		t.Errorf("%v, %v", got, err)
	}
}

// A worker whose parent is gone ends, also in the midst of a job.
func TestOrphan(t *testing.T) {
	one, err := startProcess(Self(workerArgument))
	if err != nil {
		t.Fatal(err)
	}
	defer one.stop()
	if err := writeFrame(one.stdin, request{Handler: "loop", Job: []byte{0, 0}, Limit: int64(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if err := one.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	// Its output ends when it does; the test's own limit is the bound.
	if _, err := io.ReadAll(one.stdout); err != nil {
		t.Fatal(err)
	}
}

// FuzzFrame checks that no bytes make the reader of frames panic or read more bytes than
// exist.
func FuzzFrame(f *testing.F) {
	var b strings.Builder
	if err := writeFrame(&b, request{"repeat", []byte("a"), 1}); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(b.String()))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var r request
		_ = readFrame(strings.NewReader(string(b)), 1<<16, &r)
	})
}
