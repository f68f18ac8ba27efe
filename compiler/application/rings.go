package application

import (
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
)

// checkRings finds the ring of each target that is projected. To rings, a target is a
// cluster type without labels. If no ring is requested, checkRings reports the errors in
// the rings that the application declares.
func (a *Application) checkRings() []diag.Diagnostic {
	if a.request.Ring != "" {
		of, ds := a.ringsOf(a.request.Environments[0], a.request.Rings)
		a.rings = of
		return ds
	}
	var ds []diag.Diagnostic
	for _, environment := range slices.Sorted(maps.Keys(a.Model.Rings)) {
		if len(a.request.Environments) == 0 || slices.Contains(a.request.Environments, environment) {
			_, more := a.ringsOf(environment, a.Model.Rings[environment])
			ds = append(ds, more...)
		}
	}
	return ds
}

func (a *Application) ringsOf(environment string, rings []model.Ring) (map[string]string,
	[]diag.Diagnostic) {
	var targets []model.ClusterType
	for i := range a.Model.Targets {
		if t := &a.Model.Targets[i]; t.Environment == environment {
			targets = append(targets, model.ClusterType{Name: t.Name})
		}
	}
	if len(targets) == 0 {
		return nil, nil // the error is already reported, and is not about rings
	}
	eval := expr.New(expr.In(a.request.Workers))
	of, ds := schedule.Rings(environment, rings, targets, eval.Satisfies)
	ref := model.Ref{Collection: "environments", Name: environment}
	for i := range ds {
		if ds[i].Code == diag.RingMembership { // a target is written nowhere but in rings
			ds[i] = ds[i].At(ref.At("rings"), "").On(ref.At("rings").String())
			ds[i].Message = "target " + strings.TrimPrefix(ds[i].Message, "cluster type ")
		}
		ds[i].Environment = environment
	}
	diag.Resolve(ds, a.Model.Positions)
	return of, ds
}

// builds reports whether a target is of the ring that is projected.
func (a *Application) builds(target string) bool {
	return a.request.Ring == "" || a.rings[target] == a.request.Ring
}
