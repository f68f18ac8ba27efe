package selector

import (
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// want describes in words the constraint of a field, or an optional field, on its name.
func want(s *model.Selector) string {
	constraint := &s.Args[0]
	switch {
	case s.Op == model.OpField && constraint.Op == model.OpAll:
		return "present"
	case s.Op == model.OpField:
		return text(constraint)
	case constraint.Op == model.OpNone:
		return "absent"
	}
	return "absent or " + text(constraint)
}

// text returns a selector as the CUE that it was compiled from, or as simple.
func text(s *model.Selector) string {
	switch s.Op {
	case model.OpAll:
		return "_"
	case model.OpAnd:
		return join(s.Args, " & ", "_", model.OpOr)
	case model.OpOr:
		return join(s.Args, " | ", "_|_", model.OpAnd)
	case model.OpField:
		return "{" + model.Label(s.Key) + ": " + text(&s.Args[0]) + "}"
	case model.OpOptional:
		return "{" + model.Label(s.Key) + "?: " + text(&s.Args[0]) + "}"
	case model.OpEqual:
		return quote(s.Text)
	case model.OpSatisfy:
		return strings.TrimSpace(string(s.Expr))
	}
	return "_|_"
}

// join writes args with an operator between them. It puts parentheses around arguments with
// the other operator. It returns none if there are no args.
func join(args []model.Selector, operator, none string, other model.SelectorOp) string {
	if len(args) == 0 {
		return none
	}
	texts := make([]string, len(args))
	for i := range args {
		texts[i] = text(&args[i])
		if args[i].Op == other && len(args[i].Args) > 1 {
			texts[i] = "(" + texts[i] + ")"
		}
	}
	return strings.Join(texts, operator)
}

func quote(s string) string { return string(model.AppendJSONString(nil, s)) }
