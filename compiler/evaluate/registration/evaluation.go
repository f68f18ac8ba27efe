package registration

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
	"github.com/kalypso-io/kalypso/internal/scratch"
)

// Evaluation evaluates the entities that one registration provides to an environment. If there
// are workers, it uses one: other people write the registration, and a comprehension may have
// no end.
type Evaluation struct {
	environment  string
	registration *model.Registration
	pinned       *PinnedContent
	workers      *worker.Pool
	own          handler // evaluates it if there are no workers

	beyond map[model.Ref]*worker.BeyondError // functions that exceeded the bounds
}

// key identifies the entities that a registration provides to an environment.
func (e *Evaluation) key() memo.Key {
	h := sha256.New()
	fmt.Fprintf(h, "registered %q %q %q", e.environment, e.pinned.Revision, e.pinned.Content)
	for _, name := range variables {
		fmt.Fprintf(h, " %q", os.Getenv(name))
	}
	h.Write(model.Encode(*e.registration))
	return memo.Key(h.Sum(nil))
}

// provided evaluates the entities that the registration provides. passing reports whether the
// result may differ the next time.
func (e *Evaluation) provided(ctx context.Context) (b *ProvidedEntities, passing bool, err error) {
	answer, absent, err := e.ask(ctx, nil)
	var beyond *worker.BeyondError
	switch {
	case errors.As(err, &beyond):
		d := diag.New(diag.Unbounded, fmt.Sprintf("registration %s cannot be evaluated: %s",
			e.registration.Name, beyond)).Hinting(e.boundedHint())
		return &ProvidedEntities{Unknown: true, Diagnostics: []diag.Diagnostic{d}}, true, nil
	case err != nil:
		return nil, false, err
	case answer.Provided == nil:
		return &ProvidedEntities{Unknown: true, Diagnostics: answer.Diagnostics}, absent, nil
	}
	b = answer.Provided
	b.Diagnostics = append(answer.Diagnostics, b.Diagnostics...)
	return b, false, nil
}

func (e *Evaluation) boundedHint() string {
	return "let its owners evaluate less, and run `kalypso lock --update " + e.registration.Name + "`"
}

// maxCalls is the maximal number of calls that a worker gets at once. Each call takes less than
// a millisecond.
const maxCalls = 1000

// Call calls one function that the registration provides. Outcomes are in the order of the
// calls. If a function exceeded the bounds once, Call does not call it again.
func (e *Evaluation) Call(ctx context.Context, calls []function.Call) ([]function.Outcome, error) {
	var out []function.Outcome
	for len(calls) > 0 {
		some := calls[:min(len(calls), maxCalls)]
		calls = calls[len(some):]
		entity := some[0].Entity
		beyond := e.beyond[entity]
		if beyond == nil {
			answer, _, err := e.ask(ctx, some)
			switch {
			case errors.As(err, &beyond):
				if e.beyond == nil {
					e.beyond = map[model.Ref]*worker.BeyondError{}
				}
				e.beyond[entity] = beyond
			case err != nil:
				return nil, err
			case len(answer.Outcomes) != len(some):
				return nil, fmt.Errorf("registration %s cannot be read again: %v", e.registration.Name,
					answer.Diagnostics)
			default:
				out = append(out, answer.Outcomes...)
				continue
			}
		}
		d := diag.New(diag.Unbounded, fmt.Sprintf("%s of registration %s cannot be evaluated: %s", entity,
			e.registration.Name, beyond)).
			At(entity, "").Hinting(e.boundedHint())
		for range some {
			out = append(out, function.Outcome{Diagnostics: []diag.Diagnostic{d}})
		}
	}
	return out, nil
}

// ask writes the files of the registration to a temporary folder, because CUE reads them from a
// disk, and evaluates them. absent reports whether the files are not available at the moment. The
// error may be a *worker.BeyondError.
func (e *Evaluation) ask(ctx context.Context, calls []function.Call) (answer *reply, absent bool,
	err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	tree, ds, err := e.pinned.Files()
	if err != nil {
		return nil, false, err
	}
	if len(ds) > 0 {
		return &reply{Diagnostics: ds}, true, nil
	}
	c, ds := newCheckout(e.registration, e.pinned.Revision, tree)
	if len(ds) > 0 {
		return &reply{Diagnostics: ds}, false, nil
	}
	tmp, remove, err := scratch.Dir("registration")
	if err != nil {
		return nil, false, err
	}
	defer remove() //nolint:errcheck // the next process removes what is left
	if err := c.write(tmp, tree.Data(), e.registration.Name); err != nil {
		return nil, false, err
	}
	modules, err := cuemodule.CacheDir()
	if err != nil {
		return nil, false, err
	}
	job := job{
		Environment: e.environment, Registration: *e.registration, Checkout: *c, Key: e.key(),
		Calls:     calls,
		Variables: map[string]string{"CUE_CACHE_DIR": modules},
	}
	for _, name := range variables {
		job.Variables[name] = os.Getenv(name)
	}
	if e.workers == nil {
		answer, err = e.own.do(&job)
	} else {
		answer, err = worker.Do[reply](ctx, e.workers, HandlerName, job)
	}
	return answer, false, err
}

// job is a request to a worker to evaluate a registration.
type job struct {
	Environment  string
	Registration model.Registration
	Checkout     checkout
	Key          memo.Key
	// If Calls is not empty, the worker calls these functions of the registration instead.
	Calls     []function.Call
	Variables map[string]string // the environment variables for CUE
}

// reply has either Provided or, for calls, the Outcomes in their order. It has neither if the
// package cannot be loaded; Diagnostics then has the reason.
type reply struct {
	Provided    *ProvidedEntities
	Outcomes    []function.Outcome
	Diagnostics []diag.Diagnostic
}

// variables are the environment variables that change CUE's evaluation.
var variables = []string{"CUE_EXPERIMENT", "CUE_DEBUG"}

// HandlerName is the name of the handler with which workers evaluate registrations.
const HandlerName = "evaluate"

// Handler returns the handler that workers use under HandlerName.
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

// handler runs jobs. It keeps the last package with functions of the assignment, for later
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
	if !slices.ContainsFunc(answer.Provided.Configs,
		func(c model.Config) bool { return c.Facts != nil }) {
		h.loaded = nil
	}
	return answer, nil
}
