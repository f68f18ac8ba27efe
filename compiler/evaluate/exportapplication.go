package evaluate

import (
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// exportApplication exports an application's own file, with the environments that it
// declares. The diagnostics may have no sites. Not ok says that it is not known what
// the application renders; errors in its environments leave that alone.
func exportApplication(l *loaded) (app *model.Application, stages []model.Stage, ds []diag.Diagnostic, ok bool) {
	x := newExporter(l)
	ref := model.Ref{Collection: "application"}
	app = &model.Application{Positions: x.positions, Rings: map[string][]model.Ring{}}
	x.note(l.value, ref)
	valid := x.shapes.check(l.value, schemaShapes()["#Application"], ref, "environments")
	if value, whole := x.read.entity(l.value, ref, "environments"); valid && whole {
		decode(value, app)
	}
	ok = !diag.Errors(x.ds)
	stages = x.stages().Stages
	s := &stageChecker{x.found}
	s.checkStages(stages)
	for i := range stages {
		s := &stages[i]
		at := model.Ref{Collection: "environments", Name: s.Name}
		if s.GitOps != nil && !x.checkGitOps(s.GitOps, s.Name, at.At("gitops")) {
			s.Invalid = true
		}
		if !s.Invalid && len(s.Promotion.Rings) > 0 {
			app.Rings[s.Name] = s.Promotion.Rings
		}
	}
	diag.Resolve(x.ds, x.positions)
	return app, stages, x.ds, ok
}

// exportContract exports a package that is a contract as a whole; nil where it is
// malformed, which the diagnostics say.
func exportContract(l *loaded, ref model.Ref, positions *model.Positions) (*model.Contract, []diag.Diagnostic) {
	x := newExporter(l)
	x.positions = positions
	x.checkUnsound(ref)
	return x.contracts.contract(l.value, ref, "block"), x.ds
}

// exportValues exports a package that is a file of values, which ref names, as a whole.
// What has errors has no value, and would be missing: the tree is empty then.
func exportValues(l *loaded, ref model.Ref, positions *model.Positions) (model.Tree, []diag.Diagnostic) {
	x := newExporter(l)
	x.positions = positions
	if x.checkUnsound(ref); len(x.ds) > 0 {
		return model.Tree{}, x.ds
	}
	tree := x.trees.tree(l.value, ref)
	if tree.Kind == model.FinalLeaf && tree.Final.Kind() != model.Struct {
		x.fail(ref, diag.New(diag.WrongValue, ref.Name+" is no mapping").In(model.Position{File: ref.Name, Line: 1, Column: 1}, "").Hinting("write keys and values"))
	}
	return tree, x.ds
}
