package export

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// compile turns the syntax of a selector, or of a constraint in it, into a predicate.
func compile(e ast.Expr) (model.Selector, error) {
	switch e := e.(type) {
	case *ast.StructLit:
		return compileStruct(e)
	case *ast.ParenExpr:
		return compile(e.X)
	case *ast.BinaryExpr:
		return compileBinary(e)
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := literal.Unquote(e.Value)
			return model.Selector{Op: model.OpEqual, Text: text}, err
		}
	case *ast.Ident:
		switch e.Name {
		case "_", "string":
			return model.Selector{Op: model.OpAll}, nil
		}
	case *ast.BottomLit:
		return model.Selector{Op: model.OpNone}, nil
	}
	text, err := cuevalue.Write(e)
	return model.Selector{Op: model.OpSatisfy, Expr: model.Expr(text)}, err
}

func compileBinary(e *ast.BinaryExpr) (model.Selector, error) {
	x, err := compile(e.X)
	if err != nil {
		return x, err
	}
	y, err := compile(e.Y)
	if err != nil {
		return y, err
	}
	switch e.Op {
	case token.AND:
		return both(x, y), nil
	case token.OR:
		return model.Selector{Op: model.OpOr, Args: append(flat(model.OpOr, x), flat(model.OpOr, y)...)}, nil
	}
	return model.Selector{}, fmt.Errorf("%s is no constraint", e.Op)
}

// both is the conjunction, simplified: `_ & _|_` is how an absent field arrives.
func both(x, y model.Selector) model.Selector {
	switch {
	case x.Op == model.OpNone, y.Op == model.OpAll:
		return x
	case y.Op == model.OpNone, x.Op == model.OpAll:
		return y
	}
	return model.Selector{Op: model.OpAnd, Args: append(flat(model.OpAnd, x), flat(model.OpAnd, y)...)}
}

func flat(op model.SelectorOp, s model.Selector) []model.Selector {
	if s.Op == op {
		return s.Args
	}
	return []model.Selector{s}
}

func compileStruct(lit *ast.StructLit) (model.Selector, error) {
	all := model.Selector{Op: model.OpAll}
	for _, d := range lit.Elts {
		switch d := d.(type) {
		case *ast.Field:
			s, err := compileField(d)
			if err != nil {
				return s, err
			}
			all = both(all, s)
		case *ast.EmbedDecl:
			s, err := compile(d.Expr)
			if err != nil {
				return s, err
			}
			all = both(all, s)
		case *ast.Ellipsis:
		default:
			return model.Selector{}, fmt.Errorf("%T has no meaning in a selector", d)
		}
	}
	return all, nil
}

func compileField(d *ast.Field) (model.Selector, error) {
	name, isIdent, err := ast.LabelName(d.Label)
	if err != nil {
		return model.Selector{}, fmt.Errorf("a field name that is not known: %w", err)
	}
	if isIdent && (strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#")) {
		return model.Selector{Op: model.OpAll}, nil // hidden, and the user's own business
	}
	of, err := compile(d.Value)
	if err != nil {
		return of, err
	}
	op := model.OpField
	if d.Constraint == token.OPTION {
		if op = model.OpOptional; of.Op == model.OpAll {
			return of, nil // the schema's own name?: _
		}
	}
	return model.Selector{Op: op, Key: name, Args: []model.Selector{of}}, nil
}
