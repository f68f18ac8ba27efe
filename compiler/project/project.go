// Package project renders applications at build time. It turns a Job into an Outcome. A Job is
// a Helm chart, a Kustomize overlay or a folder of manifests, with the values or changes for
// it. An Outcome is Kubernetes objects, or the reason why the job failed.
//
// An Outcome depends only on its Job: not on the network, the environment, the clock, files of
// this machine, or other jobs. So callers may keep it under a digest of the Job. The exception
// is an Outcome that is Unbounded, because another machine might finish the job, or this one at
// another time.
//
// Sources are not trusted: a chart that loops for ever or needs a terabyte ends its process. In
// a worker, it ends only its own job.
//
// The hello-world example renders nothing, so this example is from the package's tests. The Job has
// a [helm.Request] for a chart with one template. The template is a ConfigMap good with the hook
// pre-install and the data value: x. The Outcome has this ConfigMap as its only object, with Hooks
// ["pre-install"]. If the template has {{ fail "no" }} instead of x, the Outcome has one diagnostic
// and no objects.
package project

import (
	"context"
	"errors"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/helm"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
	"github.com/kalypso-io/kalypso/compiler/project/kustomize"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// Job is something to render. Exactly one field is set. It is plain data.
type Job struct {
	Helm *helm.Request
	// Kustomize is an overlay, or a folder of manifests.
	Kustomize *kustomize.Request
}

// Outcome is the result of a Job: objects, or diagnostics.
type Outcome struct {
	// Objects have the order of their application, as their renderer returns them.
	Objects []model.Projected
	// Diagnostics have a code, a message and a hint. The callers add sites and assignments,
	// because they know which assignment needs the job.
	Diagnostics []diag.Diagnostic
}

// Renderer renders jobs. It may be used by several goroutines.
type Renderer interface {
	// Render returns the result of a job. Problems of the source are in the Outcome. An error
	// is a problem of the machine or of the program, or the context's error.
	Render(context.Context, *Job) (Outcome, error)
}

// NewRenderer returns a Renderer that renders in workers, which know Handler under HandlerName.
//
// Without workers, it renders in the calling goroutine. Then it does not bound time and memory,
// and it checks its context only before it begins. A chart formats times in the time zone of
// this machine. Kustomize reports deprecated fields on the standard error.
func NewRenderer(workers *worker.Pool) Renderer {
	if workers == nil {
		return inProcess{}
	}
	return inWorkers{workers}
}

type inProcess struct{}

func (inProcess) Render(ctx context.Context, job *Job) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	return render(job)
}

// HandlerName is the name under which workers render.
const HandlerName = "render"

// Handler returns the handler that renders jobs in a worker.
func Handler() worker.Handler {
	return worker.Handle(func(job *Job) (Outcome, error) { return render(job) })
}

type inWorkers struct{ *worker.Pool }

func (w inWorkers) Render(ctx context.Context, job *Job) (Outcome, error) {
	outcome, err := worker.Do[Outcome](ctx, w.Pool, HandlerName, *job)
	var beyond *worker.BeyondError
	switch {
	case errors.As(err, &beyond):
		return failed(refusal.New(diag.Unbounded, "give the source values with which it does less, or "+
			"let the reconciler render it",
			"the render cannot be finished: %s", beyond.Reason)), nil
	case err != nil:
		return Outcome{}, err
	}
	return *outcome, nil
}

func render(job *Job) (Outcome, error) {
	objects, err := objects(job)
	if err == nil {
		return Outcome{Objects: objects}, nil
	}
	var refused *refusal.Error
	if !errors.As(err, &refused) {
		return Outcome{}, fmt.Errorf("render: %w", err)
	}
	return failed(refused), nil
}

func objects(job *Job) ([]model.Projected, error) {
	switch {
	case job.Helm != nil && job.Kustomize == nil:
		return helm.Render(*job.Helm)
	case job.Kustomize != nil && job.Helm == nil:
		return kustomize.Render(*job.Kustomize)
	}
	return nil, errors.New("a job is one of helm and kustomize")
}

// failed returns the outcome of a job that is refused.
func failed(refused *refusal.Error) Outcome {
	return Outcome{Diagnostics: []diag.Diagnostic{diag.New(refused.Code,
		refused.Message).Hinting(refused.Hint)}}
}
