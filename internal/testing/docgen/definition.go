package docgen

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"
)

// writer writes the definitions of a package.
type writer struct {
	*page
	schema  string          // the page that describes package schema
	defined map[string]bool // the package's definitions
}

func newWriter(p *page, schema string, files map[string]*ast.File) *writer {
	w := &writer{page: p, schema: schema, defined: map[string]bool{}}
	for _, file := range files {
		for _, f := range fieldsOf(file.Decls) {
			w.defined[labelOf(f)] = true
		}
	}
	return w
}

// definition is one definition of a file.
type definition struct {
	name, doc string
	shape
	settings []setting // of a definition that only gives values; else nil
}

// setting is a value for a field that another definition explains.
type setting struct{ path, value string }

func (w *writer) file(f *ast.File) {
	var all []definition
	for _, f := range fieldsOf(f.Decls) {
		s := w.shapeOf(f.Value)
		d := definition{name: labelOf(f), doc: doc(f), shape: s}
		if s.fields != nil && !explained(s.fields) {
			d.settings = w.settings(s.fields, "")
		}
		all = append(all, d)
	}
	for i, d := range all {
		w.block("### %s", d.name)
		w.block("%s", prose(d.doc, "cue"))
		w.what(d)
		// Definitions with the same settings share a table with columns, after the last of them.
		if d.settings != nil && (i+1 == len(all) || !samePaths(d, all[i+1])) {
			first := i
			for first > 0 && samePaths(all[first-1], d) {
				first--
			}
			w.table(all[first : i+1])
		}
	}
}

func (w *writer) what(d definition) {
	switch {
	case d.settings != nil:
		w.block("It is %s, with the values below.", d.text)
	case d.text != "" && d.fields != nil:
		w.block("It is %s, with:", d.text)
	case d.text != "":
		w.block("It is %s.", d.text)
	}
	if d.fields == nil || d.settings != nil {
		return
	}
	for _, e := range d.fields.Elts {
		switch e := e.(type) {
		case *ast.Attribute:
			if one := oneOf(e); one != "" {
				w.block("Exactly one of %s is given.", one)
			}
		case *ast.EmbedDecl:
			w.block("It has all fields of %s, and:", w.shapeOf(e.Expr).text)
		}
	}
	if items := w.list(d.fields, ""); items != "" {
		w.block("%s", strings.TrimSuffix(items, "\n"))
	}
}

// list writes the fields of a struct, and the fields below them.
func (w *writer) list(s *ast.StructLit, indent string) string {
	var b strings.Builder
	for _, f := range fieldsOf(s.Elts) {
		shape := w.shapeOf(f.Value)
		fmt.Fprintf(&b, "%s- %s", indent, w.head(f, shape))
		if text := paragraph(doc(f)); text != "" {
			fmt.Fprintf(&b, "\\\n%s  %s", indent, text) // the backslash breaks the line
		}
		b.WriteString("\n")
		if shape.fields != nil {
			b.WriteString(w.list(shape.fields, indent+"  "))
		}
	}
	return b.String()
}

// head returns the name of a field, its possible values, and whether it is required.
func (w *writer) head(f *ast.Field, s shape) string {
	parts := []string{"**" + code(labelOf(f)) + "**"}
	if list, ok := f.Label.(*ast.ListLit); ok {
		parts[0] = "**each key**"
		if key := w.shapeOf(keyOf(list)).text; key != code("string") {
			parts[0] += " (" + key + ")"
		}
	}
	if s.text != "" {
		parts[0] += ": " + s.text
	}
	switch f.Constraint {
	case token.NOT:
		parts = append(parts, "required")
	case token.OPTION:
		parts = append(parts, "optional")
	}
	if s.def != "" {
		parts = append(parts, "default "+s.def)
	}
	return strings.Join(parts, ", ")
}

// explained reports whether a struct has a field, other than a description, that
// carries a comment.
func explained(s *ast.StructLit) bool {
	return slices.ContainsFunc(fieldsOf(s.Elts), func(f *ast.Field) bool {
		below, ok := f.Value.(*ast.StructLit)
		return doc(f) != "" || ok && explained(below)
	})
}

// settings returns the leaves of a struct. Its description repeats the definition's comment, and
// is left out.
func (w *writer) settings(s *ast.StructLit, path string) []setting {
	var out []setting
	for _, f := range fieldsOf(s.Elts) {
		name := labelOf(f)
		shape := w.shapeOf(f.Value)
		switch {
		case shape.fields != nil:
			out = append(out, w.settings(shape.fields, path+name+".")...)
		case name == "description":
		case shape.def != "":
			out = append(out, setting{path + name, shape.def})
		default:
			out = append(out, setting{path + name, shape.text})
		}
	}
	return out
}

func samePaths(a, b definition) bool {
	return a.settings != nil &&
		slices.EqualFunc(a.settings, b.settings, func(a, b setting) bool { return a.path == b.path })
}

// table shows definitions that give values to the same fields.
func (w *writer) table(all []definition) {
	head, line := "| default of |", "|---|"
	for _, d := range all {
		head += " " + code(d.name) + " |"
		line += "---|"
	}
	rows := []string{head, line}
	for i, s := range all[0].settings {
		row := "| " + code(s.path) + " |"
		for _, d := range all {
			row += " " + cell(d.settings[i].value) + " |"
		}
		rows = append(rows, row)
	}
	w.block("%s", strings.Join(rows, "\n"))
}

// oneOf lists the fields of @oneOf(a, b); "" for another attribute.
func oneOf(a *ast.Attribute) string {
	name, body := a.Split()
	if name != "oneOf" {
		return ""
	}
	var fields []string
	for f := range strings.SplitSeq(body, ",") {
		fields = append(fields, code(strings.TrimSpace(f)))
	}
	last := len(fields) - 1
	return strings.Join(fields[:last], ", ") + " and " + fields[last]
}

func fieldsOf(decls []ast.Decl) []*ast.Field {
	var out []*ast.Field
	for _, d := range decls {
		if f, ok := d.(*ast.Field); ok {
			out = append(out, f)
		}
	}
	return out
}

// labelOf is a field's name as CUE writes it, "" for a pattern.
func labelOf(f *ast.Field) string {
	switch l := f.Label.(type) {
	case *ast.Ident:
		return l.Name
	case *ast.BasicLit:
		if name, err := literal.Unquote(l.Value); err == nil && ast.IsValidIdent(name) {
			return name
		}
		return l.Value
	}
	return ""
}

// keyOf is the constraint of [N=constraint].
func keyOf(l *ast.ListLit) ast.Expr {
	if a, ok := l.Elts[0].(*ast.Alias); ok {
		return a.Expr
	}
	return l.Elts[0]
}
