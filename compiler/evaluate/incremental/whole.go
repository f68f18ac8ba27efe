package incremental

import (
	"context"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/export"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
)

// wholeUnit is the number of the whole package, as a unit of itself.
const wholeUnit = -2

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
			return merge(e.Name, e.inOrder(e.keepUnits(x, all, batch))), nil, nil
		}
	}
	if e.partition.whole == "" {
		e.partition.whole = notClean
	}
	e.Stats = Stats{Units: 1, Evaluated: 1, Whole: e.partition.whole}
	e.keep(wholeUnit, all, x.Positions.All(), l)
	return all, nil, nil
}
