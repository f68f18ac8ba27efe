package evaluate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// describe writes a selector for comparison. It sorts the parts of a conjunction.
func describe(s model.Selector) string {
	var args []string
	for _, a := range s.Args {
		args = append(args, describe(a))
	}
	switch s.Op {
	case model.OpAll:
		return "*"
	case model.OpNone:
		return "none"
	case model.OpEqual:
		return fmt.Sprintf("%q", s.Text)
	case model.OpSatisfy:
		return "satisfies " + string(s.Expr)
	case model.OpField:
		return s.Key + ": " + inner(s.Args[0])
	case model.OpOptional:
		return s.Key + "?: " + inner(s.Args[0])
	case model.OpOr:
		return "(" + strings.Join(args, " | ") + ")"
	}
	if s.Args[0].Op == model.OpField || s.Args[0].Op == model.OpOptional {
		slices.Sort(args)
	}
	return strings.Join(args, " & ")
}

// inner is describe for the text after a key.
func inner(s model.Selector) string {
	if s.Op == model.OpAnd && s.Args[0].Op != model.OpField && s.Args[0].Op != model.OpOptional {
		return "(" + describe(s) + ")"
	}
	return describe(s)
}

// oneLine writes CUE text in one line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", ", ")), " ")
	return strings.NewReplacer("{, ", "{", "(, ", "(", ", }", "}", "[, ", "[").Replace(text)
}

// outline writes a tree for comparison. A final leaf is written as JSON, and an open one as its
// constraint, after its default.
func outline(t model.Tree) string {
	switch t.Kind {
	case model.Absent:
		return "absent"
	case model.FinalLeaf:
		if t.Final.Kind() == model.Secret {
			return "secret " + t.Final.String()
		}
		return t.Final.String()
	case model.OpenLeaf:
		if t.Open.Default != nil {
			return "*" + t.Open.Default.String() + " of " + oneLine(string(t.Open.Constraint))
		}
		return "of " + oneLine(string(t.Open.Constraint))
	}
	var fields []string
	for _, f := range t.Fields {
		fields = append(fields, f.Name+": "+outline(f.Tree))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
