package build

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// tuples are those of the plan, each composed once for all assignments that share it.
type tuples struct {
	*Planned
	all []*tuple
}

// tuple is the state of one tuple of the plan.
type tuple struct {
	key     cache.Key
	claimed atomic.Bool
	ready   chan struct{} // closed when summary is there
	summary tupleSummary

	mu    sync.Mutex
	graph *compose.Graph // nil where it was not composed, or is no longer needed
	users atomic.Int32   // assignments that may still need the graph
}

// tupleSummary is what every build needs of a tuple.
type tupleSummary struct {
	failed      bool
	digest      model.Digest      // of the composed values
	lists       []string          // what Graph.Lists returns
	diagnostics []diag.Diagnostic // unresolved, of no assignment
}

// encode returns whether the tuple failed, as a byte, the digest and the lists, each text
// with its length, and the diagnostics in JSON: there are many tuples, and every build
// reads all.
func (s *tupleSummary) encode() []byte {
	b := appendBytes(appendBool(nil, s.failed), s.digest)
	b = binary.AppendUvarint(b, uint64(len(s.lists)))
	for _, list := range s.lists {
		b = appendBytes(b, list)
	}
	if len(s.diagnostics) > 0 {
		text, _ := json.Marshal(s.diagnostics) // of strings and numbers
		b = append(b, text...)
	}
	return b
}

func decodeTupleSummary(b []byte) (s tupleSummary, err error) {
	var text []byte
	if s.failed, b, err = takeBool(b); err != nil {
		return s, err
	}
	if text, b, err = takeBytes(b); err != nil {
		return s, err
	}
	s.digest = model.Digest(text)
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)) {
		return s, errSummary
	}
	b = b[size:]
	for range n {
		if text, b, err = takeBytes(b); err != nil {
			return s, err
		}
		s.lists = append(s.lists, string(text))
	}
	if len(b) > 0 {
		err = json.Unmarshal(b, &s.diagnostics)
	}
	return s, err
}

// newTuples returns the tuples of a plan.
func newTuples(p *Planned) *tuples {
	ts := &tuples{p, make([]*tuple, len(p.Plan.Tuples))}
	for i := range ts.Plan.Tuples {
		t := &ts.Plan.Tuples[i]
		ts.all[i] = &tuple{key: ts.key("tuple").Bytes(t.Digest[:]).Sum(), ready: make(chan struct{})}
		ts.all[i].users.Store(int32(len(t.Assignments)))
	}
	return ts
}

// table is where the composed tuples are kept.
func (ts *tuples) table() table {
	return ts.request.Meter.table(cache.Tuple, ts.request.Platform.Module+" "+ts.Name)
}

// summary returns the summary of an assignment's tuple, which is known.
func (ts *tuples) summary(assignment int) *tupleSummary {
	return &ts.all[ts.Plan.TupleOf[assignment]].summary
}

// resolve makes the summaries of tuples known, from the cache or by composing them.
// Each tuple is resolved by one of the goroutines that ask for it; the others wait
// for it.
func (ts *tuples) resolve(ctx context.Context, numbers []int32, composer *compose.Composer) error {
	table := ts.table()
	var mine, missing []int32
	for _, n := range numbers {
		if t := ts.all[n]; t.claimed.CompareAndSwap(false, true) {
			mine = append(mine, n)
		}
	}
	for _, n := range mine {
		t := ts.all[n]
		text, ok := table.Get(t.key)
		var err error
		if ok {
			t.summary, err = decodeTupleSummary(text)
		}
		if !ok || err != nil {
			missing = append(missing, n)
		}
	}
	if err := ts.compose(ctx, missing, composer, table); err != nil {
		return err // which ends the context of those that wait
	}
	for _, n := range mine {
		close(ts.all[n].ready)
	}
	ts.request.Meter.count(cache.Tuple, len(missing), len(mine)-len(missing))
	return nil
}

// compose composes tuples, and remembers them.
func (ts *tuples) compose(ctx context.Context, missing []int32, composer *compose.Composer, table table) error {
	if len(missing) == 0 {
		return nil
	}
	defer ts.request.Meter.took(cache.Tuple, time.Now())
	prepared, err := ts.Plan.Prepare(ctx, missing)
	if err != nil {
		return err
	}
	for _, n := range missing {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := ts.all[n]
		g := composer.Compose(n, prepared)
		ds := ts.strict(slices.Clone(g.Diagnostics()))
		t.summary = tupleSummary{g.Failed || diag.Errors(ds), g.Digest, g.Lists(), ds}
		if !diag.Passing(t.summary.diagnostics) {
			table.Put(t.key, t.summary.encode())
		}
		g.DropProvenance()
		t.graph = g
	}
	return nil
}

// wait waits until the summaries of tuples are known.
func (ts *tuples) wait(ctx context.Context, numbers []int32) error {
	for _, n := range numbers {
		select {
		case <-ts.all[n].ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// values returns the graphs of tuples whose summaries are known, perhaps without their
// provenance. They are held as long as assignments may need them.
func (ts *tuples) values(ctx context.Context, numbers []int32) (map[int32]*compose.Graph, error) {
	out := make(map[int32]*compose.Graph, len(numbers))
	var missing []int32
	for _, n := range numbers {
		if _, seen := out[n]; seen {
			continue
		}
		t := ts.all[n]
		t.mu.Lock()
		out[n] = t.graph
		t.mu.Unlock()
		if out[n] == nil {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	prepared, err := ts.Plan.Prepare(ctx, missing)
	if err != nil {
		return nil, err
	}
	composer := ts.Plan.NewComposer()
	for _, n := range missing {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g := composer.Compose(n, prepared)
		g.DropProvenance()
		out[n] = g
		if t := ts.all[n]; t.users.Load() > 0 {
			t.mu.Lock()
			t.graph = g
			t.mu.Unlock()
		}
	}
	return out, nil
}

// graph returns the whole graph of a tuple.
func (ts *tuples) graph(ctx context.Context, n int32) (*compose.Graph, error) {
	prepared, err := ts.Plan.Prepare(ctx, []int32{n})
	if err != nil {
		return nil, err
	}
	return ts.Plan.NewComposer().Compose(n, prepared), nil
}

// release says that an assignment no longer needs its tuple's graph.
func (ts *tuples) release(assignment int) {
	t := ts.all[ts.Plan.TupleOf[assignment]]
	if t.users.Add(-1) == 0 {
		t.mu.Lock()
		t.graph = nil
		t.mu.Unlock()
	}
}

// diagnostics returns those of tuples, about their assignments of the build.
func (ts *tuples) diagnostics(s *scope) []diag.Diagnostic {
	var out []diag.Diagnostic
	clean := true
	for n, t := range ts.all {
		if !t.claimed.Load() {
			clean = false // another shard's
			continue
		}
		clean = clean && !t.summary.failed
		if len(t.summary.diagnostics) == 0 {
			continue
		}
		var ids []string
		for _, i := range ts.Plan.Tuples[n].Assignments {
			if s.has(int(i)) {
				ids = append(ids, ts.id(int(i)))
			}
		}
		for _, d := range t.summary.diagnostics {
			out = append(out, d.For(ids...))
		}
	}
	if clean {
		out = append(out, ts.Plan.UnusedLists(func(n int) []string { return ts.all[n].summary.lists })...)
	}
	return out
}
