package evaluate

import (
	"io/fs"
	"strings"
	"sync"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/format"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso"
)

// pattern is a definition of the schema that is a regular expression.
type pattern struct {
	name    string // "#Name"
	pattern string // =~"…" as CUE prints it
}

// patterns are the schema's regular expressions, so that messages can name them.
var patterns = sync.OnceValue(func() []pattern {
	var out []pattern
	files, err := fs.Glob(kalypso.Module, "schema/*.cue")
	if err != nil {
		panic(err)
	}
	for _, name := range files {
		data, err := kalypso.Module.ReadFile(name)
		if err != nil {
			panic(err)
		}
		f, err := parser.ParseFile(name, data, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		for _, d := range f.Decls {
			field, ok := d.(*ast.Field)
			if !ok {
				continue
			}
			u, ok := field.Value.(*ast.UnaryExpr)
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
