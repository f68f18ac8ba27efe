package export

import (
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/problem"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Apply exports an entity of a package for one assignment.
func Apply(l *loader.Package, c function.Call) function.Outcome {
	x := &applied{New(l)}
	entity := l.Value.LookupPath(cue.MakePath(cue.Str(c.Entity.Collection), cue.Str(c.Entity.Name)))
	var out function.Outcome
	x.Guard(c.Entity, func() {
		v := entity.FillPath(cuevalue.AssignmentPath, l.Context.BuildExpr(expr.Literal(c.Facts)))
		out = x.call(v, c)
		x.checkValid(v, c)
	})
	out.Diagnostics = x.functionErrors()
	return out
}

// applied exports what an entity is for one assignment.
type applied struct{ *Exporter }

// call exports what a function of the assignment gives.
func (x *applied) call(v cue.Value, c function.Call) (out function.Outcome) {
	switch {
	case c.Shared:
		out.Spec = x.shared(v, c.Entity)
	case c.Field != "":
		out.Spec, _ = x.read.data(cuevalue.Field(v, c.Field), c.Entity.At(c.Field))
	case c.Entity.Collection == "configs":
		out.Values, out.Defaults, out.Overrides = x.trees.trees(v, c.Entity)
	default:
		if x.shapes.check(v, shape.Of(c.Entity.Collection), c.Entity) {
			out.Spec, _ = x.read.entity(v, c.Entity)
		}
	}
	return out
}

// shared exports the fields of a reconciler's backend that do not belong to one
// assignment.
func (x *applied) shared(v cue.Value, ref model.Ref) model.Value {
	for _, backend := range shape.Of(ref.Collection).OneOf[0] {
		options := cuevalue.Field(v, backend)
		if !options.Exists() {
			continue
		}
		s := shape.Of(ref.Collection).Fields[backend].Shape
		var own []string
		for _, name := range s.Names() {
			if s.Fields[name].PerAssignment {
				own = append(own, name)
			}
		}
		spec, _ := x.read.entity(options, ref.At(backend), own...)
		for i := range x.Diagnostics {
			x.Diagnostics[i].Message = "all assignments of a cluster type share this: " + x.Diagnostics[i].Message
			x.Diagnostics[i].Hint = "use no facts but environment and clusterType, or give the cluster " +
				"type a reconciler of its own"
		}
		return spec
	}
	return model.StructOf()
}

// checkValid reports the errors of an entity where nothing else was reported.
func (x *applied) checkValid(v cue.Value, c function.Call) {
	if c.Field != "" || c.Shared || len(x.Diagnostics) > 0 {
		return
	}
	if err := v.Validate(); err != nil {
		for _, o := range problem.In(x.Places, err) {
			x.Fail(c.Entity, o.Diagnostic(nil, nil))
		}
	}
}

// functionErrors returns all diagnostics, as errors of a function of the assignment. Sites stay
// references where CUE gives no position.
func (x *applied) functionErrors() []diag.Diagnostic {
	for i := range x.Diagnostics {
		x.Diagnostics[i].Code, x.Diagnostics[i].Severity = diag.Function, diag.Function.Severity()
		if x.Diagnostics[i].Hint == "" || strings.HasPrefix(x.Diagnostics[i].Hint, "correct the reference") {
			x.Diagnostics[i].Hint = "the assignment lacks a label, version or other fact that the " +
				"expression uses: give it one, match fewer assignments, or write a default, *#assignment.labels.x | \"…\""
		}
	}
	return x.Diagnostics
}
