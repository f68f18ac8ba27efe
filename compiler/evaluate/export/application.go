package export

import (
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Application exports an application's own file, with the environments that it
// declares. The diagnostics may have no sites. Not ok says that it is not known what
// the application renders; errors in its environments leave that alone.
func Application(l *loader.Package) (app *model.Application, declarations []model.Declaration,
	ds []diag.Diagnostic, ok bool) {
	x := New(l)
	ref := model.Ref{Collection: "application"}
	app = &model.Application{Positions: x.Positions, Rings: map[string][]model.Ring{}}
	x.note(l.Value, ref)
	valid := x.shapes.check(l.Value, shape.Definitions()["#Application"], ref, "environments")
	if value, whole := x.read.entity(l.Value, ref, "environments"); valid && whole {
		decode(value, app)
	}
	ok = !diag.Errors(x.Diagnostics)
	declarations = x.Declarations().Declarations
	s := &check.Declarations{Entities: x.Found}
	s.Declared(declarations)
	for i := range declarations {
		s := &declarations[i]
		at := model.Ref{Collection: "environments", Name: s.Name}
		if s.GitOps != nil && !x.checkGitOps(s.GitOps, s.Name, at.At("gitops")) {
			s.Invalid = true
		}
		if !s.Invalid && len(s.Promotion.Rings) > 0 {
			app.Rings[s.Name] = s.Promotion.Rings
		}
	}
	diag.Resolve(x.Diagnostics, x.Positions)
	return app, declarations, x.Diagnostics, ok
}

// Contract exports a package that is a contract as a whole; nil where it is
// malformed, which the diagnostics say.
func Contract(l *loader.Package, ref model.Ref, positions *model.Positions) (*model.Contract, []diag.Diagnostic) {
	x := New(l)
	x.Positions = positions
	x.checkUnsound(ref)
	return x.contracts.contract(l.Value, ref, "block"), x.Diagnostics
}

// Values exports a package that is a file of values, which ref names, as a whole.
// What has errors has no value, and would be missing: the tree is empty then.
func Values(l *loader.Package, ref model.Ref, positions *model.Positions) (model.Tree, []diag.Diagnostic) {
	x := New(l)
	x.Positions = positions
	if x.checkUnsound(ref); len(x.Diagnostics) > 0 {
		return model.Tree{}, x.Diagnostics
	}
	tree := x.trees.tree(l.Value, ref)
	if tree.Kind == model.FinalLeaf && tree.Final.Kind() != model.Struct {
		x.Fail(ref, diag.New(diag.WrongValue, ref.Name+" is no mapping").In(model.Position{File: ref.Name,
			Line: 1, Column: 1}, "").Hinting("write keys and values"))
	}
	return tree, x.Diagnostics
}
