package expr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/worker"
)

// Struct is an open leaf that is a struct, such as one with optional fields, split into parts.
// Unifying Regular, the constraints of Optional for fields that exist, and Rest yields the same
// constraint.
type Struct struct {
	Text     string     // of the whole
	Regular  model.Tree // a struct
	Optional []model.TreeField
	Required []string   // names among Optional that must exist
	Rest     model.Expr // patterns, as a struct; "" without patterns
}

// Split splits an open leaf into its parts. It returns false if the leaf is not a struct, or if
// its fields refer to each other. Then CUE must evaluate the leaf as a whole.
func (e *Evaluator) Split(text string) (*Struct, bool) {
	if !strings.Contains(text, "{") {
		return nil, false
	}
	s, seen := e.structs[text]
	if !seen {
		s = e.split(text)
		e.structs[text] = s
	}
	return s, s != nil
}

func (e *Evaluator) split(text string) *Struct {
	x, err := parser.ParseExpr("", text)
	if err != nil {
		return nil
	}
	var p pieces
	if !p.add(x) || p.refers(x) {
		return nil
	}
	out := &Struct{Text: text}
	var regular []model.TreeField
	for _, name := range p.names {
		f := p.fields[name]
		tree, ok := e.tree(p.withLets(conjunction(f.terms), f.terms...))
		if !ok {
			return nil
		}
		if f.required && !f.regular {
			out.Required = append(out.Required, name)
		}
		if f.regular {
			regular = append(regular, model.TreeField{Name: name, Tree: tree})
		} else {
			out.Optional = append(out.Optional, model.TreeField{Name: name, Tree: tree})
		}
	}
	out.Regular = model.StructTreeOf(regular...)
	if len(p.rest) > 0 {
		rest := &ast.StructLit{Elts: p.rest}
		out.Rest = model.Expr(p.withLets(string(textOf(rest)), rest))
	}
	return out
}

// pieces are the fields of a struct, collected from all its conjuncts.
type pieces struct {
	names  []string
	fields map[string]*piece
	rest   []ast.Decl
	lets   []*ast.LetClause // let clauses of CUE's exporter, for references
}

type piece struct {
	regular, required bool
	terms             []ast.Expr
}

// add collects the fields of an expression. It returns false if the expression is not a plain
// struct.
func (p *pieces) add(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return p.add(x.X)
	case *ast.BinaryExpr:
		return x.Op == token.AND && p.add(x.X) && p.add(x.Y)
	case *ast.StructLit:
		return !slices.ContainsFunc(x.Elts, func(d ast.Decl) bool { return !p.declare(d) })
	}
	return false
}

func (p *pieces) declare(d ast.Decl) bool {
	switch d := d.(type) {
	case *ast.Ellipsis:
		if d.Type != nil {
			p.rest = append(p.rest, d)
		}
		return true
	case *ast.EmbedDecl:
		return p.add(d.Expr)
	case *ast.Field:
		if d.Alias != nil {
			return false
		}
		if list, isList := d.Label.(*ast.ListLit); isList {
			if len(list.Elts) != 1 {
				return false
			}
			if _, named := list.Elts[0].(*ast.Alias); named {
				return false
			}
			p.rest = append(p.rest, d)
			return true
		}
		name, isIdent, err := ast.LabelName(d.Label)
		if err != nil || isIdent && (strings.HasPrefix(name, "#") || strings.HasPrefix(name, "_")) {
			return false
		}
		if p.fields == nil {
			p.fields = map[string]*piece{}
		}
		there := p.fields[name]
		if there == nil {
			there = &piece{}
			p.fields[name] = there
			p.names = append(p.names, name)
		}
		there.regular = there.regular || d.Constraint == token.ILLEGAL
		there.required = there.required || d.Constraint == token.NOT
		there.terms = append(there.terms, d.Value)
		return true
	case *ast.LetClause:
		p.lets = append(p.lets, d)
		return true
	}
	return false
}

// withLets adds the lets that expressions need to their text.
func (p *pieces) withLets(text string, all ...ast.Expr) string {
	needed := map[string]bool{}
	var need func(ast.Node)
	need = func(n ast.Node) {
		ast.Walk(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !needed[id.Name] {
				for _, l := range p.lets {
					if l.Ident.Name == id.Name {
						needed[id.Name] = true
						need(l.Expr)
					}
				}
			}
			return true
		}, nil)
	}
	for _, x := range all {
		need(x)
	}
	if len(needed) == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, l := range p.lets {
		if needed[l.Ident.Name] {
			fmt.Fprintf(&b, "let %s = %s\n", l.Ident.Name, textOf(l.Expr))
		}
	}
	fmt.Fprintf(&b, "(%s)\n}", text)
	return b.String()
}

// conjunction writes all of the terms.
func conjunction(terms []ast.Expr) string {
	if len(terms) == 1 {
		return string(textOf(terms[0]))
	}
	var out []string
	for _, t := range terms {
		text := string(textOf(t))
		if _, compound := t.(*ast.BinaryExpr); compound {
			text = "(" + text + ")"
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, " & ")
}

// refers reports whether an identifier in the expression has the name of one of its fields, and
// so may refer to the field.
func (p *pieces) refers(x ast.Expr) bool {
	labels := map[string]bool{}
	ast.Walk(x, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			if name, isIdent, err := ast.LabelName(f.Label); err == nil && isIdent {
				labels[name] = true
			}
		}
		return true
	}, nil)
	found := false
	var visit func(ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if _, _, err := ast.LabelName(n.Label); err != nil {
				ast.Walk(n.Label, visit, nil)
			}
			ast.Walk(n.Value, visit, nil)
			return false
		case *ast.SelectorExpr:
			ast.Walk(n.X, visit, nil)
			return false
		case *ast.Ident:
			found = found || labels[n.Name]
		}
		return true
	}
	ast.Walk(x, visit, nil)
	return found
}

// tree is one leaf of a split struct: final, or open. Nested structs are open leaves, and are
// split separately.
func (e *Evaluator) tree(text string) (model.Tree, bool) {
	open := &model.Open{Text: text}
	v, ok := e.build(open.Text)
	if !ok {
		return model.Tree{}, false
	}
	if isFinalLeaf(v) {
		if data, err := Data(v); err == nil {
			return model.Tree{Kind: model.FinalLeaf, Final: data}, true
		}
	}
	if d, has := v.Default(); has && isFinalLeaf(d) {
		if data, err := Data(d); err == nil {
			open.Default = &data
		}
	}
	var err error
	if open.Constraint, err = withoutDefaults(open.Text); err != nil {
		return model.Tree{}, false
	}
	return model.Tree{Kind: model.OpenLeaf, Open: open}, true
}

// build builds text that is known to parse.
func (e *Evaluator) build(text string) (cue.Value, bool) {
	x, err := parser.ParseExpr("", text)
	if err != nil {
		return cue.Value{}, false
	}
	return e.ctx.BuildExpr(x, cue.InferBuiltins(true)), true
}

// isFinalLeaf reports whether a value is a final leaf. A secret is the only struct that is a
// leaf: the fields of other structs are leaves themselves.
func isFinalLeaf(v cue.Value) bool {
	return (v.Kind() != cue.StructKind || IsSecret(v)) && IsFinal(v)
}

// withoutDefaults writes an expression without the marks of defaults.
func withoutDefaults(text string) (model.Expr, error) {
	x, err := parser.ParseExpr("", text)
	if err != nil {
		return "", err
	}
	return textOf(WithoutDefaults(x)), nil
}

func textOf(n ast.Node) model.Expr {
	b, err := format.Node(n, format.Simplify())
	if err != nil {
		panic("expr: an expression that does not print: " + err.Error())
	}
	return model.Expr(strings.TrimSpace(string(b)))
}

// Marked reports whether an open leaf marks a default for the whole leaf, and not only for a
// part of it. It holds for *[1] | [...int], but not for [...int] and [...{a: *1 | int}].
func Marked(text string) bool {
	x, err := parser.ParseExpr("", text)
	return err == nil && marked(x)
}

func marked(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return marked(x.X)
	case *ast.UnaryExpr:
		return x.Op == token.MUL
	case *ast.BinaryExpr:
		return (x.Op == token.OR || x.Op == token.AND) && (marked(x.X) || marked(x.Y))
	case *ast.StructLit: // with lets around an expression
		return slices.ContainsFunc(x.Elts, func(d ast.Decl) bool {
			e, ok := d.(*ast.EmbedDecl)
			return ok && marked(e.Expr)
		})
	}
	return false
}

// Elsewhere evaluates calls in workers. Such calls may take any time and memory, because other
// people may have written their expressions and chosen their values. Several Evaluators share
// one Elsewhere.
type Elsewhere struct {
	pool *worker.Pool

	mu     sync.Mutex
	beyond map[string]Result // by the call's expressions, without the value
}

// In returns an Elsewhere for a pool of workers, which know Handler under HandlerName. It
// returns nil if pool is nil. Evaluators then answer every call themselves.
func In(pool *worker.Pool) *Elsewhere {
	if pool == nil {
		return nil
	}
	return &Elsewhere{pool: pool, beyond: map[string]Result{}}
}

// HandlerName is the name under which workers answer calls.
const HandlerName = "expr"

// Handler returns the handler that answers calls in a worker.
func Handler() worker.Handler {
	return worker.Handle(func(c *Call) (Result, error) { return New(nil).answer(*c), nil })
}

// eval answers a call. If a call exceeded all bounds for one value, eval does not try its
// expressions with another value.
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

// isHeavy reports whether a call may take more than a moment. It may if the values of the call
// determine the amount of work.
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

// unfolds reports whether the value of an expression may be larger than its text, because of a
// for clause, a function or a multiplication. CUE did not evaluate expressions under an if
// clause when it wrote the expression, so a conjunction there may also multiply disjunctions.
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

// isValidator reports whether a function takes no more time than reading its arguments.
func isValidator(f ast.Expr) bool {
	switch f := f.(type) {
	case *ast.Ident:
		return slices.Contains(
			[]string{"close", "len", "and", "or", "div", "mod", "quo", "rem", "matchN", "matchIf"}, f.Name)
	case *ast.SelectorExpr:
		pkg, ok := f.X.(*ast.Ident)
		name, _, err := ast.LabelName(f.Sel)
		if !ok || err != nil {
			return false
		}
		return slices.Contains([]string{"net", "time", "regexp", "uuid"}, pkg.Name) ||
			strings.HasPrefix(name, "Min") || strings.HasPrefix(name, "Max") ||
			strings.HasPrefix(name, "Has") ||
			slices.Contains([]string{"UniqueItems", "Contains", "ToLower", "ToUpper", "TrimSpace"}, name)
	}
	return false
}
