package incremental

import (
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// entry is what is to be put into the cache.
type entry struct {
	key  memo.Key
	data []byte
}

// keepUnits divides what was evaluated at once into the units of the batch, and keeps each.
func (e *Evaluation) keepUnits(x *export.Exporter, all *export.Result, batch []int) map[int]*export.Result {
	positions := map[int]map[model.Ref][]model.Position{}
	for _, n := range batch {
		positions[n] = map[model.Ref][]model.Position{}
	}
	for ref, at := range x.Positions.All() {
		positions[e.partition.unitOf(ref)][ref] = at
	}
	units := e.partition.split(all, batch)
	for n, r := range units {
		e.keep(n, r, positions[n], x.Package)
	}
	return units
}

// keep completes what a unit gave with digests. It notes what is needed of it later, and
// what is to be put into the cache once it is known that no file has changed.
func (e *Evaluation) keep(n int, r *export.Result, positions map[model.Ref][]model.Position, l *loader.Package) {
	key := e.keys.unit(n)
	r.Digest(key)
	var put []entry
	if e.cache != nil {
		put = []entry{{positionsKey(key), model.Encode(positions)}, {key, model.Encode(*r)}}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fresh[n] = positions
	if r.HasFunctions() {
		e.loaded[n] = l
	}
	e.put = append(e.put, put...)
}

// remember puts what was evaluated into the cache, if it is of the files that were scanned.
func (e *Evaluation) remember() error {
	if err := e.unchanged(); err != nil {
		return err
	}
	for _, p := range e.put {
		e.cache.Put(p.key, p.data)
	}
	e.put = nil
	return nil
}
