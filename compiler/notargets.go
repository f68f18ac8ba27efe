package compiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// warnOfNoTargets reports workloads without a deployment target in any environment. It does so
// only if all environments are built without errors, because an error may hide a target. If a
// workload has warnings about its targets, it has targets that their environments do not see.
func (b *Build) warnOfNoTargets() {
	if len(b.Environments) != len(b.Declarations) || diag.Errors(b.Diagnostics) {
		return
	}
	first := map[string]*engine.Environment{} // workloads without targets so far
	found := map[string]bool{}
	for _, e := range b.Environments {
		if e.Model == nil || e.Model.Incomplete {
			return
		}
		for i := range e.Model.Workloads {
			w := &e.Model.Workloads[i]
			found[w.Name] = found[w.Name] || len(w.Targets) > 0 || w.Registration != ""
			if first[w.Name] == nil {
				first[w.Name] = e
			}
		}
	}
	for name, e := range first {
		ref := model.Ref{Collection: "workloads", Name: name}
		ofTarget := func(d diag.Diagnostic) bool {
			return strings.HasPrefix(d.Path, ref.At("deploymentTargets").String()+".")
		}
		if found[name] || slices.ContainsFunc(b.Diagnostics, ofTarget) {
			continue
		}
		ds := []diag.Diagnostic{diag.New(diag.NoTargets,
			fmt.Sprintf("workload %s has no deployment target in any environment, so it is deployed nowhere",
				name)).
			At(ref, "").On(ref.String()).Hinting(
			`give it one: deploymentTargets: NAME: {environment: "…", manifests: …}`)}
		diag.Resolve(ds, e.Model.Positions)
		b.Diagnostics = append(b.Diagnostics, ds...)
	}
}
