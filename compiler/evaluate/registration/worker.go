package registration

import (
	"os"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// job asks a worker for what a registration provides.
type job struct {
	Environment  string
	Registration model.Registration
	Checkout     checkout
	Key          memo.Key
	// Calls, where there are some, ask for functions of it instead.
	Calls     []function.Call
	Variables map[string]string // that CUE reads
}

// reply has Provided, or for calls the Outcomes in their order. Where the package cannot
// be loaded it has neither, and Diagnostics say why.
type reply struct {
	Provided    *Provided
	Outcomes    []function.Outcome
	Diagnostics []diag.Diagnostic
}

// variables are those that tell CUE how to evaluate.
var variables = []string{"CUE_EXPERIMENT", "CUE_DEBUG"}

// HandlerName is the name under which workers evaluate what registrations provide.
const HandlerName = "evaluate"

// Handler returns the handler of workers for it.
func Handler() worker.Handler {
	var h handler
	return worker.Handle(func(job *job) (reply, error) {
		for name, value := range job.Variables {
			if err := os.Setenv(name, value); err != nil {
				return reply{}, err
			}
		}
		answer, err := h.do(job)
		if err != nil {
			return reply{}, err
		}
		return *answer, nil
	})
}

// handler does jobs. It keeps the last package that has functions of the assignment, for
// calls of them.
type handler struct {
	key    memo.Key
	loaded *checkedOut
}

func (h *handler) do(job *job) (*reply, error) {
	answer := &reply{}
	if h.loaded == nil || h.key != job.Key {
		l, ds, err := job.Checkout.load(&job.Registration)
		if l == nil || err != nil {
			return &reply{Diagnostics: ds}, err
		}
		h.key, h.loaded, answer.Diagnostics = job.Key, l, ds
	}
	if len(job.Calls) > 0 {
		for _, c := range job.Calls {
			out := export.Apply(h.loaded.Package, c)
			for _, d := range foreignSecrets(&job.Registration, c.Entity, out.Values, out.Defaults) {
				out = function.Outcome{Diagnostics: append(out.Diagnostics, d.At(c.Entity, ""))}
			}
			answer.Outcomes = append(answer.Outcomes, out)
		}
		return answer, nil
	}
	answer.Provided = h.loaded.export(job.Environment, &job.Registration, job.Key)
	if !slices.ContainsFunc(answer.Provided.Configs, func(c model.Config) bool { return c.Facts != nil }) {
		h.loaded = nil
	}
	return answer, nil
}
