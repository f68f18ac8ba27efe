package evaluate

import (
	"context"
	"fmt"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Call asks for an entity as a function of one assignment.
type Call struct {
	// Entity is a config, a namespace service or a reconciler.
	Entity model.Ref
	// Facts are the fields of #assignment that are known, as a struct.
	Facts model.Value
	// Field, if given, asks for that one field of the entity instead of all.
	Field string
	// Shared asks for the fields of a reconciler's backend that all assignments of
	// a cluster type share. Facts hold what these have in common.
	Shared bool
}

// Outcome is what a call gives: trees for a config, a Spec for anything else.
type Outcome struct {
	Values, Defaults, Overrides model.Tree
	Spec                        model.Value
	Diagnostics                 []diag.Diagnostic
}

// Apply evaluates functions of assignments. Outcomes are in the order of calls.
// Of the environment only the parts that have the entities are evaluated for it,
// once. It may be called by several goroutines, one of which works at a time.
func (p *Package) Apply(ctx context.Context, calls []Call) ([]Outcome, error) {
	if p.functions == nil {
		return nil, fmt.Errorf("an environment that cannot be read has no functions of the assignment")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Outcome, len(calls))
	theirs := map[model.Ref][]int{} // functions of registrations -> calls
	for i, c := range calls {
		if p.registered[c.Entity] != nil {
			theirs[c.Entity] = append(theirs[c.Entity], i)
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l, err := p.functions.load(ctx, c.Entity)
		if err != nil {
			return nil, err
		}
		out[i] = apply(l, c)
	}
	for entity, numbers := range theirs {
		of := make([]Call, len(numbers))
		for n, i := range numbers {
			of[n] = calls[i]
		}
		made, err := p.registered[entity].call(ctx, of)
		if err != nil {
			return nil, err
		}
		for n, i := range numbers {
			out[i] = made[n]
		}
	}
	return out, nil
}

// apply evaluates an entity for one assignment.
func apply(l *loaded, c Call) Outcome {
	x := &function{newExporter(l)}
	entity := l.value.LookupPath(cue.MakePath(cue.Str(c.Entity.Collection), cue.Str(c.Entity.Name)))
	var out Outcome
	x.guard(c.Entity, func() {
		v := entity.FillPath(assignmentPath, l.ctx.BuildExpr(expr.Literal(c.Facts)))
		out = x.call(v, c)
		x.checkValid(v, c)
	})
	out.Diagnostics = x.functionErrors()
	return out
}

// function exports what an entity is for one assignment.
type function struct{ *exporter }

// call exports what a function of the assignment gives.
func (x *function) call(v cue.Value, c Call) (out Outcome) {
	switch {
	case c.Shared:
		out.Spec = x.shared(v, c.Entity)
	case c.Field != "":
		out.Spec, _ = x.read.data(field(v, c.Field), c.Entity.At(c.Field))
	case c.Entity.Collection == "configs":
		out.Values, out.Defaults, out.Overrides = x.trees.trees(v, c.Entity)
	default:
		if x.shapes.check(v, entityShape(c.Entity.Collection), c.Entity) {
			out.Spec, _ = x.read.entity(v, c.Entity)
		}
	}
	return out
}

// shared exports the fields of a reconciler's backend that do not belong to one
// assignment.
func (x *function) shared(v cue.Value, ref model.Ref) model.Value {
	for _, backend := range entityShape(ref.Collection).oneOf[0] {
		options := field(v, backend)
		if !options.Exists() {
			continue
		}
		s := entityShape(ref.Collection).fields[backend].shape
		var own []string
		for _, name := range s.names() {
			if s.fields[name].perAssignment {
				own = append(own, name)
			}
		}
		spec, _ := x.read.entity(options, ref.At(backend), own...)
		for i := range x.ds {
			x.ds[i].Message = "all assignments of a cluster type share this: " + x.ds[i].Message
			x.ds[i].Hint = "use no facts but environment and clusterType, or give the cluster type a reconciler of its own"
		}
		return spec
	}
	return model.StructOf()
}

// invalid reports what CUE says against an entity where nothing else was reported.
func (x *function) checkValid(v cue.Value, c Call) {
	if c.Field != "" || c.Shared || len(x.ds) > 0 {
		return
	}
	if err := v.Validate(); err != nil {
		for _, o := range problemsIn(x.places, err) {
			x.fail(c.Entity, o.diagnostic(nil, nil))
		}
	}
}

// functionErrors says of everything that went wrong that a function of the
// assignment has no value. Sites stay references where CUE gives no position.
func (x *function) functionErrors() []diag.Diagnostic {
	for i := range x.ds {
		x.ds[i].Code, x.ds[i].Severity = diag.Function, diag.Function.Severity()
		if x.ds[i].Hint == "" || strings.HasPrefix(x.ds[i].Hint, "correct the reference") {
			x.ds[i].Hint = "the assignment lacks a label, version or other fact that the expression uses: give it one, match fewer assignments, or write a default, *#assignment.labels.x | \"…\""
		}
	}
	return x.ds
}
