package compiler

import (
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// Rings returns the ring of each of the environment's cluster types, by their names,
// as schedule.Rings does, and resolved diagnostics. The rings may be those that
// another commit says the environment has. The environment's Model is not nil.
func (e *Environment) Rings(rings []model.Ring) (map[string]string, []diag.Diagnostic) {
	of, ds := schedule.Rings(e.Name, rings, e.Model.ClusterTypes, newSatisfier(expr.In(e.request.Workers)))
	diag.Resolve(ds, e.Model.Positions)
	return of, ds
}

// checkRings reports cluster types that are not in one ring of those that the base
// says the environment has.
func (e *Environment) checkRings(stages []evaluate.Stage, satisfies selector.Satisfier) []diag.Diagnostic {
	n := slices.IndexFunc(stages, func(s evaluate.Stage) bool { return s.Name == e.Name })
	if n < 0 || stages[n].Sick {
		return nil
	}
	_, ds := schedule.Rings(e.Name, stages[n].Promotion.Rings, e.Model.ClusterTypes, satisfies)
	if e.Model.Uncertain { // a ring may have what is not known
		ds = slices.DeleteFunc(ds, func(d diag.Diagnostic) bool { return d.Severity == diag.Warning })
	}
	return ds
}
