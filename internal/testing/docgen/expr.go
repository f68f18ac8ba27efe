package docgen

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// shape describes the possible values of a field.
type shape struct {
	text   string         // Markdown; "" for a plain struct
	def    string         // the default, Markdown, or ""
	fields *ast.StructLit // the fields below, or nil
}

// shapeOf reads a constraint: `#Name & (*"default" | _)` is a #Name with a
// default.
func (w *writer) shapeOf(e ast.Expr) shape {
	e = unparen(e)
	switch x := e.(type) {
	case *ast.StructLit:
		if len(x.Elts) > 0 && !onlyEllipsis(x) {
			return shape{fields: x}
		}
	case *ast.ListLit:
		if inner := elementFields(x); inner != nil {
			return shape{text: "a list of structs", fields: inner}
		}
	case *ast.BinaryExpr:
		switch x.Op {
		case token.AND:
			return w.conjunction(operands(x, token.AND))
		case token.OR:
			return w.disjunction(operands(x, token.OR))
		}
	}
	if text, ok := condition(e); ok {
		return shape{text: "a string " + text}
	}
	return shape{text: w.code(e)}
}

// conjunction joins the conditions of a conjunction. A struct next to a definition adds details
// about the definition's fields. A struct that only carries the key over adds nothing.
func (w *writer) conjunction(all []ast.Expr) shape {
	var out shape
	var conditions, rest []ast.Expr
	for _, e := range all {
		e = unparen(e)
		if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.OR {
			s := w.disjunction(operands(b, token.OR))
			out.def = s.def
			if s.text == code("_") || s.text == "" {
				continue
			}
		}
		if s, ok := e.(*ast.StructLit); ok {
			if !carriesKey(s) {
				out.fields = s
			}
			continue
		}
		if _, ok := condition(e); ok {
			conditions = append(conditions, e)
			continue
		}
		if id, ok := e.(*ast.Ident); !ok || id.Name != "string" {
			rest = append(rest, e)
		}
	}
	var texts []string
	for _, e := range conditions {
		text, _ := condition(e)
		texts = append(texts, text)
	}
	if len(rest) == 0 {
		out.text = "a string " + strings.Join(texts, " and ")
	} else {
		out.text = w.code(append(rest, conditions...)...)
	}
	return out
}

// disjunction lists alternatives. A default that is one case of the only other
// alternative, as in *"1h" | #Duration, is not an alternative of its own.
func (w *writer) disjunction(all []ast.Expr) shape {
	var out shape
	var texts []string
	for _, e := range all {
		star, isDefault := unparen(e).(*ast.UnaryExpr)
		isDefault = isDefault && star.Op == token.MUL
		if isDefault {
			e = star.X
		}
		s := w.shapeOf(e)
		if s.fields != nil {
			out.fields = s.fields
			if s.text == "" {
				s.text = "a struct"
			}
		}
		if isDefault {
			out.def = s.text
			if s.fields != nil {
				out.def = "the struct"
			}
			if len(all) == 2 && !isLiteral(all[1]) {
				continue
			}
		}
		texts = append(texts, s.text)
	}
	out.text = either(texts)
	return out
}

// condition returns a constraint on strings as text.
func condition(e ast.Expr) (string, bool) {
	u, ok := unparen(e).(*ast.UnaryExpr)
	if !ok {
		return "", false
	}
	lit, ok := u.X.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := literal.Unquote(lit.Value)
	if err != nil {
		return "", false
	}
	switch {
	case u.Op == token.MAT:
		return "that matches " + code(text), true
	case u.Op == token.NMAT:
		return "that does not match " + code(text), true
	case u.Op == token.NEQ && text == "":
		return "that is not empty", true
	}
	return "", false
}

// code is expressions as CUE, linked to the first definition that they name.
func (w *writer) code(all ...ast.Expr) string {
	var texts []string
	for _, e := range all {
		text, err := format.Node(e, format.Simplify())
		if err != nil {
			panic(fmt.Sprintf("formatting what was just parsed: %v", err))
		}
		oneLine := strings.Join(strings.Fields(string(text)), " ")
		texts = append(texts, strings.ReplaceAll(oneLine, "{ ... }", "{...}"))
	}
	text := code(strings.Join(texts, " & "))
	for _, e := range all {
		if link := w.link(e); link != "" {
			return "[" + text + "](" + link + ")"
		}
	}
	return text
}

// link returns the link to the description of the first definition that an expression names.
func (w *writer) link(e ast.Expr) (link string) {
	ast.Walk(e, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == "schema" && link == "" {
				link = w.schema + anchor(x.Sel)
			}
			return false
		case *ast.Ident:
			if strings.HasPrefix(x.Name, "#") && w.defined[x.Name] && link == "" {
				link = anchor(x)
			}
		}
		return true
	}, nil)
	return link
}

// anchor returns the anchor that GitHub gives to a definition's heading.
func anchor(n ast.Node) string {
	if id, ok := n.(*ast.Ident); ok {
		return "#" + strings.ToLower(strings.TrimPrefix(id.Name, "#"))
	}
	return ""
}

func unparen(e ast.Expr) ast.Expr {
	for {
		p, ok := e.(*ast.ParenExpr)
		if !ok {
			return e
		}
		e = p.X
	}
}

// operands flattens a chain of one operator.
func operands(e ast.Expr, op token.Token) []ast.Expr {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == op {
		return append(operands(b.X, op), operands(b.Y, op)...)
	}
	return []ast.Expr{e}
}

func isLiteral(e ast.Expr) bool {
	_, ok := unparen(e).(*ast.BasicLit)
	return ok
}

func onlyEllipsis(s *ast.StructLit) bool {
	_, ok := s.Elts[0].(*ast.Ellipsis)
	return ok && len(s.Elts) == 1
}

// carriesKey reports whether a struct is the {name: N} of a collection.
func carriesKey(s *ast.StructLit) bool {
	if len(s.Elts) != 1 {
		return false
	}
	f, ok := s.Elts[0].(*ast.Field)
	return ok && labelOf(f) == "name"
}

// elementFields returns the fields of a list's elements, nil if they are not
// structs.
func elementFields(l *ast.ListLit) *ast.StructLit {
	if len(l.Elts) != 1 {
		return nil
	}
	rest, ok := l.Elts[0].(*ast.Ellipsis)
	if !ok || rest.Type == nil {
		return nil
	}
	s, ok := rest.Type.(*ast.StructLit)
	if !ok || len(s.Elts) == 0 || onlyEllipsis(s) {
		return nil
	}
	return s
}
