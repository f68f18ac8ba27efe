package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
)

// TestAssignmentIsComplete checks that the engine sets each field of the assignments that backends
// get. It reads the names of the fields from the engine's source.
func TestAssignmentIsComplete(t *testing.T) {
	set := map[string]bool{"Decrypts": true} // by a backend
	f, err := parser.ParseFile(token.NewFileSet(), "emit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			of, is := n.Type.(*ast.SelectorExpr)
			if !is || of.Sel.Name != "Assignment" {
				return true
			}
			for _, e := range n.Elts {
				if pair, is := e.(*ast.KeyValueExpr); is {
					set[pair.Key.(*ast.Ident).Name] = true
				}
			}
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if s, is := to.(*ast.SelectorExpr); is {
					set[s.Sel.Name] = true
				}
			}
		}
		return true
	})
	for field := range reflect.TypeFor[backends.Assignment]().Fields() {
		if !set[field.Name] {
			t.Errorf("emit.go does not set %s of backends.Assignment", field.Name)
		}
	}
}
