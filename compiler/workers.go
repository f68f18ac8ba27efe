package compiler

import (
	"io"
	"runtime"

	"github.com/kalypso-io/kalypso/compiler/evaluate/registration"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/project"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// WorkerArgument is the only argument of a process that calls ServeWorker.
const WorkerArgument = "worker"

// NewWorkers returns a pool of processes of this program, at most one for each processor. The
// program must call ServeWorker if its only argument is WorkerArgument.
func NewWorkers() *worker.Pool {
	return worker.NewPool(runtime.GOMAXPROCS(0), worker.Self(WorkerArgument))
}

// ServeWorker works on untrusted input for another process of this program, until in ends. It
// takes over the process, as worker.Serve does.
func ServeWorker(in io.Reader, out io.Writer) error {
	return worker.Serve(in, out, map[string]worker.Handler{
		project.HandlerName:      project.Handler(),
		registration.HandlerName: registration.Handler(),
		expr.HandlerName:         expr.Handler(),
	})
}
