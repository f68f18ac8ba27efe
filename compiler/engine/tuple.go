package engine

import (
	"context"
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
	in  *Inputs
	all []tuple
}

// tuple is the state of one tuple of the plan.
type tuple struct {
	// claim is that of the call of resolve that makes the summary; nil where none does.
	claim   atomic.Pointer[claim]
	summary tupleSummary

	mu    sync.Mutex
	graph *compose.Graph // nil where it was not composed, or is no longer needed
	ended atomic.Int32   // assignments that no longer need the graph
}

// claim is that of one call of resolve.
type claim struct {
	done chan struct{} // closed when the summaries of all that it claims are there, or err is
	err  error
}

func (t *tuple) isClaimed() bool { return t.claim.Load() != nil }

// tupleSummary is what every build needs of a tuple.
type tupleSummary struct {
	failed      bool
	digest      model.Digest      // of the composed values
	lists       []byte            // what Graph.Lists returns, as lists.add takes it
	diagnostics []diag.Diagnostic // unresolved, of no assignment
}

// encode returns whether the tuple failed, as a byte, the digest and the lists, each
// with its length, and the diagnostics in JSON: there are many tuples.
func (s *tupleSummary) encode() []byte {
	b := appendBytes(appendBytes(appendBool(nil, s.failed), s.digest), s.lists)
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
	if s.lists, b, err = takeBytes(b); err != nil {
		return s, err
	}
	if len(b) > 0 {
		err = json.Unmarshal(b, &s.diagnostics)
	}
	return s, err
}

// lists are paths of lists that compose by a strategy. Most tuples have the same.
type lists struct {
	paths map[string]bool
	added map[string]bool // what was added, encoded
}

func newLists() lists { return lists{map[string]bool{}, map[string]bool{}} }

// encodeLists returns paths, each with its length.
func encodeLists(paths []string) (b []byte) {
	for _, path := range paths {
		b = appendBytes(b, path)
	}
	return b
}

// add adds paths that were encoded.
func (l lists) add(encoded []byte) {
	if l.added[string(encoded)] {
		return
	}
	l.added[string(encoded)] = true
	for rest := encoded; len(rest) > 0; {
		path, next, err := takeBytes(rest)
		if err != nil {
			return
		}
		l.paths[string(path)], rest = true, next
	}
}

// newTuples returns the tuples of a plan.
func newTuples(p *Inputs) *tuples {
	return &tuples{p, make([]tuple, len(p.Plan.Tuples))}
}

// isNeeded says whether assignments may still need a tuple's graph, of which so many do not.
func (ts *tuples) isNeeded(n, ended int32) bool {
	return int(ended) < len(ts.in.Plan.Tuples[n].Assignments)
}

// summary returns the summary of an assignment's tuple, which is known.
func (ts *tuples) summary(assignment int) *tupleSummary {
	return &ts.all[ts.in.Plan.TupleOf[assignment]].summary
}

// resolve makes the summaries of the tuples of a cluster type known, from its table or by
// composing them. Each tuple is resolved by one of the goroutines that ask for it; the others
// wait for it. The table has all of them afterwards.
func (ts *tuples) resolve(ctx context.Context, table table, numbers []int32, composer *compose.Composer) error {
	mine := &claim{done: make(chan struct{})}
	var others, missing []int32
	claimed, h := 0, cache.NewHash("")
	for _, n := range numbers {
		t := &ts.all[n]
		if !t.claim.CompareAndSwap(nil, mine) {
			others = append(others, n)
			continue
		}
		claimed++
		text, ok := table.Get(ts.tupleKey(h, n))
		var err error
		if ok {
			t.summary, err = decodeTupleSummary(text)
		}
		if !ok || err != nil {
			missing = append(missing, n)
		}
	}
	mine.err = ts.compose(ctx, missing, composer, table)
	close(mine.done)
	if mine.err != nil {
		return mine.err
	}
	ts.in.request.Meter.count(cache.Tuple, len(missing), claimed-len(missing))
	for _, n := range others {
		other := ts.all[n].claim.Load()
		select {
		case <-other.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if other.err != nil {
			return other.err
		}
		ts.remember(table, h, n)
	}
	return nil
}

// tupleKey is the key of a tuple's summary.
func (ts *tuples) tupleKey(h *cache.Hash, n int32) cache.Key {
	return ts.in.begin(h, "tuple").Bytes(ts.in.Plan.Tuples[n].Digest[:]).Sum()
}

// remember keeps the summary of a tuple in a table that lacks it.
func (ts *tuples) remember(table table, h *cache.Hash, n int32) {
	key, s := ts.tupleKey(h, n), &ts.all[n].summary
	if _, there := table.Get(key); !there && !diag.Passing(s.diagnostics) {
		table.Put(key, s.encode())
	}
}

// compose composes tuples, and remembers them.
func (ts *tuples) compose(ctx context.Context, missing []int32, composer *compose.Composer, table table) error {
	if len(missing) == 0 {
		return nil
	}
	defer ts.in.request.Meter.took(cache.Tuple, time.Now())
	prepared, err := ts.in.Plan.Prepare(ctx, missing)
	if err != nil {
		return err
	}
	h := cache.NewHash("")
	for _, n := range missing {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := &ts.all[n]
		g := composer.Compose(n, prepared)
		ds := ts.in.strict(slices.Clone(g.Diagnostics()))
		t.summary = tupleSummary{g.Failed || diag.Errors(ds), g.Digest, encodeLists(g.Lists()), ds}
		ts.remember(table, h, n)
		g.DropProvenance()
		t.graph = g
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
		t := &ts.all[n]
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
	prepared, err := ts.in.Plan.Prepare(ctx, missing)
	if err != nil {
		return nil, err
	}
	composer := ts.in.Plan.NewComposer()
	for _, n := range missing {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g := composer.Compose(n, prepared)
		g.DropProvenance()
		out[n] = g
		if t := &ts.all[n]; ts.isNeeded(n, t.ended.Load()) {
			t.mu.Lock()
			t.graph = g
			t.mu.Unlock()
		}
	}
	return out, nil
}

// graph returns the whole graph of a tuple.
func (ts *tuples) graph(ctx context.Context, n int32) (*compose.Graph, error) {
	prepared, err := ts.in.Plan.Prepare(ctx, []int32{n})
	if err != nil {
		return nil, err
	}
	return ts.in.Plan.NewComposer().Compose(n, prepared), nil
}

// diagnostics returns those of tuples, about their assignments of the build. leftOut says
// by number which tuples there is nothing to say about, and lists are those of all of them.
func (ts *tuples) diagnostics(s *scope, leftOut []bool, lists lists) []diag.Diagnostic {
	var out []diag.Diagnostic
	clean := true
	for n := range ts.all {
		t := &ts.all[n]
		if !t.isClaimed() {
			clean = clean && leftOut[n] // or another shard's
			continue
		}
		lists.add(t.summary.lists)
		clean = clean && !t.summary.failed
		if len(t.summary.diagnostics) == 0 {
			continue
		}
		var ids []string
		for _, i := range ts.in.Plan.Tuples[n].Assignments {
			if s.has(int(i)) {
				ids = append(ids, ts.in.id(int(i)))
			}
		}
		for _, d := range t.summary.diagnostics {
			out = append(out, d.For(ids...))
		}
	}
	if clean {
		out = append(out, ts.in.Plan.UnusedLists(lists.paths)...)
	}
	return out
}
