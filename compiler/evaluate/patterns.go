package evaluate

import (
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/token"
)

// pattern is a definition of the schema that is a regular expression.
type pattern struct {
	name    string // "#Name"
	pattern string // =~"…" as CUE prints it
}

// patterns are the schema's regular expressions, so that messages can name them.
var patterns = sync.OnceValue(func() []pattern {
	var out []pattern
	for _, field := range schemaFields() {
		of := field.Value
		if and, ok := of.(*ast.BinaryExpr); ok && and.Op == token.AND {
			of = and.X // the other side bounds it further
		}
		u, ok := of.(*ast.UnaryExpr)
		if !ok || u.Op != token.MAT {
			continue
		}
		b, err := format.Node(u)
		if err != nil {
			panic(err)
		}
		label, _, _ := ast.LabelName(field.Label)
		out = append(out, pattern{label, string(b)})
	}
	return out
})

// docOf returns a field's documentation, in one line.
func docOf(f *ast.Field) string {
	for _, g := range ast.Comments(f) {
		if g.Doc {
			return strings.Join(strings.Fields(g.Text()), " ")
		}
	}
	return ""
}
