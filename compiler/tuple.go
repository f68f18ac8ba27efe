package compiler

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// tuple is what became of one tuple of the plan.
type tuple struct {
	key     cache.Key
	claimed atomic.Bool
	ready   chan struct{} // closed when head is there
	head    tupleHead

	mu    sync.Mutex
	graph *compose.Graph // nil where it is in the cache, or no longer needed
	users atomic.Int32   // assignments that may still need the graph
}

// tupleHead is what every build needs of a tuple.
type tupleHead struct {
	Failed      bool              `json:"failed,omitempty"`
	Digest      model.Digest      `json:"digest"` // of the composed values
	Lists       []string          `json:"lists,omitempty"`
	Diagnostics []diag.Diagnostic `json:"diagnostics,omitempty"` // unresolved, of no assignment
}

// newTuples prepares the tuples of the plan.
func (e *Environment) newTuples() {
	e.tuples = make([]*tuple, len(e.Plan.Tuples))
	for i := range e.Plan.Tuples {
		t := &e.Plan.Tuples[i]
		e.tuples[i] = &tuple{key: e.key("tuple").Bytes(t.Digest[:]).Sum(), ready: make(chan struct{})}
		e.tuples[i].users.Store(int32(len(t.Assignments)))
	}
}

// resolve makes the heads of tuples known, from the cache or by composing them.
// Each tuple is resolved by one of the goroutines that ask for it; the others wait
// for it.
func (e *Environment) resolve(ctx context.Context, numbers []int32, composer *compose.Composer) error {
	table := e.tupleTable()
	var mine, missing []int32
	for _, n := range numbers {
		if t := e.tuples[n]; t.claimed.CompareAndSwap(false, true) {
			mine = append(mine, n)
		}
	}
	for _, n := range mine {
		t := e.tuples[n]
		if text, ok := table.Head(t.key); !ok || json.Unmarshal(text, &t.head) != nil {
			missing = append(missing, n)
		}
	}
	if err := e.compose(ctx, missing, composer, table); err != nil {
		return err // which ends the context of those that wait
	}
	for _, n := range mine {
		close(e.tuples[n].ready)
	}
	e.meter.count(cache.Tuple, len(missing), len(mine)-len(missing))
	return nil
}

// compose composes tuples, and remembers them.
func (e *Environment) compose(ctx context.Context, missing []int32, composer *compose.Composer, table table) error {
	if len(missing) == 0 {
		return nil
	}
	defer e.meter.took(cache.Tuple, time.Now())
	prepared, err := e.Plan.Prepare(ctx, missing)
	if err != nil {
		return err
	}
	for _, n := range missing {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := e.tuples[n]
		g := composer.Compose(n, prepared)
		t.head = tupleHead{Failed: g.Failed, Digest: g.Digest, Lists: g.Lists(), Diagnostics: g.Diagnostics()}
		if !diag.Passing(t.head.Diagnostics) {
			head, err := json.Marshal(t.head)
			if err != nil {
				return err
			}
			table.Put(t.key, head, g.AppendBinary(nil))
		}
		g.DropProvenance()
		t.graph = g
	}
	return nil
}

// wait waits until the heads of tuples are known.
func (e *Environment) wait(ctx context.Context, numbers []int32) error {
	for _, n := range numbers {
		select {
		case <-e.tuples[n].ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// values returns the graph of a tuple whose head is known, perhaps without its
// provenance.
func (e *Environment) values(n int32) (*compose.Graph, error) {
	t := e.tuples[n]
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.graph == nil {
		g, err := e.graph(n)
		if err != nil {
			return nil, err
		}
		g.DropProvenance()
		t.graph = g
	}
	return t.graph, nil
}

// graph returns the whole graph of a tuple, from the cache or composed anew.
func (e *Environment) graph(n int32) (*compose.Graph, error) {
	t := e.tuples[n]
	if body, ok := e.tupleTable().Body(t.key); ok {
		if g, err := compose.DecodeGraph(body); err == nil {
			return g, nil
		}
	}
	prepared, err := e.Plan.Prepare(e.ctx, []int32{n})
	if err != nil {
		return nil, err
	}
	return e.Plan.NewComposer().Compose(n, prepared), nil
}

// Graph returns the configuration graph of the assignment with this number.
func (e *Environment) Graph(assignment int) (*compose.Graph, error) {
	return e.graph(e.Plan.TupleOf[assignment])
}

// Configuration returns the digest of the composed values of the assignment with
// this number: the version of its configuration.
func (e *Environment) Configuration(assignment int) model.Digest {
	return e.tuples[e.Plan.TupleOf[assignment]].head.Digest
}

// release says that an assignment no longer needs its tuple's graph.
func (e *Environment) release(assignment int) {
	t := e.tuples[e.Plan.TupleOf[assignment]]
	if t.users.Add(-1) == 0 {
		t.mu.Lock()
		t.graph = nil
		t.mu.Unlock()
	}
}

// reportTuples reports what there is to say of tuples, about their assignments of
// this build.
func (e *Environment) reportTuples() {
	clean := true
	for n, t := range e.tuples {
		if !e.resolved(t) {
			clean = false // another shard's
			continue
		}
		clean = clean && !t.head.Failed
		if len(t.head.Diagnostics) == 0 {
			continue
		}
		var ids []string
		for _, i := range e.Plan.Tuples[n].Assignments {
			if e.mine(int(i)) {
				ids = append(ids, e.Schedule.Assignments[i].ID(e.Name))
			}
		}
		for _, d := range t.head.Diagnostics {
			e.report(d.For(ids...))
		}
	}
	if clean {
		e.report(e.Plan.UnusedLists(func(n int) []string { return e.tuples[n].head.Lists })...)
	}
}

func (e *Environment) resolved(t *tuple) bool { return t.claimed.Load() }
