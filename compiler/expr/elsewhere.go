package expr

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// Elsewhere has calls answered by workers that may take any time and memory: what
// they are about may have been written by others, and comes together with values
// that they chose. Evaluators share one.
type Elsewhere struct {
	pool *worker.Pool

	mu     sync.Mutex
	beyond map[string]Result // by what is asked, without the value
}

// In returns an Elsewhere of workers, which know Handler under HandlerName; nil,
// for which everything is answered where it is asked, for none.
func In(pool *worker.Pool) *Elsewhere {
	if pool == nil {
		return nil
	}
	return &Elsewhere{pool: pool, beyond: map[string]Result{}}
}

// HandlerName is the name under which workers answer calls.
const HandlerName = "expr"

// Handler returns what answers calls in a worker.
func Handler() worker.Handler {
	return worker.Handle(func(c *Call) (Result, error) { return New(nil).answer(*c), nil })
}

// eval answers a call. What was beyond all bounds for one value is not tried with
// another.
func (e *Elsewhere) eval(c Call) Result {
	key := string(c.Contract)
	for _, t := range c.Terms {
		key += "\x00" + string(t)
	}
	e.mu.Lock()
	r, beyond := e.beyond[key]
	e.mu.Unlock()
	if beyond {
		return r
	}
	answer, err := worker.Do[Result](context.Background(), e.pool, HandlerName, c)
	if err == nil {
		return *answer
	}
	r = Result{Problems: []Problem{{Message: err.Error(), Unbounded: true}}}
	if errors.As(err, new(*worker.BeyondError)) {
		e.mu.Lock()
		e.beyond[key] = r
		e.mu.Unlock()
	}
	return r
}

// isHeavy says whether an answer to a call may take more than a moment: whether
// values, which a call brings, decide how much there is to evaluate.
func (e *Evaluator) isHeavy(c Call) bool {
	return e.heavyText(c.Contract) || slices.ContainsFunc(c.Terms, e.heavyText)
}

func (e *Evaluator) heavyText(text model.Expr) bool {
	heavy, known := e.heavy[text]
	if !known {
		x, err := parser.ParseExpr("", string(text))
		heavy = err == nil && unfolds(x, false)
		e.heavy[text] = heavy
	}
	return heavy
}

// unfolds says whether an expression makes more than is written: by a for clause, a
// function or a multiplication. What stands under an if clause was not evaluated
// when the expression was written, so that there disjunctions may also multiply.
func unfolds(n ast.Node, conditional bool) (found bool) {
	ast.Walk(n, func(n ast.Node) bool {
		if found {
			return false
		}
		switch n := n.(type) {
		case *ast.Comprehension:
			found = slices.ContainsFunc(n.Clauses, func(c ast.Clause) bool {
				_, loops := c.(*ast.ForClause)
				return loops || unfolds(c, conditional)
			}) || unfolds(n.Value, true)
			return false
		case *ast.CallExpr:
			found = !isValidator(n.Fun)
		case *ast.BinaryExpr:
			found = n.Op == token.MUL || conditional && n.Op == token.AND
		case *ast.EmbedDecl:
			_, plain := n.Expr.(*ast.StructLit)
			found = conditional && !plain
		}
		return !found
	}, nil)
	return found
}

// isValidator says whether a function takes no longer than it takes to read its
// arguments.
func isValidator(f ast.Expr) bool {
	switch f := f.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"close", "len", "and", "or", "div", "mod", "quo", "rem", "matchN", "matchIf"}, f.Name)
	case *ast.SelectorExpr:
		pkg, ok := f.X.(*ast.Ident)
		name, _, err := ast.LabelName(f.Sel)
		if !ok || err != nil {
			return false
		}
		return slices.Contains([]string{"net", "time", "regexp", "uuid"}, pkg.Name) ||
			strings.HasPrefix(name, "Min") || strings.HasPrefix(name, "Max") || strings.HasPrefix(name, "Has") ||
			slices.Contains([]string{"UniqueItems", "Contains", "ToLower", "ToUpper", "TrimSpace"}, name)
	}
	return false
}
