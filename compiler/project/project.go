// Package project renders applications at build time: a Job, which is a Helm
// chart, a Kustomize overlay or a folder of manifests with what it is rendered
// with, becomes an Outcome, which is Kubernetes objects or why there are none.
//
// An Outcome depends on its Job alone: not on the network, the environment, the
// clock, files of this machine, or other jobs. So it may be kept under a digest
// of the Job, except for one that says Unbounded, which another machine, or this
// one in another hour, might finish.
//
// Sources are not trusted: a chart that loops for ever or asks for a terabyte
// takes the process with it. In workers, it costs its own job alone.
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
	// Objects are in the order of their application, as their renderer has it.
	Objects []model.Projected
	// Diagnostics have a code, a message and a hint. Sites and assignments are for
	// whoever knows what needs the job.
	Diagnostics []diag.Diagnostic
}

// Renderer renders jobs. It may be used by several goroutines.
type Renderer interface {
	// Render returns the result of a job. What is wrong with the source is in the Outcome;
	// an error is one of the machine or of the program, or the context's.
	Render(context.Context, *Job) (Outcome, error)
}

// NewRenderer returns a Renderer that renders in workers, which know Handler under
// HandlerName.
//
// Without workers it renders where it is called. Then it is not bounded in time and
// memory, it looks at its context only before it begins, and times that a chart
// formats are in the zone of this machine. Kustomize notes deprecated fields on the
// standard error.
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

// Handler returns what renders in a worker.
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
	return Outcome{Diagnostics: []diag.Diagnostic{diag.New(refused.Code, refused.Message).Hinting(refused.Hint)}}
}
