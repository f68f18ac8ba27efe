package export

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/problem"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// contracts exports constraints on values that are composed later.
type contracts struct{ *scope }

// contract exports a constraint on composed values, open at every level except where it closes
// itself. It returns nil and reports an error if the constraint is malformed.
func (x *contracts) contract(v cue.Value, ref model.Ref, enforce string) *model.Contract {
	x.note(v, ref)
	if cuevalue.Explicit(v) {
		x.Fail(ref, diag.New(diag.BadContract, "a contract cannot use #assignment").
			Hinting("a contract is the same for all that it applies to; match says which those are"))
		return nil
	}
	if !x.checkContract(v, ref) {
		return nil
	}
	e, text, err := cuevalue.SyntaxText(v)
	if err != nil {
		x.Fail(ref, diag.New(diag.BadContract, fmt.Sprintf("the contract cannot be used: %v", err)))
		return nil
	}
	c := &model.Contract{Ref: ref, Expr: model.Expr(text), Mentions: mentions(e),
		Advise: enforce == "advise"}
	if !x.contractFields(v, ref, "", false, &c.Fields) {
		return nil
	}
	slices.SortFunc(c.Fields,
		func(a, b model.ContractField) int { return strings.Compare(a.Path, b.Path) })
	return c
}

func (x *contracts) checkContract(v cue.Value, ref model.Ref) bool {
	if v.Validate() != nil {
		return false // check has reported it
	}
	if cuevalue.IsUnknown(v) {
		return x.checkConditions(v, ref)
	}
	if v.IncompleteKind()&cue.StructKind == 0 {
		x.Fail(ref, diag.New(diag.BadContract, "a contract is a struct"))
		return false
	}
	name := embeddedAsData(v)
	if s := v.LookupPath(cue.MakePath(cue.Str("$schema"))); name == "" && s.Exists() &&
		s.IsConcrete() {
		name = "…"
	}
	if name != "" {
		x.Fail(ref, diag.New(diag.DataSchema,
			"the embedded JSON Schema was read as data, and constrains nothing").
			Hinting(fmt.Sprintf("write @embed(file=%q, type=jsonschema)", name)))
		return false
	}
	return true
}

// embeddedAsData returns the data file from which a contract is embedded without the type of a
// schema. It returns "" if there is no such file.
func embeddedAsData(v cue.Value) string {
	for _, a := range v.Attributes(cue.FieldAttr) {
		if a.Name() != "embed" {
			continue
		}
		if _, given, err := a.Lookup(0, "type"); given || err != nil {
			continue
		}
		if name, given, err := a.Lookup(0, "file"); given && err == nil {
			return name
		}
	}
	return ""
}

// checkConditions checks a contract with conditional fields. Conditions on the contract's own
// fields, such as if mode == "a" {…}, are allowed, because the values will decide them. Nothing
// ever decides other conditions.
func (x *contracts) checkConditions(v cue.Value, ref model.Ref) bool {
	nodes := cuevalue.SourceNodes(v)
	if len(v.Path().Selectors()) == 0 { // all of a package is its own
		nodes = nil
		for _, f := range x.Files {
			for _, d := range f.Decls {
				nodes = append(nodes, d)
			}
		}
	}
	for _, o := range problem.In(x.Places, v.Err()) {
		for _, at := range o.At {
			if name, isField := x.FieldAt(at); isField && !x.Contain(at, nodes) {
				x.Fail(ref, diag.New(diag.BadContract,
					"the contract can never be checked: "+name+" has no value, and is no field of the contract").
					Hinting("give "+name+" a value").At(ref, "").In(at, name+" is declared here"))
				return false
			}
		}
	}
	return true
}

// contractFields records the position of every path that the contract names. It returns whether
// their constraints can be used.
func (x *contracts) contractFields(v cue.Value, ref model.Ref, path string, optional bool,
	out *[]model.ContractField) bool {
	it, err := v.Fields(cue.Optional(true))
	if err != nil {
		return true
	}
	ok := true
	for it.Next() {
		label := model.Label(it.Selector().Unquoted())
		at := model.JoinPath(path, label)
		x.noteContract(it.Value(), ref.At(label))
		leaf := it.Value().IncompleteKind() != cue.StructKind
		optional := optional || it.FieldType()&cue.OptionalConstraint != 0
		if leaf {
			text := x.asWritten(it.Value())
			*out = append(*out, model.ContractField{Path: at, Optional: optional, Text: text})
			if err := it.Value().Err(); ref.Collection == "tests" && err != nil && text != "_|_" &&
				it.Value().IncompleteKind() == cue.BottomKind {
				x.Fail(ref.At(label), diag.New(diag.BadContract,
					"no value can be "+text+": "+problem.In(x.Places, err)[0].Telling()).
					Hinting("write _|_ to demand that there is none"))
				ok = false
			}
			ok = x.checkPatterns(it.Value(), ref.At(label), diag.BadContract) && ok
			continue
		}
		ok = x.contractFields(it.Value(), ref.At(label), at, optional, out) && ok
	}
	return ok
}

// asWritten returns a constraint as its contract writes it, without the schema's own conjuncts.
// If the source is not available, it returns the constraint as CUE writes it.
func (x *contracts) asWritten(v cue.Value) string {
	nodes := cuevalue.SourceNodes(v)
	if own := slices.DeleteFunc(slices.Clone(nodes),
		func(n ast.Node) bool { return x.Position(n.Pos()).IsZero() }); len(own) > 0 {
		nodes = own
	}
	var parts []string
	for _, n := range nodes {
		f, ok := n.(*ast.Field)
		if !ok {
			parts = nil
			break
		}
		if text, err := cuevalue.WriteWithoutComments(f.Value); err == nil &&
			!slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, " & ")
	}
	_, text, _ := cuevalue.SyntaxText(v) // "" when CUE cannot write it
	return text
}

// mentions returns the top level fields that a contract constrains, sorted. It returns nil if
// the contract may constrain any field, because it has a pattern, a closed struct or a
// validator.
func mentions(e ast.Expr) []string {
	if and, ok := e.(*ast.BinaryExpr); ok && and.Op == token.AND {
		x, y := mentions(and.X), mentions(and.Y)
		if x == nil || y == nil {
			return nil
		}
		names := append(x, y...)
		slices.Sort(names)
		return slices.Compact(names)
	}
	lit, ok := e.(*ast.StructLit)
	if !ok {
		return nil
	}
	names := []string{}
	for _, d := range lit.Elts {
		switch d := d.(type) {
		case *ast.Ellipsis:
			if d.Type != nil {
				return nil
			}
		case *ast.Field:
			name, isIdent, err := ast.LabelName(d.Label)
			if err != nil {
				return nil
			}
			if !isIdent || !strings.HasPrefix(name, "#") && !strings.HasPrefix(name, "_") {
				names = append(names, name)
			}
		default:
			return nil
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkChange reports fields of a constraint that no change has. An optional field of this kind
// would always be satisfied.
func (x *contracts) checkChange(v cue.Value, ref model.Ref) {
	it, err := v.Fields(cue.Optional(true))
	for err == nil && it.Next() {
		name := it.Selector().Unquoted()
		if !slices.Contains(model.ChangeFields, name) {
			at := ref.At(model.Label(name))
			x.note(it.Value(), at)
			x.Fail(at, diag.New(diag.UnknownField, "unknown field "+name).Suggesting(name,
				model.ChangeFields))
		}
	}
}
