package export

import (
	"fmt"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// valueFields are the parts of a config with platform values.
var valueFields = []string{"values", "defaults", "overrides"}

// trees exports platform values, which may be open.
type trees struct{ *reader }

// trees exports the three parts of a config that hold values.
func (x *trees) trees(v cue.Value, ref model.Ref) (values, defaults, overrides model.Tree) {
	before := len(x.Diagnostics)
	for i, into := range []*model.Tree{&values, &defaults, &overrides} {
		f := cuevalue.Field(v, valueFields[i])
		if !f.Exists() {
			continue
		}
		at := ref.At(valueFields[i])
		*into = x.tree(f, at)
		if valueFields[i] != "values" {
			x.finalOnly(*into, at)
		}
	}
	if len(x.Diagnostics) > before {
		return values, defaults, overrides
	}
	for i, t := range []model.Tree{values, defaults, overrides} {
		x.checkDependent(cuevalue.Field(v, valueFields[i]), t, ref.At(valueFields[i]),
			valueFields[i] == "defaults")
	}
	return values, defaults, overrides
}

// finalOnly reports leaves under defaults and overrides that are not data: these fields require
// values.
func (x *trees) finalOnly(t model.Tree, ref model.Ref) {
	switch t.Kind {
	case model.StructTree:
		for _, f := range t.Fields {
			x.finalOnly(f.Tree, ref.At(model.Label(f.Name)))
		}
	case model.OpenLeaf:
		x.Fail(ref, diag.New(diag.NotConcrete, ref.Path+" must be a value, and is "+t.Open.Text).
			Hinting("a constraint belongs under values"))
	}
}

// chartValues exports a workload's or a deployment target's values for a chart.
func (x *trees) chartValues(v cue.Value, ref model.Ref) (c model.ChartValues, ok bool) {
	helm := cuevalue.Field(cuevalue.Field(v, "manifests"), "helm")
	if !helm.Exists() {
		return c, true
	}
	before := len(x.Diagnostics)
	at := ref.At("manifests.helm")
	if values := cuevalue.Field(helm, "values"); values.Exists() {
		c.Values = x.tree(values, at.At("values"))
	}
	if defaults := cuevalue.Field(helm, "defaults"); defaults.Exists() {
		c.Defaults = x.tree(defaults, at.At("defaults"))
		x.finalOnly(c.Defaults, at.At("defaults"))
	}
	return c, !diag.Errors(x.Diagnostics[before:])
}

// tree exports platform values as a tree whose leaves are final or open. It reports leaves that
// cannot be a value.
func (x *trees) tree(v cue.Value, ref model.Ref) model.Tree {
	x.note(v, ref)
	if v.Kind() == cue.StructKind && !expr.IsSecret(v) && cuevalue.IsPlainStruct(v) {
		var out []model.TreeField
		for name, of := range cuevalue.Fields(v) {
			out = append(out, model.TreeField{Name: name, Tree: x.tree(of, ref.At(model.Label(name)))})
		}
		return model.StructTreeOf(out...)
	}
	if expr.IsFinal(v) {
		before := len(x.Diagnostics)
		value, ok := x.data(v, ref)
		if !ok {
			if len(x.Diagnostics) == before {
				x.Fail(ref, diag.New(diag.NotConcrete, ref.Path+" has no value"))
			}
			return model.Tree{}
		}
		return model.Tree{Kind: model.FinalLeaf, Final: value}
	}
	if !x.unknownParts(v, ref) || !x.checkPatterns(v, ref, diag.WrongValue) {
		return model.Tree{}
	}
	open, err := x.open(v)
	if err != nil {
		x.Fail(ref, diag.New(diag.NotConcrete,
			fmt.Sprintf("%s cannot be used as a value: %v", ref.Path, err)))
		return model.Tree{}
	}
	return model.Tree{Kind: model.OpenLeaf, Open: open}
}

// open exports a leaf that is not final.
func (x *trees) open(v cue.Value) (*model.Open, error) {
	e, text, err := cuevalue.SyntaxText(v)
	if err != nil {
		return nil, err
	}
	constraint, err := cuevalue.Write(expr.WithoutDefaults(e))
	if err != nil {
		return nil, err
	}
	open := &model.Open{Constraint: model.Expr(constraint), Text: text}
	if d, _ := v.Default(); expr.IsFinal(d) {
		quiet := &reader{&scope{x.Package, finding.New()}}
		if value, ok := quiet.data(d, model.Ref{}); ok {
			open.Default = &value
		}
	}
	return open, nil
}

// checkDependent reports values that refer to a value of their config that is not final.
// Configs are composed leaf by leaf, so the reference would keep the config's own value,
// although CUE would use the composed value.
//
// all reports whether all values are open, as under defaults.
func (x *trees) checkDependent(v cue.Value, t model.Tree, ref model.Ref, all bool) {
	if !all && !isOpenTree(t) {
		return
	}
	d := &dependents{Set: x.Set, tree: t, ref: ref, all: all, seen: map[string]bool{}}
	e, err := cuevalue.Definition(v)
	if err == nil {
		d.walk(e, nil, nil)
		return
	}
	for _, n := range cuevalue.SourceNodes(v) { // use the source if CUE cannot write the value
		if f, ok := n.(*ast.Field); ok {
			n = f.Value
		}
		if e, ok := n.(ast.Expr); ok {
			d.walk(e, nil, nil)
		}
	}
}

// dependents walks the syntax of a config's values. In this syntax, references to the outside
// are resolved, and references inside the values are not.
type dependents struct {
	*finding.Set
	tree model.Tree
	ref  model.Ref
	all  bool // every value is open
	seen map[string]bool
}

// block is a struct that an identifier may refer into.
type block struct {
	lit  *ast.StructLit
	path []string
	up   *block
}

func (d *dependents) walk(e ast.Expr, path []string, in *block) {
	switch e := e.(type) {
	case *ast.StructLit:
		d.walkStruct(e, path, &block{e, path, in})
	case *ast.SelectorExpr:
		// CUE's exporter writes a definition that is used as a let, DB.#x.
		if id, ok := e.X.(*ast.Ident); ok {
			if body, at := in.let(id.Name); body != nil {
				d.walk(memberOf(body, e.Sel), path, at)
				return
			}
		}
		d.references(e, path, in)
	case *ast.BinaryExpr:
		d.walk(e.X, path, in)
		d.walk(e.Y, path, in)
	case *ast.ParenExpr:
		d.walk(e.X, path, in)
	case *ast.UnaryExpr:
		d.walk(e.X, path, in)
	case nil:
	default:
		d.references(e, path, in)
	}
}

func (d *dependents) walkStruct(lit *ast.StructLit, path []string, in *block) {
	for _, decl := range lit.Elts {
		switch decl := decl.(type) {
		case *ast.Field:
			at := path
			if name, _, err := ast.LabelName(decl.Label); err == nil {
				at = append(path[:len(path):len(path)], name)
			} else {
				d.references(decl.Label, path, in)
			}
			d.walk(decl.Value, at, in)
		case *ast.EmbedDecl:
			d.walk(decl.Expr, path, in)
		case *ast.Comprehension:
			for _, c := range decl.Clauses {
				d.references(c, path, in)
			}
			d.walk(decl.Value, path, in)
		}
	}
}

// references reports the references to open values below a node.
func (d *dependents) references(n ast.Node, path []string, in *block) {
	ast.Walk(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			id, names := chain(n)
			if id != nil {
				d.refers(id.Name, names, path, in)
			}
			return id == nil
		case *ast.Ident:
			d.refers(n.Name, nil, path, in)
		case *ast.Field:
			return false // its label is not a reference
		}
		return true
	}, nil)
}

func (d *dependents) refers(name string, names, from []string, in *block) {
	target := in.find(name)
	if target == nil {
		return // of CUE itself, or of a let, whose references are not followed
	}
	target = append(target, names...)
	t, path := d.tree, ""
	for _, n := range target {
		next, ok := t.Field(n)
		if !ok {
			break
		}
		t, path = next, model.JoinPath(path, model.Label(n))
	}
	if path == "" || !d.all && !isOpenTree(t) {
		return
	}
	at := pathOf(from)
	if d.seen[at+" "+path] || at == path {
		return
	}
	d.seen[at+" "+path] = true
	what := at
	if what == "" {
		what = "which values there are"
	}
	d.Fail(d.ref.At(at), diag.New(diag.OpenReference,
		fmt.Sprintf("%s depends on %s, which other configs may still change", what, path)).
		At(d.ref.At(at), "").At(d.ref.At(path), "is not final").
		Hinting("give "+path+" one final value here, or give both in the configs that decide them; a "+
			"let holds what several values share"))
}

func pathOf(names []string) string {
	path := ""
	for _, n := range names {
		path = model.JoinPath(path, model.Label(n))
	}
	return path
}

// find returns the path of the field that an identifier refers to.
func (s *block) find(name string) []string {
	for ; s != nil; s = s.up {
		for _, decl := range s.lit.Elts {
			switch decl := decl.(type) {
			case *ast.Field:
				if label, _, err := ast.LabelName(decl.Label); err == nil && label == name {
					return append(s.path[:len(s.path):len(s.path)], name)
				}
			case *ast.LetClause:
				if decl.Ident.Name == name {
					return nil
				}
			}
		}
	}
	return nil
}

// let returns the value of a let clause in scope, and the block of the clause.
func (s *block) let(name string) (ast.Expr, *block) {
	for ; s != nil; s = s.up {
		for _, decl := range s.lit.Elts {
			if l, ok := decl.(*ast.LetClause); ok && l.Ident.Name == name {
				return l.Expr, s
			}
		}
	}
	return nil, nil
}

// memberOf returns a field's value of a struct literal. It returns nil if there is no such
// field.
func memberOf(e ast.Expr, sel ast.Label) ast.Expr {
	lit, _ := e.(*ast.StructLit)
	want, _, err := ast.LabelName(sel)
	if f := cuevalue.MemberOf(lit, want); f != nil && err == nil {
		return f.Value
	}
	return nil
}

// chain splits a selector such as a.b.c. It returns nil if the selector does not begin with an
// identifier.
func chain(e *ast.SelectorExpr) (*ast.Ident, []string) {
	name, _, err := ast.LabelName(e.Sel)
	if err != nil {
		return nil, nil
	}
	switch x := e.X.(type) {
	case *ast.Ident:
		return x, []string{name}
	case *ast.SelectorExpr:
		id, names := chain(x)
		return id, append(names, name)
	}
	return nil, nil
}

// isOpenTree reports whether some leaf is not final.
func isOpenTree(t model.Tree) bool {
	for _, f := range t.Fields {
		if isOpenTree(f.Tree) {
			return true
		}
	}
	return t.Kind == model.OpenLeaf
}
