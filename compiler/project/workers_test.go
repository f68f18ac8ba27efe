package project

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

func workers(t testing.TB, n int) (*worker.Pool, Renderer) {
	pool := worker.NewPool(n, worker.Self(workerArgument))
	t.Cleanup(pool.Close)
	return pool, NewRenderer(pool)
}

// A job that would end this process fails in a worker, and the worker renders the next job.
func TestUnbounded(t *testing.T) {
	pool, w := workers(t, 1)
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
		{"loop", chartJob(t, loop), time.Second, "the render cannot be finished: it takes more than 1s of processor time"},
		{"bases that multiply", bases, time.Second, "the render cannot be finished: it takes more than 1s of processor time"},
		{"until", chartJob(t, `{{ range until 1000000000000 }}x{{ end }}`), time.Minute, "it needs more than a gibibyte of memory"},
		{"repeat", chartJob(t, `{{ repeat 1000000000000 "x" }}`), time.Minute, "it needs more than a gibibyte of memory"},
		{"growing", chartJob(t, `{{ $x := repeat 1000000 "x" }}{{ range until 30 }}{{ $x = print $x $x }}{{ end }}`), time.Minute, "it needs more than a gibibyte of memory"},
		{"recursion by tpl", withValues(t, chartJob(t, `{{ tpl .Values.x . }}`), `{"x": "{{ tpl .Values.x . }}"}`), 3 * time.Second, ""},
		{"200 MB", chartJob(t, `{{ range until 200 }}{{ repeat 1000000 "x" }}{{ end }}`), time.Minute, "chart app renders to 190 MiB, more than 64 MiB"},
		{"200 MB of files", folderJob(map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: " + strings.Repeat("x", 200_000_000) + "}\n"}), time.Minute, "a.yaml: the manifests are larger than 64 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool.Limit = c.limit
			outcome := render1(t, w, c.job)
			// Which bound a recursion meets first depends on the machine.
			wantRefused(t, outcome, diag.Unbounded, c.want)
			pool.Limit = time.Minute
			wantGood(t, w, "after")
		})
	}
}

// If one job is killed, other jobs continue.
func TestBeside(t *testing.T) {
	pool, w := workers(t, 2)
	pool.Limit = time.Minute
	bad := chartJob(t, `{{ range until 1000000000000 }}x{{ end }}`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if i == 0 {
				wantRefused(t, render1(t, w, bad), diag.Unbounded, "memory")
			} else {
				wantGood(t, w, fmt.Sprint("v", i))
			}
		})
	}
	wg.Wait()
}

func BenchmarkWorker(b *testing.B) {
	_, w := workers(b, 1)
	job := good(b, "x")
	for name, r := range map[string]Renderer{"in-process": NewRenderer(nil), "worker": w} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := r.Render(context.Background(), job); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
