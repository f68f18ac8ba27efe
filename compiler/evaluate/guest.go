package evaluate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/cuemodule"
	"github.com/kalypso-io/kalypso/internal/scratch"
	"github.com/kalypso-io/kalypso/internal/worker"
)

// guests are what registrations bring, and where it is evaluated.
type Evaluator struct {
	Registry Registry
	Workers  *worker.Pool
}

// guest is what one registration brings to an environment. Others write it, so it
// is evaluated in a worker, if there are any: a comprehension may have no end.
type Evaluation struct {
	environment  string
	registration *model.Registration
	content      *Pinned
	workers      *worker.Pool
	own          handler // evaluates it where there are no workers

	beyond map[model.Ref]*worker.BeyondError // functions that were
}

// guestJob asks what a registration brings.
type job struct {
	Environment  string
	Registration model.Registration
	Checkout     checkout
	Key          Key
	// Calls, where there are some, ask for functions in it instead.
	Calls     []Call
	Variables map[string]string // that CUE reads
}

// guestAnswer has Brought, which is nil for calls, or Outcomes in their order.
// Where the package cannot be loaded it has neither, and Told says why.
type reply struct {
	Provided    *Provided
	Outcomes    []Outcome
	Diagnostics []diag.Diagnostic
}

// variables are those that tell CUE how to evaluate.
var variables = []string{"CUE_EXPERIMENT", "CUE_DEBUG"}

// key identifies what a registration brings to an environment.
func (g *Evaluation) key() Key {
	h := sha256.New()
	fmt.Fprintf(h, "registered %q %q %q", g.environment, g.content.Revision, g.content.Content)
	for _, name := range variables {
		fmt.Fprintf(h, " %q", os.Getenv(name))
	}
	h.Write(model.Encode(*g.registration))
	return Key(h.Sum(nil))
}

// bring evaluates what the registration brings. passing says that it may be
// otherwise the next time.
func (g *Evaluation) provided(ctx context.Context) (b *Provided, passing bool, err error) {
	answer, absent, err := g.ask(ctx, nil)
	var beyond *worker.BeyondError
	switch {
	case errors.As(err, &beyond):
		d := diag.New(diag.Unbounded, fmt.Sprintf("registration %s cannot be evaluated: %s", g.registration.Name, beyond)).Hinting(g.boundedHint())
		return &Provided{Unknown: true, Diagnostics: []diag.Diagnostic{d}}, true, nil
	case err != nil:
		return nil, false, err
	case answer.Provided == nil:
		return &Provided{Unknown: true, Diagnostics: answer.Diagnostics}, absent, nil
	}
	b = answer.Provided
	b.Diagnostics = append(answer.Diagnostics, b.Diagnostics...)
	return b, false, nil
}

func (g *Evaluation) boundedHint() string {
	return "let its owners evaluate less, and run `kalypso lock --update " + g.registration.Name + "`"
}

// mostCalls is how many calls a worker gets at once, of which each takes less than
// a millisecond.
const mostCalls = 1000

// call calls one function of what the registration brings. A function that was
// beyond the bounds once is not called again.
func (g *Evaluation) call(ctx context.Context, calls []Call) ([]Outcome, error) {
	var out []Outcome
	for len(calls) > 0 {
		some := calls[:min(len(calls), mostCalls)]
		calls = calls[len(some):]
		entity := some[0].Entity
		beyond := g.beyond[entity]
		if beyond == nil {
			answer, _, err := g.ask(ctx, some)
			switch {
			case errors.As(err, &beyond):
				if g.beyond == nil {
					g.beyond = map[model.Ref]*worker.BeyondError{}
				}
				g.beyond[entity] = beyond
			case err != nil:
				return nil, err
			case len(answer.Outcomes) != len(some):
				return nil, fmt.Errorf("registration %s cannot be read again: %v", g.registration.Name, answer.Diagnostics)
			default:
				out = append(out, answer.Outcomes...)
				continue
			}
		}
		d := diag.New(diag.Unbounded, fmt.Sprintf("%s of registration %s cannot be evaluated: %s", entity, g.registration.Name, beyond)).
			At(entity, "").Hinting(g.boundedHint())
		for range some {
			out = append(out, Outcome{Diagnostics: []diag.Diagnostic{d}})
		}
	}
	return out, nil
}

// ask writes the files of the registration to a temporary folder, as CUE reads
// them from a disk, and has them evaluated. absent says that there are none just
// now. The error may be a *worker.BeyondError.
func (g *Evaluation) ask(ctx context.Context, calls []Call) (answer *reply, absent bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	tree, ds, err := g.content.Files()
	if err != nil {
		return nil, false, err
	}
	if len(ds) > 0 {
		return &reply{Diagnostics: ds}, true, nil
	}
	c, ds := newCheckout(g.registration, g.content.Revision, tree)
	if len(ds) > 0 {
		return &reply{Diagnostics: ds}, false, nil
	}
	tmp, remove, err := scratch.Dir("registration")
	if err != nil {
		return nil, false, err
	}
	defer remove() //nolint:errcheck // the next process removes what is left
	if err := c.write(tmp, tree.Data(), g.registration.Name); err != nil {
		return nil, false, err
	}
	modules, err := cuemodule.CacheDir()
	if err != nil {
		return nil, false, err
	}
	job := job{
		Environment: g.environment, Registration: *g.registration, Checkout: *c, Key: g.key(), Calls: calls,
		Variables: map[string]string{"CUE_CACHE_DIR": modules},
	}
	for _, name := range variables {
		job.Variables[name] = os.Getenv(name)
	}
	if g.workers == nil {
		answer, err = g.own.do(&job)
	} else {
		answer, err = worker.Do[reply](ctx, g.workers, HandlerName, job)
	}
	return answer, false, err
}

// HandlerName is the name under which workers evaluate what registrations bring.
const HandlerName = "evaluate"

// Handler returns what evaluates it in a worker.
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

// host evaluates guests. It keeps the last one that has functions for calls of
// them.
type handler struct {
	key    Key
	loaded *loaded
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
			answer.Outcomes = append(answer.Outcomes, h.loaded.apply(c))
		}
		return answer, nil
	}
	answer.Provided = h.loaded.provided(job.Environment, &job.Registration, job.Key)
	if !hasFunctions(&model.Environment{Configs: answer.Provided.Configs}) {
		h.loaded = nil
	}
	return answer, nil
}
