package evaluate

import (
	"cmp"
	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
	"fmt"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"regexp"
	"slices"
	"strings"
)

// scope is an evaluated package with the findings about it. All that exports or checks
// CUE values has one, and writes to it.
type scope struct {
	*loaded
	*findings
}

// note records where a value is written: exactly for a scalar, by declaration
// for anything else.
func (x *scope) note(v cue.Value, ref model.Ref) {
	if v.IncompleteKind() != cue.StructKind {
		if p := x.of(v.Pos()); !p.IsZero() {
			x.positions.Add(ref, p)
			return
		}
	}
	for _, p := range x.written(v) {
		x.positions.Add(ref, p)
	}
}

// noteAll records where a value and everything in it is written.
func (x *scope) noteAll(v cue.Value, ref model.Ref) {
	x.note(v, ref)
	if v.IncompleteKind() == cue.StructKind {
		for name, of := range fields(v) {
			x.noteAll(of, ref.At(model.Label(name)))
		}
	}
}

// noteContract records where a field of a contract is written: all places where
// these are several, since any may be the one that is broken.
func (x *scope) noteContract(v cue.Value, ref model.Ref) {
	if places := x.written(v); len(places) > 1 {
		for _, p := range places {
			x.positions.Add(ref, p)
		}
		return
	}
	x.note(v, ref)
}

// at adds to a diagnostic where values are written.
func (x *scope) at(d diag.Diagnostic, values ...cue.Value) diag.Diagnostic {
	for _, v := range values {
		for _, p := range x.written(v) {
			d = d.In(p, "")
		}
	}
	return d
}

// writtenIn returns where in a folder a value is written.
func (x *scope) writtenIn(v cue.Value, folder string) []model.Position {
	return slices.DeleteFunc(x.written(v), func(p model.Position) bool { return !strings.HasPrefix(p.File, folder) })
}

// checkUnsound reports what CUE says against a whole package.
func (x *scope) checkUnsound(ref model.Ref) {
	for _, o := range problemsIn(x.places, x.value.Validate()) {
		for _, o := range locate(x.places, o) {
			x.fail(ref, o.diagnostic(nil, nil).On(cmp.Or(joinPath(o.path), "values")))
		}
	}
}

// checkPatterns refuses regular expressions that are none: CUE only finds out
// when it matches a string.
func (x *scope) checkPatterns(v cue.Value, ref model.Ref, code diag.Code) bool {
	e, err := syntax(v)
	if err != nil {
		return true // reported by whoever needs the syntax
	}
	ok := true
	ast.Walk(e, func(n ast.Node) bool {
		u, isUnary := n.(*ast.UnaryExpr)
		if !isUnary || u.Op != token.MAT && u.Op != token.NMAT {
			return true
		}
		if lit, isLiteral := u.X.(*ast.BasicLit); isLiteral && lit.Kind == token.STRING {
			text, err := literal.Unquote(lit.Value)
			if err == nil {
				_, err = regexp.Compile(text)
			}
			if err != nil {
				ok = false
				x.fail(ref, diag.New(code, fmt.Sprintf("the regular expression %s cannot be read: %s", lit.Value, strings.TrimPrefix(err.Error(), "error parsing regexp: "))).
					Hinting("the syntax is that of https://github.com/google/re2/wiki/Syntax"))
			}
		}
		return true
	}, nil)
	return ok
}
