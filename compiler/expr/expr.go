// Package expr evaluates CUE expressions after the package that they were
// written in is gone: constraints of selectors, open leaves of configs, and
// contracts.
//
// The inputs are text and data, and the outputs are data and problems. No CUE value leaves the
// package.
//
// For example, the workload hello-world of examples/hello-world requires the constraint
// =~"^mysql://" of DATABASE_URL. The value "mysql://east.example.com:3306/hello" has no
// problems. The value "east.example.com" has a problem at the path DATABASE_URL.
package expr

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// Call is a question: the unification of all its parts.
type Call struct {
	// Terms are expressions that unify with each other. None of them closes the result.
	Terms []model.Expr
	// Contract, if set, may close itself. All other parts must fit into it.
	Contract model.Expr
	// Value, if set, unifies with the other parts.
	Value *model.Value
}

// Result is the answer: the value, or the problems that prevent one.
type Result struct {
	Value    model.Value // with problems, the fields of a struct that have a value
	Problems []Problem   // empty if there is a value; sorted by path
}

// Problem is a problem at one path, with all of CUE's messages about it.
type Problem struct {
	Path    string // a CUE path in the value
	Message string
	// Missing reports whether the path has no value, as opposed to a wrong one.
	Missing bool
	// Unknown reports whether the path is not allowed.
	Unknown bool
	// Unbounded reports whether the call had no answer, because it would take too much time or
	// memory.
	Unbounded bool
	// Allowed are the allowed strings, if the value had to be one of several strings.
	Allowed []string
	// Elements are the elements of Path.
	Elements []string
}

// Evaluator answers calls. It caches contracts and structs. Only one goroutine may use it.
type Evaluator struct {
	ctx       *cue.Context
	contracts map[model.Expr]cue.Value
	structs   map[string]*Struct // by their text; nil if it is not a struct
	heavy     map[model.Expr]bool
	numeric   map[model.Expr]bool // constraints that only numbers satisfy
	elsewhere *Elsewhere
}

// New returns an Evaluator that delegates slow calls to elsewhere. If elsewhere is nil, the
// Evaluator answers every call itself.
func New(elsewhere *Elsewhere) *Evaluator {
	return &Evaluator{
		ctx: cuecontext.New(), contracts: map[model.Expr]cue.Value{}, structs: map[string]*Struct{},
		heavy: map[model.Expr]bool{}, numeric: map[model.Expr]bool{}, elsewhere: elsewhere,
	}
}

// Eval answers calls, in their order.
func (e *Evaluator) Eval(calls []Call) []Result {
	out := make([]Result, len(calls))
	for i, c := range calls {
		out[i] = e.answer(c)
	}
	return out
}

func (e *Evaluator) answer(c Call) Result {
	if e.elsewhere != nil && e.isHeavy(c) {
		return e.elsewhere.eval(c)
	}
	return e.guarded(func() Result { return e.eval(c) })
}

// guarded calls ask, which uses CUE. If CUE panics, guarded returns the panic as a problem of
// the call.
func (e *Evaluator) guarded(ask func() Result) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			e.ctx, e.contracts, e.structs = cuecontext.New(), map[model.Expr]cue.Value{},
				map[string]*Struct{}
			r = Result{Problems: []Problem{{Message: fmt.Sprintf("CUE fails by a mistake of its own: %v",
				p)}}}
		}
	}()
	return ask()
}

// decimal matches the text of a number as CUE writes it.
var decimal = lazyregexp.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// Satisfies reports whether a string satisfies a constraint. A constraint on numbers applies to
// the number that the string writes in decimal. It never holds for any other string.
func (e *Evaluator) Satisfies(constraint model.Expr, s string) bool {
	v := model.StringOf(s)
	if e.isOfNumbers(constraint) {
		n, err := model.NumberOf(s)
		if err != nil || !decimal.MatchString(s) {
			return false
		}
		v = n
	}
	return len(e.answer(Call{Terms: []model.Expr{constraint}, Value: &v}).Problems) == 0
}

// isOfNumbers reports whether only numbers can satisfy a constraint.
func (e *Evaluator) isOfNumbers(constraint model.Expr) bool {
	of, known := e.numeric[constraint]
	if known || e.elsewhere != nil && e.isHeavy(Call{Terms: []model.Expr{constraint}}) {
		return of
	}
	e.guarded(func() Result {
		if x, err := parser.ParseExpr("", string(constraint)); err == nil {
			kind := e.ctx.BuildExpr(x, cue.InferBuiltins(true)).IncompleteKind()
			of = kind != cue.BottomKind && kind&^cue.NumberKind == 0
		}
		return Result{}
	})
	e.numeric[constraint] = of
	return of
}

func (e *Evaluator) eval(c Call) Result {
	var all ast.Expr
	and := func(x ast.Expr) {
		if all == nil {
			all = x
		} else {
			all = &ast.BinaryExpr{X: all, Op: token.AND, Y: x}
		}
	}
	if c.Value != nil {
		and(Literal(*c.Value))
	}
	for _, t := range c.Terms {
		x, err := parser.ParseExpr("", string(t))
		if err != nil {
			return failed(err)
		}
		and(&ast.ParenExpr{X: x})
	}
	v, err := e.unify(all, c.Contract)
	if err != nil {
		return failed(err)
	}
	if err := v.Validate(cue.Concrete(true), cue.Final()); err != nil {
		out := Result{Value: partial(v), Problems: problems(err)}
		if c.Contract != "" && c.Value != nil {
			out.Problems = e.andMissing(c, out.Problems)
		}
		return out
	}
	data, err := Data(v)
	if err != nil {
		return failed(err)
	}
	return Result{Value: data}
}

func (e *Evaluator) unify(all ast.Expr, contract model.Expr) (cue.Value, error) {
	var v cue.Value
	if all != nil {
		v = e.ctx.BuildExpr(all, cue.InferBuiltins(true))
	}
	if contract == "" {
		return v, nil
	}
	c, err := e.contract(contract)
	if err != nil {
		return v, err
	}
	// Unify keeps the effect of close(), and `&` in one expression does not.
	return c.Unify(v), nil
}

// andMissing adds the missing fields of a contract to the problems. CUE reports missing fields
// only if there are no other problems, so andMissing evaluates the call again without the
// values at fault.
func (e *Evaluator) andMissing(c Call, problems []Problem) []Problem {
	atFault := slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return p.Missing })
	if len(atFault) == 0 {
		return problems
	}
	rest := *c.Value
	for _, p := range atFault {
		rest = without(rest, p.Elements)
	}
	if rest.Equal(*c.Value) {
		return problems
	}
	for _, p := range e.eval(Call{Terms: c.Terms, Contract: c.Contract, Value: &rest}).Problems {
		known := slices.ContainsFunc(problems, func(q Problem) bool {
			n := min(len(p.Elements), len(q.Elements))
			return slices.Equal(p.Elements[:n], q.Elements[:n])
		})
		if p.Missing && !known {
			problems = append(problems, p)
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return problems
}

// without returns a struct without the field at a path, or the list around it.
func without(v model.Value, path []string) model.Value {
	if len(path) == 0 || v.Kind() != model.Struct {
		return v
	}
	var fields []model.Field
	for _, f := range v.Fields() {
		if f.Name == path[0] {
			if len(path) == 1 || f.Value.Kind() != model.Struct {
				continue
			}
			f.Value = without(f.Value, path[1:])
		}
		fields = append(fields, f)
	}
	return model.StructOf(fields...)
}

func (e *Evaluator) contract(text model.Expr) (cue.Value, error) {
	if v, ok := e.contracts[text]; ok {
		return v, nil
	}
	x, err := parser.ParseExpr("", string(text))
	if err != nil {
		return cue.Value{}, err
	}
	v := e.ctx.BuildExpr(x, cue.InferBuiltins(true))
	// CUE ignores an error in an argument of matchN, such as !{}, the first time it checks a
	// value against matchN, but not later. This first check makes the answer independent of the
	// order of calls.
	_ = v.Unify(e.ctx.BuildExpr(ast.NewStruct())).Validate()
	e.contracts[text] = v
	return v, nil
}

func failed(err error) Result { return Result{Problems: []Problem{{Message: err.Error()}}} }

var (
	emptyDisjunction = lazyregexp.New(`^\d+ errors in empty disjunction`)
	conflicting      = lazyregexp.New(
		`^conflicting values ("(?:[^"\\]|\\.)*") and ("(?:[^"\\]|\\.)*")$`)
)

// problems groups an error by path.
func problems(err error) []Problem {
	type group struct {
		Problem
		messages []string
	}
	var groups []group
	for _, e := range errors.Errors(err) {
		path := pathOf(e.Path())
		i := slices.IndexFunc(groups, func(g group) bool { return g.Path == path })
		if i < 0 {
			groups = append(groups, group{Problem: Problem{Path: path, Elements: names(e.Path())}})
			i = len(groups) - 1
		}
		format, args := e.Msg()
		message, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
		message = strings.TrimSuffix(message, ":")
		if !emptyDisjunction.MatchString(message) && !slices.Contains(groups[i].messages, message) {
			groups[i].messages = append(groups[i].messages, message)
		}
	}
	var out []Problem
	for _, g := range groups {
		p := g.Problem
		if len(g.messages) == 0 {
			g.messages = []string{"no alternative fits"}
		}
		p.Message = g.messages[0]
		p.Missing = strings.Contains(p.Message, "incomplete value") ||
			strings.Contains(p.Message, "required but not present")
		p.Unknown = strings.Contains(p.Message, "field not allowed")
		p.Allowed = allowed(g.messages)
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// allowed finds the alternatives in the lines of a failed disjunction. Each line has the given
// value and one alternative, so the given value is in all of them.
func allowed(messages []string) []string {
	count := map[string]int{}
	lines := 0
	var order []string
	for _, m := range messages {
		match := conflicting.FindStringSubmatch(m)
		if match == nil {
			continue
		}
		lines++
		for _, side := range match[1:] {
			if count[side]++; count[side] == 1 {
				order = append(order, side)
			}
		}
	}
	if lines < 2 {
		return nil
	}
	var out []string
	for _, side := range order {
		if count[side] < lines {
			out = append(out, strings.Trim(side, `"`))
		}
	}
	slices.Sort(out)
	return out
}

// names are the elements of the path of a CUE error, unquoted.
func names(path []string) []string {
	out := make([]string, len(path))
	for i, name := range path {
		out[i] = name
		if unquoted, err := literal.Unquote(name); err == nil && strings.HasPrefix(name, `"`) {
			out[i] = unquoted
		}
	}
	return out
}

// pathOf writes the path of a CUE error as a CUE path.
func pathOf(path []string) string {
	s := ""
	for i, name := range path {
		if name != "" && strings.Trim(name, "0123456789") == "" {
			s += "[" + name + "]"
			continue
		}
		s = model.JoinPath(s, model.Label(names(path)[i]))
	}
	return s
}

// Field is one field of a contract.
type Field struct {
	Name string
	// Optional reports whether the field may be absent.
	Optional bool
	// Constraint is the constraint on the field's value.
	Constraint model.Expr
	// Contract is a contract with only this field.
	Contract model.Expr
}

// Fields splits a contract into contracts on one field each, in the order of the contract. A
// value satisfies the contract if it is a struct and satisfies each of them. They also fill in
// the same values as the contract. Fields returns false if the contract is not a plain struct,
// if it has patterns, or if its fields may refer to each other.
func Fields(contract model.Expr) ([]Field, bool) {
	x, err := parser.ParseExpr("", string(contract))
	if err != nil {
		return nil, false
	}
	var p pieces
	if !p.add(x) || len(p.rest) > 0 || len(p.lets) > 0 || p.refers(x) {
		return nil, false
	}
	out := make([]Field, 0, len(p.names))
	for _, name := range p.names {
		f := p.fields[name]
		mark := "?"
		switch {
		case f.regular:
			mark = ""
		case f.required:
			mark = "!"
		}
		constraint := conjunction(f.terms)
		label := string(model.AppendJSONString(nil, name))
		out = append(out, Field{
			Name: name, Optional: mark == "?", Constraint: model.Expr(constraint),
			Contract: model.Expr("{" + label + mark + ": " + constraint + "\n}"),
		})
	}
	return slices.Clip(out), true
}
