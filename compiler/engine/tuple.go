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

// tuples are the tuples of the plan. Each is composed once for all assignments that share it.
type tuples struct {
	in  *Inputs
	all []tuple
}

// tuple is the state of one tuple of the plan.
type tuple struct {
	// claim belongs to the call of resolve that makes the summary; nil if there is no such call.
	claim   atomic.Pointer[claim]
	summary tupleSummary

	mu    sync.Mutex
	graph *compose.Graph // nil if it was not composed, or is no longer needed
	ended atomic.Int32   // the number of assignments that no longer need the graph
}

// claim marks the tuples that one call of resolve makes.
type claim struct {
	done chan struct{} // closed when all claimed tuples have summaries, or err is set
	err  error
}

func (t *tuple) isClaimed() bool { return t.claim.Load() != nil }

// tupleSummary is the part of a tuple that every build needs.
type tupleSummary struct {
	failed      bool
	digest      model.Digest      // of the composed values
	lists       []byte            // the result of Graph.Lists, in the encoding of encodeLists
	diagnostics []diag.Diagnostic // unresolved, without an assignment
}

// encode returns a short encoding, because there are many tuples. It has a byte for failed, the
// digest and the lists, each with its length, and the diagnostics in JSON.
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

// lists are paths of lists that compose by a strategy. Most tuples have the same lists.
type lists struct {
	paths map[string]bool
	added map[string]bool // the encoded paths that were added
}

func newLists() lists { return lists{map[string]bool{}, map[string]bool{}} }

// encodeLists returns paths, each with its length.
func encodeLists(paths []string) (b []byte) {
	for _, path := range paths {
		b = appendBytes(b, path)
	}
	return b
}

// add adds encoded paths, and ignores paths that it has added before.
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
func newTuples(p *Inputs) *tuples { return &tuples{p, make([]tuple, len(p.Plan.Tuples))} }

// isNeeded reports whether assignments may still need a tuple's graph. ended is the number of its
// assignments that no longer do.
func (ts *tuples) isNeeded(n, ended int32) bool {
	return int(ended) < len(ts.in.Plan.Tuples[n].Assignments)
}

// summary returns the summary of an assignment's tuple, which resolve must have made.
func (ts *tuples) summary(assignment int) *tupleSummary {
	return &ts.all[ts.in.Plan.TupleOf[assignment]].summary
}

// resolve makes the summaries of the tuples of a cluster type, from the table or by composing
// them. If several goroutines need a tuple, one of them resolves it and the others wait.
// Afterwards the table has the summaries of all these tuples.
func (ts *tuples) resolve(ctx context.Context, table table, numbers []int32,
	composer *compose.Composer) error {
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

// tupleKey returns the key of a tuple's summary.
func (ts *tuples) tupleKey(h *cache.Hash, n int32) cache.Key {
	return ts.in.begin(h, "tuple").Bytes(ts.in.Plan.Tuples[n].Digest[:]).Sum()
}

// remember adds the summary of a tuple to a table that lacks it.
func (ts *tuples) remember(table table, h *cache.Hash, n int32) {
	key, s := ts.tupleKey(h, n), &ts.all[n].summary
	if _, there := table.Get(key); !there && !diag.Passing(s.diagnostics) {
		table.Put(key, s.encode())
	}
}

// compose composes tuples and caches their summaries.
func (ts *tuples) compose(ctx context.Context, missing []int32, composer *compose.Composer,
	table table) error {
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

// values returns the graphs of tuples with known summaries, possibly without their provenance. It
// keeps them as long as assignments may need them.
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

// graph returns the graph of a tuple with its provenance.
func (ts *tuples) graph(ctx context.Context, n int32) (*compose.Graph, error) {
	prepared, err := ts.in.Plan.Prepare(ctx, []int32{n})
	if err != nil {
		return nil, err
	}
	return ts.in.Plan.NewComposer().Compose(n, prepared), nil
}

// release notes that an assignment no longer needs the graph of its tuple. The last one frees it.
func (ts *tuples) release(assignment int) {
	n := ts.in.Plan.TupleOf[assignment]
	t := &ts.all[n]
	if !ts.isNeeded(n, t.ended.Add(1)) {
		t.mu.Lock()
		t.graph = nil
		t.mu.Unlock()
	}
}

// diagnostics returns the diagnostics of tuples, about their assignments of the build. leftOut
// marks the tuples without diagnostics by number, and lists are the lists of these tuples.
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
