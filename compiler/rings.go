package compiler

import (
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

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
