package evaluate

import (
	"context"
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Functions are the entities of a package that are functions of the assignment. They
// keep the CUE values of their units.
type Functions struct {
	evaluation *evaluation
	loaded     map[int]*loaded // by unit
}

// functions returns the functions of the package, once it is evaluated. The evaluation
// itself, which positions are asked of, keeps no CUE values then.
func (e *evaluation) functions() *Functions {
	f := &Functions{e, e.loaded}
	e.loaded = nil
	return f
}

// load returns the unit that an entity is in, evaluated. It is evaluated once. Several
// goroutines must not call it at once.
func (f *Functions) load(ctx context.Context, ref model.Ref) (*loaded, error) {
	e := f.evaluation
	n := e.unitOf(ref)
	if l, done := f.loaded[n]; done {
		return l, nil
	}
	l, ds, err := loadPackage(ctx, e.platform, e.dir, e.leftOut([]int{n}))
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
