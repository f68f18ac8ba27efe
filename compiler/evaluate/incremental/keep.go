package incremental

import (
	"context"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// keep takes what was evaluated at once apart, to be remembered.
func (e *Evaluation) keep(x *export.Exporter, all *export.Result, batch []int) map[int]*export.Result {
	units := e.partition.split(all, batch)
	positions := map[int]map[model.Ref][]model.Position{}
	for _, n := range batch {
		positions[n] = map[model.Ref][]model.Position{}
	}
	for ref, at := range x.Positions.All() {
		positions[e.partition.unitOf(ref)][ref] = at
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for n, p := range units {
		key := e.keys.unit(n)
		p.Digest(key)
		e.fresh[n] = positions[n]
		if p.HasFunctions() {
			e.loaded[n] = x.Package
		}
		if e.cache != nil {
			e.put = append(e.put, func() {
				of := positions[n]
				memo.Remember(e.cache, positionsOf(key), &of)
			})
			stored := model.Encode(*p)
			e.put = append(e.put, func() { e.cache.Put(key, stored) })
		}
	}
	return units
}

// inOnePiece evaluates the whole package.
func (e *Evaluation) inOnePiece(ctx context.Context) (*export.Result, []diag.Diagnostic, error) {
	l, ds, err := loader.Platform(ctx, e.Platform, e.dir, nil)
	if l == nil || err != nil {
		return nil, ds, err
	}
	clear(e.loaded) // of units that do not count now
	x := export.New(l)
	var all *export.Result
	if d, ok := finding.Guarded("the package in "+e.dir, func() { all = e.export(x) }); !ok {
		return nil, []diag.Diagnostic{d}, nil
	}
	if e.partition.whole == "" && all.Clean && !e.crosses(x) {
		batch := append(e.partition.all(), sharedUnit)
		if !repeats(e.inOrder(e.partition.split(all, batch))) {
			e.Stats.Evaluated = e.Stats.Units
			return merge(e.Name, e.inOrder(e.keep(x, all, batch))), nil, nil
		}
	}
	if e.partition.whole == "" {
		e.partition.whole = notClean
	}
	e.Stats = Stats{Units: 1, Evaluated: 1, Whole: e.partition.whole}
	all.Digest(e.keys.whole)
	e.fresh[wholeUnit] = x.Positions.All()
	if all.HasFunctions() {
		e.loaded[wholeUnit] = l
	}
	if e.cache != nil {
		stored, positions := model.Encode(*all), model.Encode(x.Positions.All())
		e.put = append(e.put, func() { e.cache.Put(positionsOf(e.keys.whole), positions) }, func() { e.cache.Put(e.keys.whole, stored) })
	}
	return all, nil, nil
}
