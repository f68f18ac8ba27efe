package evaluate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// isUnknown says whether CUE could not finish a value because something that it
// depends on is not concrete. Validate says nothing of it and Fields leaves out
// what is unknown: whoever does not ask loses it.
func isUnknown(v cue.Value) bool {
	return v.IncompleteKind() == cue.BottomKind && v.Validate() == nil && v.Err() != nil
}

// unknown reports that a part of an entity is unknown.
func (x *reader) unknown(v cue.Value, ref model.Ref) {
	code, what := diag.NotConcrete, ref.Path+" has no value"
	if isStruct(v) {
		if code, what = diag.Incomplete, "which fields "+ref.Path+" has is not known"; ref.Path == "" {
			what = "which fields " + ref.Name + " has is not known"
		}
	}
	d := diag.New(code, what).On(ref.String())
	if all := problemsIn(x.places, v.Err()); len(all) > 0 {
		d = x.because(d, all[0], sourceNodes(v)) // the others follow from it
	}
	x.fail(ref, d)
}

// unknownParts reports every unknown part of a value, and those of type bytes,
// which is not data either. It returns whether there are none.
func (x *reader) unknownParts(v cue.Value, ref model.Ref) bool {
	if isUnknown(v) {
		x.unknown(v, ref)
		return false
	}
	ok := true
	switch {
	case isBytes(v):
		x.note(v, ref)
		x.fail(ref, diag.New(diag.Bytes, fmt.Sprintf("%s is of type bytes", ref.Path)).
			Hinting("write a string, for instance with base64.Encode"))
		ok = false
	case v.Kind() == cue.StructKind:
		for name, of := range fields(v) {
			ok = x.unknownParts(of, ref.At(model.Label(name))) && ok
		}
	case v.Kind() == cue.ListKind:
		it, err := v.List()
		for i := 0; err == nil && it.Next(); i++ {
			ok = x.unknownParts(it.Value(), ref.At(fmt.Sprintf("[%d]", i))) && ok
		}
	}
	return ok
}

func isBytes(v cue.Value) bool {
	return v.IncompleteKind() == cue.BytesKind
}

// isStruct says whether an unknown value is written as a struct.
func isStruct(v cue.Value) bool {
	return slices.ContainsFunc(sourceNodes(v), func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			n = f.Value
		}
		_, ok := n.(*ast.StructLit)
		return ok
	})
}

// because adds to a diagnostic what it is that has no value: the fields that CUE
// points to, or else what it says.
func (x *reader) because(d diag.Diagnostic, o problem, in []ast.Node) diag.Diagnostic {
	var names []string
	var uses, declared []model.Position
	slices.SortFunc(o.at, model.Position.Compare)
	for _, at := range o.at {
		switch name, isField := x.fieldAt(at); {
		case !isField || x.isOf(at, in):
			uses = append(uses, at)
		case !slices.Contains(names, name):
			names, declared = append(names, name), append(declared, at)
		}
	}
	if len(names) > 0 {
		verb := "has"
		if len(names) > 1 {
			verb = "have"
		}
		d.Message += fmt.Sprintf(": %s %s no value", strings.Join(names, " and "), verb)
		d = d.Hinting("give " + strings.Join(names, " and ") + " a value, or a default with *…|…")
	} else {
		why, hint := reason(o.messages[0])
		d.Message += ": " + why
		d = d.Hinting(hint)
	}
	uses = append(uses, x.all(comprehensions(in, names))...)
	slices.SortFunc(uses, model.Position.Compare)
	for _, at := range slices.Compact(uses) {
		d = d.In(at, "")
	}
	for i, at := range declared {
		d = d.In(at, names[i]+" is declared here")
	}
	return d
}

// failed matches errors that more values would not heal.
var failed = regexp.MustCompile(`division by zero|index out of range|invalid operands`)

// reason says in plain words why CUE could not finish a value, and the way out.
func reason(message string) (why, hint string) {
	message = strings.TrimPrefix(message, "invalid interpolation: ")
	if name, ok := strings.CutPrefix(message, "undefined field: "); ok {
		if near := diag.Nearest(name, factNames()); near != "" {
			return "there is no field " + name, "did you mean " + near + "?"
		}
		return "there is no field " + name, "correct the reference, or declare " + name
	}
	if name, ok := strings.CutPrefix(message, "cannot reference optional field: "); ok {
		return name + " may be absent", "give " + name + " a value, or use it only where it is present: if " + name + " != _|_"
	}
	if of, ok := strings.CutPrefix(message, "unresolved disjunction "); ok {
		return "it may be any of " + plain(of), "choose one, or mark a default with *"
	}
	if message == "structural cycle" {
		return "it contains itself", "remove the reference"
	}
	if field, ok := strings.CutPrefix(message, "cycle with field: "); ok {
		return "it depends on itself, by way of " + field, "give one of the fields in the circle a value"
	}
	if message == "explicit error (_|_ literal) in source" {
		return "it is the error _|_", ""
	}
	if failed.MatchString(message) {
		return plain(message), ""
	}
	return plain(message), "give what it depends on a value"
}

// fieldAt returns the name of the field whose constraint is written at a position.
func (p *places) fieldAt(at model.Position) (string, bool) {
	name := ""
	for _, f := range p.files {
		if p.relative(f.Filename) != at.File {
			continue
		}
		ast.Walk(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && isConstraint(field.Value) && p.of(field.Value.Pos()) == at {
				name, _, _ = ast.LabelName(field.Label)
			}
			return name == ""
		}, nil)
	}
	return name, name != ""
}

// isConstraint says whether an expression may be what has no value: a type, a
// bound or an operation, and no literal.
func isConstraint(e ast.Expr) bool {
	switch e.(type) {
	case *ast.Ident, *ast.BinaryExpr, *ast.UnaryExpr, *ast.ParenExpr, *ast.CallExpr:
		return true
	}
	return false
}

// isOf says whether a position is that of a field's expression.
func (p *places) isOf(at model.Position, fields []ast.Node) bool {
	return slices.ContainsFunc(fields, func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		return ok && p.of(f.Value.Pos()) == at
	})
}

// contain says whether a position is inside syntax.
func (p *places) contain(at model.Position, nodes []ast.Node) bool {
	return slices.ContainsFunc(nodes, func(n ast.Node) bool {
		first, last := p.of(n.Pos()), p.of(n.End())
		return first.File == at.File && first.Compare(at) <= 0 && at.Compare(last) <= 0
	})
}

// comprehensions returns where comprehensions that mention one of the names
// stand in syntax, but not inside fields of it.
func comprehensions(nodes []ast.Node, names []string) []token.Pos {
	var out []token.Pos
	for _, n := range nodes {
		if f, ok := n.(*ast.Field); ok {
			n = f.Value
		}
		ast.Walk(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				return false
			case *ast.Comprehension:
				if slices.ContainsFunc(n.Clauses, func(c ast.Clause) bool { return mentionsName(c, names) }) {
					out = append(out, n.Pos())
				}
			}
			return true
		}, nil)
	}
	return out
}

func mentionsName(n ast.Node, names []string) bool {
	found := false
	ast.Walk(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && slices.Contains(names, id.Name) {
			found = true
		}
		return !found
	}, nil)
	return found
}
