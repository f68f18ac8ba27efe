package incremental

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
)

// Functions are the entities of a package that are functions of the assignment. They
// keep the CUE values of their units.
type Functions struct {
	evaluation *Evaluation
	loaded     map[int]*loader.Package // by unit
}

// Functions returns the functions of the package, once it is evaluated. The evaluation
// itself, which positions are asked of, keeps no CUE values then.
func (e *Evaluation) Functions() *Functions {
	f := &Functions{e, e.loaded}
	e.loaded = nil
	return f
}

// Call evaluates a function of an assignment, which f does with the unit of the entity.
// Several goroutines must not call it at once.
func (f *Functions) Call(ctx context.Context, entity model.Ref, call func(*loader.Package)) error {
	l, err := f.load(ctx, entity)
	if err != nil {
		return err
	}
	part, err := f.evaluation.costs.Begin(ctx)
	if err != nil {
		return err
	}
	defer part.End()
	part.At(supervisor.Place{Entity: entity, At: f.evaluation.positionsOf(f.evaluation.unitOf(entity))[entity]})
	call(l)
	return nil
}

// load returns the unit that an entity is in, evaluated. It is evaluated once.
func (f *Functions) load(ctx context.Context, ref model.Ref) (*loader.Package, error) {
	e := f.evaluation
	n := e.unitOf(ref)
	if l, done := f.loaded[n]; done {
		return l, nil
	}
	part, err := e.costs.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer part.End()
	if part.At(e.allFiles()); n != wholeUnit {
		part.At(e.place([]int{n}))
	}
	l, ds, err := loader.Platform(ctx, e.Platform, e.dir, e.leftOut([]int{n}))
	if err != nil {
		return nil, err
	}
	if err := e.unchanged(); err != nil {
		return nil, err
	}
	if l == nil {
		return nil, fmt.Errorf("%s cannot be read again: %s", ref, ds[0].Message)
	}
	f.loaded[n] = l
	return l, nil
}
