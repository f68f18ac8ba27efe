package incremental

import (
	"context"

	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/memo"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Positions returns the table of the positions of what was evaluated. Those of a unit are
// read when one of them is first needed.
func (e *Evaluation) Positions(r *export.Result) *model.Positions {
	of := map[int][]model.Ref{}
	for _, ref := range r.Entities {
		of[e.unitOf(ref)] = append(of[e.unitOf(ref)], ref)
	}
	// There is one even where no file declares it.
	standard := model.Ref{Collection: "namespaceServices", Name: shape.DefaultNamespaceService}
	of[e.unitOf(standard)] = append(of[e.unitOf(standard)], standard)
	t := &model.Positions{}
	for n, entities := range of {
		t.Defer(entities, func() map[model.Ref][]model.Position { return e.positionsOf(n) })
	}
	return t
}

// unitOf returns the number of the unit that an entity is in.
func (e *Evaluation) unitOf(ref model.Ref) int {
	if e.partition.whole != "" {
		return wholeUnit
	}
	return e.partition.unitOf(ref)
}

// positionsOf returns where the entities of a unit are written: as it was found
// just now, as the cache has it, or else by evaluating the unit once more.
func (e *Evaluation) positionsOf(n int) map[model.Ref][]model.Position {
	e.mu.Lock()
	fresh, ok := e.fresh[n]
	e.mu.Unlock()
	if ok {
		return fresh
	}
	if stored, ok := memo.Recall[map[model.Ref][]model.Position](e.cache, positionsKey(e.keys.unit(n))); ok {
		return *stored
	}
	x, _, err := e.reduced(context.Background(), []int{n})
	if x == nil || err != nil {
		return nil // the sources have gone in the meantime
	}
	return x.Positions.All()
}
