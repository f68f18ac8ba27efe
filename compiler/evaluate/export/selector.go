package export

import (
	"fmt"

	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// selectors compiles selectors, and rejects values that have no meaning in a selector.
type selectors struct{ *reader }

// checkOneFile warns about a selector that several files write independently. The selector is
// the conjunction of all of them, so that each file narrows the others. Conjuncts from
// templates and definitions do not count, nor do repeated or empty ones.
func (x *selectors) checkOneFile(ref model.Ref) {
	if strings.Contains(ref.Path, "[") {
		return // CUE does not unify lists of different elements
	}
	var files, texts []string
	d := diag.New(diag.SeveralFiles, "").On(ref.String())
	for _, f := range x.Declared(
		append([]string{ref.Collection, ref.Name}, strings.Split(ref.Path, ".")...)) {
		text, err := cuevalue.WriteWithoutComments(f.Value)
		at := x.Position(f.Pos())
		if err != nil || at.IsZero() || text == "{}" || text == "_" || slices.Contains(texts, text) {
			continue
		}
		texts = append(texts, text)
		if !slices.Contains(files, at.File) {
			files = append(files, at.File)
		}
		d = d.In(at, "")
	}
	if len(files) > 1 {
		d.Message = fmt.Sprintf("%s of %s is written in %d files, and selects only what all "+
			"of them select", ref.Path, ref.Name, len(files))
		x.Report(d.Hinting("write it in one file, or give what is another's a name of its own"))
	}
}

// checkPatterns rejects invalid regular expressions: CUE only reports them when it matches a
// string.
func (x *scope) checkPatterns(v cue.Value, ref model.Ref, code diag.Code) bool {
	e, err := cuevalue.Syntax(v)
	if err != nil {
		return true // the user of the syntax reports it
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
				x.Fail(ref, diag.New(code, fmt.Sprintf("the regular expression %s cannot be read: %s",
					lit.Value, strings.TrimPrefix(err.Error(), "error parsing regexp: "))).
					Hinting("the syntax is that of https://github.com/google/re2/wiki/Syntax"))
			}
		}
		return true
	}, nil)
	return ok
}

// selector compiles a selector. It uses the syntax that CUE exports, in which references, lets
// and or() are resolved, and disjunctions are distributed. The value itself also contains the
// schema's conjuncts. labels reports whether labels are a struct of their own among the facts.
func (x *selectors) selector(v cue.Value, ref model.Ref, labels bool) (model.Selector, bool) {
	x.noteAll(v, ref)
	x.checkOneFile(ref)
	if v.Validate() != nil {
		return model.Selector{Op: model.OpNone}, false // check has reported it
	}
	if !x.checkSelector(v, ref, labels) {
		return model.Selector{Op: model.OpNone}, false
	}
	e, err := cuevalue.Syntax(v, cue.Final(), cue.Optional(true))
	if err == nil {
		var s model.Selector
		if s, err = compile(e); err == nil {
			return s, true
		}
	}
	x.Fail(ref, diag.New(diag.BadSelector, fmt.Sprintf("the selector cannot be used: %v", err)))
	return model.Selector{Op: model.OpNone}, false
}

// optional compiles the selector in a field. A missing field selects everything.
func (x *selectors) optional(v cue.Value, ref model.Ref, name string, labels bool) (model.Selector,
	bool) {
	of := cuevalue.Field(v, name)
	if !of.Exists() {
		return model.Selector{Op: model.OpAll}, true
	}
	return x.selector(of, ref.At(name), labels)
}

// clusters compiles the field clusters, a selector of clusters. It returns nil if the field is
// missing or selects all clusters.
func (x *selectors) clusters(v cue.Value, ref model.Ref) (*model.Selector, bool) {
	s, ok := x.optional(v, ref, "clusters", true)
	if s.Op == model.OpAll {
		return nil, ok
	}
	return &s, ok
}

// checkSelector rejects values that have no meaning in a selector. The exported syntax lacks
// pattern fields, and an exported default would replace its constraint. Facts are strings, some
// of which write a number, so no fact can satisfy other constraints. labels reports whether the
// selector has its labels in a struct of their own.
func (x *selectors) checkSelector(v cue.Value, ref model.Ref, labels bool) bool {
	if cuevalue.IsUnknown(v) {
		x.unknown(v, ref)
		return false
	}
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true), cue.Hidden(true),
		cue.Definitions(true))
	if err != nil || v.IncompleteKind() != cue.StructKind {
		return x.checkDefault(v, ref)
	}
	ok := true
	for it.Next() {
		if kind := it.Selector().LabelType(); kind == cue.HiddenLabel || kind == cue.DefinitionLabel ||
			kind == cue.HiddenDefinitionLabel {
			name := it.Selector().String()
			if cuevalue.IsUsed(name, cuevalue.SourceNodes(v)) {
				continue // other constraints share it
			}
			x.Fail(ref, x.At(diag.New(diag.BadSelector, name+" is hidden, and selects nothing").
				Hinting("write "+strings.TrimLeft(name, "_#")+", or quote the name if it begins so"),
				it.Value()))
			ok = false
			continue
		}
		if it.FieldType()&cue.PatternConstraint != 0 {
			if s, err := cuevalue.Syntax(it.Value()); err == nil {
				if text, err := cuevalue.Write(s); err == nil && text == "_" {
					continue // the schema's own
				}
			}
			x.Fail(ref, diag.New(diag.BadSelector, "a selector cannot have pattern fields").
				Hinting("write each label by its name, with ? where it may be absent"))
			ok = false
			continue
		}
		name := it.Selector().Unquoted()
		if labels && name == "labels" {
			ok = x.checkSelector(it.Value(), ref.At(name), false) && ok
		} else {
			ok = x.checkFact(it.Value(), ref.At(model.Label(name)), name) && ok
		}
	}
	return ok
}

// checkFact rejects an unusable constraint on one fact.
func (x *selectors) checkFact(v cue.Value, ref model.Ref, name string) bool {
	kind := v.IncompleteKind()
	switch {
	case cuevalue.IsUnknown(v):
		x.unknown(v, ref)
		return false
	case kind == cue.StructKind && ref.Collection == "inventories" &&
		ref.Path == "where."+model.Label(name):
		field := "field"
		for first := range cuevalue.Fields(v) {
			field = first
			break
		}
		x.Fail(ref, diag.New(diag.BadSelector, name+" is a column, and can never be a struct").
			Hinting(fmt.Sprintf("write the path of the field: where: %q: …", name+"."+field)))
		return false
	case slices.Contains([]string{"labels", "matchLabels", "matchExpressions"}, name) &&
		kind&(cue.StructKind|cue.ListKind) != 0 && kind != cue.BottomKind:
		x.Fail(ref, diag.New(diag.BadSelector,
			"a match names labels directly, without "+name).Hinting(shape.Selecting(name, "match: ")))
		return false
	case kind&(cue.StringKind|cue.NumberKind) == 0 && kind != cue.BottomKind:
		hint := "facts and labels are strings"
		if name == "clusters" && kind == cue.StructKind {
			hint = "what selects single clusters is beside this selector: clusters: labels: …"
		}
		if text, err := v.MarshalJSON(); err == nil && kind == cue.BoolKind {
			hint = fmt.Sprintf("write it as a string: %q", text)
		}
		x.Fail(ref, diag.New(diag.BadSelector, fmt.Sprintf("%s is a string, and can never be %s", name,
			shape.Article(kind.String()))).Hinting(hint))
		return false
	}
	return x.checkDefault(v, ref) && x.checkPatterns(v, ref, diag.BadSelector)
}

func (x *selectors) checkDefault(v cue.Value, ref model.Ref) bool {
	if v.IsConcrete() {
		return true
	}
	if !cuevalue.MarksDefault(v) {
		return true
	}
	hint := `write the constraint without *: "a" | "b"`
	if e, err := parser.ParseExpr("", fmt.Sprintf("%v", v)); err == nil {
		if text, err := cuevalue.Write(e); err == nil && strings.Contains(text, "*") && len(text) < 80 {
			hint = "write the constraint without *: " + strings.ReplaceAll(text, "*", "")
		}
	}
	x.Fail(ref, diag.New(diag.BadSelector, "a selector cannot have defaults").Hinting(hint))
	return false
}

// compile turns the syntax of a selector, or of a constraint in it, into a predicate.
func compile(e ast.Expr) (model.Selector, error) {
	switch e := e.(type) {
	case *ast.StructLit:
		all := model.Selector{Op: model.OpAll}
		for _, d := range e.Elts {
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
	case *ast.ParenExpr:
		return compile(e.X)
	case *ast.BinaryExpr:
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
			return model.Selector{Op: model.OpOr, Args: append(flat(model.OpOr, x), flat(model.OpOr, y)...)},
				nil
		}
		return model.Selector{}, fmt.Errorf("%s is no constraint", e.Op)
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

// both returns the conjunction, simplified. An absent field has the constraint `_ & _|_`.
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

func compileField(d *ast.Field) (model.Selector, error) {
	name, isIdent, err := ast.LabelName(d.Label)
	if err != nil {
		return model.Selector{}, fmt.Errorf("a field name that is not known: %w", err)
	}
	if isIdent && (strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#")) {
		return model.Selector{Op: model.OpAll}, nil // hidden fields are the user's own business
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
