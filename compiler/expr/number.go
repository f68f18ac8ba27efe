package expr

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Spelling is a way in which a number is written.
type Spelling struct {
	Value model.Value
	Pos   token.Pos
}

// Spellings returns the ways in which a concrete float is written, each once, in the
// order of the conjuncts: unification does not tell 1.5 from 1.50, and gives either.
// What a value says counts, and only where there is none what a default or another
// alternative says. Of what was computed there is one, as CUE prints it. A number
// that is beyond CUE's arithmetic is an error.
func Spellings(v cue.Value) ([]Spelling, error) {
	b, err := v.MarshalJSON()
	if err != nil {
		return nil, err
	}
	number, err := model.FloatOf(string(b))
	if err != nil {
		return nil, err
	}
	s := speller{number: number}
	if s.conjuncts(v, 0); s.err != nil {
		return nil, s.err
	}
	for _, found := range [][]Spelling{s.values, s.alternatives} {
		if len(found) > 0 {
			return found, nil
		}
	}
	return []Spelling{{Value: number, Pos: v.Pos()}}, nil
}

// speller collects how a number is written.
type speller struct {
	number               model.Value
	values, alternatives []Spelling
	err                  error
}

// mostReferences is how many references are followed one after the other.
const mostReferences = 100

func (s *speller) conjuncts(v cue.Value, references int) {
	op, args := v.Expr()
	switch op {
	case cue.AndOp:
		for _, a := range args {
			s.conjuncts(a, references)
		}
		return
	case cue.SelectorOp, cue.IndexOp:
		if to := cue.Dereference(v); references < mostReferences && to.Path().String() != v.Path().String() {
			s.conjuncts(to, references+1)
			return
		}
	}
	switch n := v.Source().(type) {
	case *ast.Field:
		s.literals(n.Value, &s.values)
	case ast.Expr:
		s.literals(n, &s.values)
	}
}

// literals collects the literals that an expression may be.
func (s *speller) literals(e ast.Expr, into *[]Spelling) {
	sign := ""
	switch x := e.(type) {
	case *ast.ParenExpr:
		s.literals(x.X, into)
		return
	case *ast.BinaryExpr:
		switch x.Op {
		case token.OR:
			s.literals(x.X, &s.alternatives)
			s.literals(x.Y, &s.alternatives)
		case token.AND:
			s.literals(x.X, into)
			s.literals(x.Y, into)
		}
		return
	case *ast.UnaryExpr:
		switch x.Op {
		case token.MUL:
			s.literals(x.X, &s.alternatives)
			return
		case token.SUB:
			sign = "-"
		case token.ADD:
		default:
			return
		}
		e = x.X
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.FLOAT {
		return
	}
	// What is read of YAML may have a sign of its own.
	written, err := model.FloatOf(sign + strings.ReplaceAll(strings.TrimPrefix(lit.Value, "+"), "_", ""))
	var n literal.NumInfo
	switch {
	case err != nil && literal.ParseNum(lit.Value, &n) == nil:
		s.err = fmt.Errorf("the number %s%s is beyond what CUE can hold", sign, lit.Value)
	case err == nil && written.Same(s.number) && !isSpelt(*into, written):
		*into = append(*into, Spelling{written, lit.Pos()})
	}
}

func isSpelt(spellings []Spelling, v model.Value) bool {
	for _, s := range spellings {
		if s.Value.Equal(v) {
			return true
		}
	}
	return false
}
