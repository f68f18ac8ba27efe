package evaluate

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// checker holds values against the shapes of the schema.
type checker struct{ *scope }

// check reports everything that CUE and the schema say against an entity, or a
// part of one, and returns whether it is healthy. The schema's shape is asked
// first: CUE hides a misspelt field behind any other error of its struct.
// What is in some of its fields is left to others.
func (x *checker) check(v cue.Value, s *shape, ref model.Ref, but ...string) bool {
	before := len(x.ds)
	var told []string
	for _, name := range but {
		told = append(told, ref.At(name).String())
	}
	x.checkShape(v, s, ref, &told)
	if err := v.Validate(); err != nil {
		depth := len(v.Path().Selectors())
		all := problemsIn(x.places, err)
		for _, o := range all {
			path := ref.At(joinPath(o.path[min(depth, len(o.path)):])).String()
			if slices.ContainsFunc(told, func(t string) bool { return within(path, t) || o.alternatives() && within(t, path) }) ||
				o.alternatives() && slices.ContainsFunc(all, o.contains) {
				continue
			}
			of := s.find(v, o.path)
			if o.alternatives() && of != nil && of.def != "" && x.checkAlternative(v, of, o, ref) {
				continue
			}
			d := o.diagnostic(of, s.find(v, o.path[:max(len(o.path)-1, 0)])).On(path)
			if inContract(o.path) {
				d.Code, d.Message = diag.BadContract, "the contract can never be satisfied: "+d.Message
			}
			x.fail(ref, d)
		}
	}
	return !diag.Errors(x.ds[before:])
}

// checkAlternative checks a struct that may be a scalar as well against the
// schema's struct alone: of the alternatives together CUE only says that none
// fits. It returns whether it found something to report.
func (x *checker) checkAlternative(v cue.Value, s *shape, o problem, ref model.Ref) bool {
	relative := o.path[len(v.Path().Selectors()):]
	for _, name := range relative {
		v = field(v, strings.Trim(name, `"`))
	}
	alone, ok := x.schema(s.def)
	for _, part := range conjuncts(v) {
		if len(x.written(part)) > 0 {
			alone = alone.Unify(part)
		}
	}
	return ok && !x.check(alone, s, ref.At(joinPath(relative)))
}

// checkShape reports unknown fields, missing ones, and groups of which not
// exactly one is given. It notes in told the paths that it has spoken of.
func (x *checker) checkShape(v cue.Value, s *shape, ref model.Ref, told *[]string) {
	if s.address != "" {
		x.checkAddress(v, s, ref, told)
		return
	}
	if s.elem != nil {
		if it, err := v.List(); err == nil {
			for i := 0; it.Next(); i++ {
				x.checkShape(it.Value(), s.elem, ref.At(fmt.Sprintf("[%d]", i)), told)
			}
		}
	}
	if len(s.fields) == 0 && s.pattern == nil || v.IncompleteKind()&cue.StructKind == 0 && v.IncompleteKind() != cue.BottomKind {
		return
	}
	given := map[string]cue.Value{}
	for name, of := range fields(v) {
		given[name] = of
		at := ref.At(model.Label(name))
		switch f, known := s.fields[name]; {
		case known && len(*told) > 0 && slices.Contains(*told, at.String()):
		case known:
			x.checkShape(of, f.shape, at, told)
		case s.pattern != nil && s.keys.allows(name):
			x.checkShape(of, s.pattern, at, told)
		case s.pattern != nil:
			x.tell(badKey(name, s.keys), at, told, of)
		case !s.open:
			x.tell(unknownField(name, s), at, told, of)
		}
	}
	if len(given) == 0 && v.Validate() != nil {
		return // no struct at all, which CUE says
	}
	x.checkWithoutEffect(v, s, given, ref, told)
	x.checkFields(s, given, ref, told, v)
}

// checkWithoutEffect reports fields that look like those of the schema and give
// nothing: hidden ones, definitions, and such that are only constraints.
func (x *checker) checkWithoutEffect(v cue.Value, s *shape, given map[string]cue.Value, ref model.Ref, told *[]string) {
	if len(s.fields) == 0 {
		return
	}
	in := sync.OnceValue(func() syntaxOf { return newSyntaxOf(v) })
	it, err := v.Fields(cue.Optional(true), cue.Hidden(true), cue.Definitions(true))
	for err == nil && it.Next() {
		written := it.Selector().String()
		name := strings.TrimRight(strings.TrimLeft(written, "_#"), "?!")
		if _, known := s.fields[name]; !known || written == name {
			continue
		}
		if _, there := given[name]; there {
			continue
		}
		what := written + " is hidden, and has no effect"
		if it.FieldType()&cue.OptionalConstraint != 0 || strings.HasSuffix(written, "?") {
			what = name + "? is only a constraint, and has no effect"
		}
		if !x.isWritten(it.Value(), strings.TrimRight(written, "?!"), in()) {
			continue // the schema's own, a template's, or a pattern's
		}
		x.tell(diag.New(diag.UnknownField, what).Hinting("write "+name), ref.At(model.Label(name)), told, it.Value())
	}
}

// syntaxOf is the source of a struct, with the names of all fields in it.
type syntaxOf struct {
	nodes []ast.Node
	names map[string]bool
}

func newSyntaxOf(v cue.Value) syntaxOf {
	s := syntaxOf{sourceNodes(v), map[string]bool{}}
	for _, n := range s.nodes {
		ast.Walk(n, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				if name, _, err := ast.LabelName(f.Label); err == nil {
					s.names[name] = true
				}
			}
			return true
		}, nil)
	}
	return s
}

// isWritten says whether a field is written, by its name, in the source of the
// struct that it is in.
func (x *checker) isWritten(of cue.Value, name string, in syntaxOf) bool {
	if !in.names[name] {
		return false // which is cheaper to see than what CUE knows of the field
	}
	return slices.ContainsFunc(sourceNodes(of), func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		if !ok {
			return false
		}
		label, _, err := ast.LabelName(f.Label)
		at := x.of(f.Pos())
		return err == nil && label == name && !at.IsZero() && x.contain(at, in.nodes)
	})
}

// tell reports what is wrong at ref, where v is written, and notes
// that it has spoken of it.
func (x *checker) tell(d diag.Diagnostic, ref model.Ref, told *[]string, v cue.Value) {
	*told = append(*told, ref.String())
	x.fail(ref, x.at(d, v).On(ref.String()))
}

func (x *checker) checkFields(s *shape, given map[string]cue.Value, ref model.Ref, told *[]string, v cue.Value) {
	for _, name := range s.names() {
		if _, there := given[name]; !there && s.fields[name].required && !s.misspelt(name, given) {
			x.tell(missingField(name, s), ref.At(model.Label(name)), told, v)
		}
	}
	for _, group := range s.oneOf {
		var there []string
		var values []cue.Value
		for _, name := range group {
			if of, ok := given[name]; ok {
				there, values = append(there, name), append(values, of)
			}
		}
		wanted := fmt.Sprintf("exactly one of %s is needed", strings.Join(group, ", "))
		switch {
		case len(there) == 0 && !slices.ContainsFunc(group, func(name string) bool { return s.misspelt(name, given) }):
			x.fail(ref, x.at(diag.New(diag.OneOf, wanted+", and none is given").Hinting("give one of them"), v))
		case len(there) > 1:
			x.fail(ref, x.at(diag.New(diag.OneOf, wanted+", and "+strings.Join(there, " and ")+" are given").Hinting("keep one of them"), values...))
		}
	}
}

// misspelt says whether a field that is absent seems to be there under a wrong
// name, which is reported.
func (s *shape) misspelt(name string, given map[string]cue.Value) bool {
	for other := range given {
		if _, known := s.fields[other]; !known && diag.Nearest(other, s.names()) == name {
			return true
		}
	}
	return false
}

// find returns the shape of the value at an absolute path, where s is the shape
// of v; nil where the schema says nothing of it.
func (s *shape) find(v cue.Value, path []string) *shape {
	depth := len(v.Path().Selectors())
	if len(path) < depth {
		return nil
	}
	return s.at(path[depth:])
}

// at returns the shape of what is at a path in a value; nil where the schema says nothing
// of it.
func (s *shape) at(path []string) *shape {
	for _, name := range path {
		switch f, known := s.fields[strings.Trim(name, `"`)]; {
		case known:
			s = f.shape
		case s.pattern != nil:
			s = s.pattern
		case s.elem != nil:
			s = s.elem
		default:
			return nil
		}
	}
	return s
}

// inContract says whether an absolute path leads into a contract.
func inContract(path []string) bool {
	for i, name := range path {
		if i >= 2 && (name == "requires" || name == "schema" && path[0] == "configSchemas" || name == "change" && path[0] == "environments") {
			return true
		}
	}
	return false
}

// joinPath writes the path of a CUE error as model.Ref does.
func joinPath(path []string) string {
	s := ""
	for _, name := range path {
		if isIndex(name) {
			s += "[" + name + "]"
			continue
		}
		s = model.JoinPath(s, model.Label(strings.Trim(name, `"`)))
	}
	return s
}

// isIndex says whether an element of a path of CUE's is the index of a list.
func isIndex(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" }
