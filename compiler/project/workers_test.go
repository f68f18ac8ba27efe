package project

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/kustomize"
)

// dieAfterAJob is a worker that is killed by someone else between two jobs.
func dieAfterAJob() {
	var job Job
	if err := readFrame(os.Stdin, maxJob, &job); err != nil {
		os.Exit(1)
	}
	b, _, err := answer(&job, maxReply)
	if err != nil || writeBytes(os.Stdout, b) != nil {
		os.Exit(1)
	}
	os.Exit(3)
}

func workers(t testing.TB, n int) *Workers {
	w := NewWorkers(n, Self(workerArgument))
	t.Cleanup(w.Close)
	return w
}

// What would take this process with it costs a worker one job, and the next job is
// rendered.
func TestUnbounded(t *testing.T) {
	w := workers(t, 1)
	loop := `{{ range until 100000 }}{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}{{ end }}`
	multiplied := map[string]string{"a0/kustomization.yaml": "resources: [a.yaml]", "a0/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}
	for i := range 40 {
		multiplied[fmt.Sprintf("a%d/kustomization.yaml", i+1)] = "resources: [left, right]\n"
		for _, side := range []string{"left", "right"} {
			multiplied[fmt.Sprintf("a%d/%s/kustomization.yaml", i+1, side)] = fmt.Sprintf("namePrefix: %s\nresources: [../../a%d]\n", side, i)
		}
	}
	bases := folderJob(multiplied)
	bases.Kustomize.Path = "a40"
	for _, c := range []struct {
		name  string
		job   *Job
		limit time.Duration
		want  string
	}{
		{"loop", chartJob(t, loop), time.Second, "the render takes longer than 1s"},
		{"bases that multiply", bases, time.Second, "the render takes longer than 1s"},
		{"until", chartJob(t, `{{ range until 1000000000000 }}x{{ end }}`), time.Minute, "it needs more than a gibibyte of memory"},
		{"repeat", chartJob(t, `{{ repeat 1000000000000 "x" }}`), time.Minute, "it needs more than a gibibyte of memory"},
		{"growing", chartJob(t, `{{ $x := repeat 1000000 "x" }}{{ range until 30 }}{{ $x = print $x $x }}{{ end }}`), time.Minute, "it needs more than a gibibyte of memory"},
		{"recursion by tpl", withValues(t, chartJob(t, `{{ tpl .Values.x . }}`), `{"x": "{{ tpl .Values.x . }}"}`), 3 * time.Second, ""},
		{"200 MB", chartJob(t, `{{ range until 200 }}{{ repeat 1000000 "x" }}{{ end }}`), time.Minute, "chart app renders to 190 MiB, more than 64 MiB"},
		{"200 MB of files", folderJob(map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: " + strings.Repeat("x", 200_000_000) + "}\n"}), time.Minute, "a.yaml: the manifests are larger than 64 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.Limit = c.limit
			outcome := render1(t, w, c.job)
			// Which bound a recursion meets first depends on the machine.
			wantRefused(t, outcome, diag.Unbounded, c.want)
			w.Limit = time.Minute
			wantGood(t, w, "after")
		})
	}
}

// Jobs beside one that is killed do not notice.
func TestBeside(t *testing.T) {
	w := workers(t, 2)
	w.Limit = time.Second * 5
	bad := chartJob(t, `{{ range until 1000000000000 }}x{{ end }}`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if i%4 == 0 {
				wantRefused(t, render1(t, w, bad), diag.Unbounded, "memory")
			} else {
				wantGood(t, w, fmt.Sprint("v", i))
			}
		})
	}
	wg.Wait()
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	start := Self(workerArgument)
	w := NewWorkers(1, func() (*exec.Cmd, error) {
		cancel() // while the job waits for its worker, or is rendered
		return start()
	})
	defer w.Close()
	loop := chartJob(t, `{{ range until 100000 }}{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}{{ end }}`)
	if _, err := w.Render(ctx, loop); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, r := range []Renderer{InProcess(), w} {
		if _, err := r.Render(ctx, good(t, "x")); !errors.Is(err, context.Canceled) {
			t.Errorf("%T: %v", r, err)
		}
	}
	wantGood(t, w, "after")
}

// What a worker answers is bounded as JSON, too, and so is what is read of it.
func TestLongAnswer(t *testing.T) {
	b, _, err := answer(good(t, strings.Repeat("x", 1000)), 1000)
	var r reply
	if err != nil || json.Unmarshal(b, &r) != nil {
		t.Fatal(err)
	}
	wantRefused(t, r.Outcome, diag.Unbounded, "the manifests are larger than 64 MiB")
	var frame strings.Builder
	if err := writeBytes(&frame, b); err != nil {
		t.Fatal(err)
	}
	if err := readFrame(strings.NewReader(frame.String()), uint64(len(b)-1), &r); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
	// A worker that claims a longer one is killed.
	head := string(binary.BigEndian.AppendUint64(nil, maxReply+1))
	w := NewWorkers(1, Self(sayingArgument, fmt.Sprintf("%x", head)))
	defer w.Close()
	wantRefused(t, render1(t, w, good(t, "x")), diag.Unbounded, "the manifests are larger than 64 MiB")
}

// A worker that somebody kills while it has nothing to do is replaced.
func TestDiedIdle(t *testing.T) {
	w := NewWorkers(1, Self(dyingArgument))
	defer w.Close()
	for i := range 3 {
		wantGood(t, w, fmt.Sprint("v", i))
	}
}

func TestStart(t *testing.T) {
	w := NewWorkers(0, func() (*exec.Cmd, error) { return exec.Command("/no/such/program"), nil })
	if _, err := w.Render(context.Background(), good(t, "x")); err == nil || !strings.Contains(err.Error(), "start a worker") {
		t.Errorf("%v", err)
	}
	w.Close()
	w.Close()
	if _, err := w.Render(context.Background(), good(t, "x")); !errors.Is(err, errClosed) {
		t.Errorf("%v", err)
	}
	silent := NewWorkers(1, func() (*exec.Cmd, error) { return exec.Command(os.Args[0], "-test.run=^$"), nil })
	defer silent.Close()
	wantRefused(t, render1(t, silent, good(t, "x")), diag.Unbounded, "the render cannot be finished: ")
}

// Workers have none of this process's variables.
func TestEnvironment(t *testing.T) {
	t.Setenv("KALYPSO_SECRET", "do-not-tell")
	one, err := startWorker(Self(workerArgument))
	if err != nil {
		t.Fatal(err)
	}
	defer one.stop()
	for _, variable := range one.cmd.Environ() {
		if strings.Contains(variable, "do-not-tell") || strings.HasPrefix(variable, "HOME=") || strings.HasPrefix(variable, "PATH=") {
			t.Error(variable)
		}
	}
}

// A worker whose parent is gone ends, also in the midst of a job.
func TestOrphan(t *testing.T) {
	one, err := startWorker(Self(workerArgument))
	if err != nil {
		t.Fatal(err)
	}
	defer one.stop()
	if err := writeFrame(one.stdin, chartJob(t, `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`)); err != nil {
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

// FuzzFrame: no bytes make the reader of frames panic or take more than is there.
func FuzzFrame(f *testing.F) {
	var b strings.Builder
	if err := writeFrame(&b, Job{Kustomize: &kustomize.Request{Path: "a"}}); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(b.String()))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var job Job
		_ = readFrame(strings.NewReader(string(b)), 1<<16, &job)
	})
}

func BenchmarkWorker(b *testing.B) {
	w := workers(b, 1)
	job := good(b, "x")
	for name, r := range map[string]Renderer{"in-process": InProcess(), "worker": w} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := r.Render(context.Background(), job); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
