package export

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/problem"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// shapeCheck compares one value with its shape.
type shapeCheck struct {
	*scope
	reported []string // the paths that have a diagnostic
}

// checkAddress reports credentials in an address. It checks each written address, because these
// may conflict with each other.
func (x *shapeCheck) checkAddress(v cue.Value, s *shape.Shape, ref model.Ref) {
	for _, part := range cuevalue.Conjuncts(v) {
		address, err := part.String()
		if err != nil {
			continue
		}
		if d, found := s.Credentials(address, ref.Path[strings.LastIndexByte(ref.Path, '.')+1:]); found {
			x.failAt(d, ref, v)
			return
		}
	}
}

// checker checks values against the shapes of the schema.
type checker struct{ *scope }

// check reports all errors of an entity, or of a value in one, by the schema and by CUE, and
// returns whether it is valid. It checks the shape first, because CUE hides a misspelt field
// behind any other error of its struct. It does not check the fields in but.
func (x *checker) check(v cue.Value, s *shape.Shape, ref model.Ref, but ...string) bool {
	before := len(x.Diagnostics)
	shapes := &shapeCheck{scope: x.scope}
	for _, name := range but {
		shapes.reported = append(shapes.reported, ref.At(name).String())
	}
	shapes.checkShape(v, s, ref)
	if err := v.Validate(); err != nil {
		depth := len(v.Path().Selectors())
		all := problem.In(x.Places, err)
		for _, o := range all {
			path := ref.At(problem.JoinPath(o.Path[min(depth, len(o.Path)):])).String()
			if slices.ContainsFunc(shapes.reported, func(t string) bool {
				return finding.Within(path, t) ||
					o.Alternatives() && finding.Within(t, path)
			}) ||
				o.Alternatives() && slices.ContainsFunc(all, o.Contains) {
				continue
			}
			of := s.Find(v, o.Path)
			if o.Alternatives() && of != nil && of.Def != "" && x.checkAlternative(v, of, o, ref) {
				continue
			}
			d := o.Diagnostic(of, s.Find(v, o.Path[:max(len(o.Path)-1, 0)])).On(path)
			if inContract(o.Path) {
				d.Code, d.Message = diag.BadContract, "the contract can never be satisfied: "+d.Message
			}
			x.Fail(ref, d)
		}
	}
	return !diag.Errors(x.Diagnostics[before:])
}

// checkAlternative checks a struct that may also be a scalar against only the schema's struct.
// For all alternatives together, CUE only says that no alternative fits. checkAlternative
// reports whether it found a problem.
func (x *checker) checkAlternative(v cue.Value, s *shape.Shape, o problem.Problem,
	ref model.Ref) bool {
	relative := o.Path[len(v.Path().Selectors()):]
	for _, name := range relative {
		v = cuevalue.Field(v, strings.Trim(name, `"`))
	}
	alone, ok := x.schema(s.Def)
	for _, part := range cuevalue.Conjuncts(v) {
		if len(x.Written(part)) > 0 {
			alone = alone.Unify(part)
		}
	}
	return ok && !x.check(alone, s, ref.At(problem.JoinPath(relative)))
}

// checkShape reports unknown fields, missing fields, and groups that do not have exactly one
// field.
func (x *shapeCheck) checkShape(v cue.Value, s *shape.Shape, ref model.Ref) {
	if s.Address != "" {
		x.checkAddress(v, s, ref)
		return
	}
	if s.Elem != nil {
		if it, err := v.List(); err == nil {
			for i := 0; it.Next(); i++ {
				x.checkShape(it.Value(), s.Elem, ref.At(fmt.Sprintf("[%d]", i)))
			}
		}
	}
	if len(s.Fields) == 0 && s.Pattern == nil || v.IncompleteKind()&cue.StructKind == 0 &&
		v.IncompleteKind() != cue.BottomKind {
		return
	}
	given := map[string]cue.Value{}
	if ref.Path == "" && isObject(v) {
		x.failAt(shape.KubernetesObject("no entity of "+ref.Collection), ref, v)
		return
	}
	for name, of := range cuevalue.Fields(v) {
		given[name] = of
		at := ref.At(model.Label(name))
		switch f, known := s.Fields[name]; {
		case known && len(x.reported) > 0 && slices.Contains(x.reported, at.String()):
		case known:
			x.checkShape(of, f.Shape, at)
		case s.Pattern != nil && s.Keys.Allows(name):
			x.checkShape(of, s.Pattern.Shape, at)
		case s.Pattern != nil:
			x.failAt(shape.BadKey(name, s.Keys), at, of)
		case !s.Open:
			x.failAt(shape.UnknownField(name, s), at, of)
		}
	}
	if len(given) == 0 && v.Validate() != nil {
		return // not a struct, as CUE reports
	}
	x.checkWithoutEffect(v, s, given, ref)
	x.checkFields(s, given, ref, v)
}

// isObject reports whether a struct is a Kubernetes object.
func isObject(v cue.Value) bool {
	return cuevalue.Field(v, "apiVersion").Exists() && cuevalue.Field(v, "kind").Exists()
}

// isUnquoted reports whether the URL of a repository among the fields has no quotes, so that
// CUE reads it as nested fields that include the fields below it.
func isUnquoted(given map[string]cue.Value) bool {
	url, there := given["repo"]
	return there && (cuevalue.Field(url, "https").Exists() || cuevalue.Field(url, "ssh").Exists())
}

// hasRevision reports whether the URL of an OCI artifact among the fields contains the tag or
// digest that belongs in a field of its own. Another diagnostic reports it.
func hasRevision(given map[string]cue.Value) bool {
	url, there := given["url"]
	if !there {
		return false
	}
	for _, part := range cuevalue.Conjuncts(url) {
		if url, err := part.String(); err == nil && strings.HasPrefix(url, "oci:") {
			_, field := shape.CutRevision(url)
			return field != ""
		}
	}
	return false
}

// checkWithoutEffect reports fields that look like fields of the schema and have no effect:
// hidden fields, definitions, and fields that are only constraints.
func (x *shapeCheck) checkWithoutEffect(v cue.Value, s *shape.Shape, given map[string]cue.Value,
	ref model.Ref) {
	if len(s.Fields) == 0 || ref.Collection == "tests" && ref.Path == "assignment" { // a constraint
		return
	}
	in := sync.OnceValue(func() syntaxOf { return newSyntaxOf(v) })
	it, err := v.Fields(cue.Optional(true), cue.Hidden(true), cue.Definitions(true))
	for err == nil && it.Next() {
		written := it.Selector().String()
		name := strings.TrimRight(strings.TrimLeft(written, "_#"), "?!")
		if _, known := s.Fields[name]; !known || written == name {
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
		x.failAt(diag.New(diag.UnknownField, what).Hinting("write "+name), ref.At(model.Label(name)),
			it.Value())
	}
}

// syntaxOf is the source of a struct, with the names of all its fields.
type syntaxOf struct {
	nodes []ast.Node
	names map[string]bool
}

func newSyntaxOf(v cue.Value) syntaxOf {
	s := syntaxOf{cuevalue.SourceNodes(v), map[string]bool{}}
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

// isWritten reports whether the source of the struct around a field writes the field by its
// name.
func (x *shapeCheck) isWritten(of cue.Value, name string, in syntaxOf) bool {
	if !in.names[name] {
		return false // cheaper than CUE's own information about the field
	}
	return slices.ContainsFunc(cuevalue.SourceNodes(of), func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		if !ok {
			return false
		}
		label, _, err := ast.LabelName(f.Label)
		at := x.Position(f.Pos())
		return err == nil && label == name && !at.IsZero() && x.Contain(at, in.nodes)
	})
}

// failAt reports an error about ref, at the positions of v.
func (x *shapeCheck) failAt(d diag.Diagnostic, ref model.Ref, v cue.Value) {
	x.reported = append(x.reported, ref.String())
	x.Fail(ref, x.At(d, v).On(ref.String()))
}

func (x *shapeCheck) checkFields(s *shape.Shape, given map[string]cue.Value, ref model.Ref,
	v cue.Value) {
	for _, name := range s.Names() {
		if _, there := given[name]; !there && s.Fields[name].Required && !s.Misspelt(name, given) {
			x.failAt(shape.MissingField(name, s), ref.At(model.Label(name)), v)
		}
	}
	for _, group := range s.OneOf {
		var there []string
		var values []cue.Value
		for _, name := range group {
			if of, ok := given[name]; ok {
				there, values = append(there, name), append(values, of)
			}
		}
		wanted := fmt.Sprintf("exactly one of %s is needed", strings.Join(group, ", "))
		switch {
		case len(there) == 0 && (slices.Contains(group, "digest") && hasRevision(given) ||
			slices.Contains(group, "commit") && isUnquoted(given)):
			// Another diagnostic reports the field that contains the missing one.
		case len(there) == 0 &&
			!slices.ContainsFunc(group, func(name string) bool { return s.Misspelt(name, given) }):
			x.Fail(ref, x.At(diag.New(diag.OneOf, wanted+", and none is given").Hinting("give one of them"),
				v))
		case len(there) > 1:
			x.Fail(ref, x.At(diag.New(diag.OneOf, wanted+", and "+strings.Join(there,
				" and ")+" are given").Hinting("keep one of them"), values...))
		}
	}
}

// inContract reports whether an absolute path leads into a contract.
func inContract(path []string) bool {
	for i, name := range path {
		if i >= 2 && (name == "requires" || name == "schema" && path[0] == "configSchemas" ||
			name == "change" && path[0] == "environments" || name == "values" && path[0] == "tests") {
			return true
		}
	}
	return false
}

// schema returns a definition of the schema, if the platform imports the schema.
func (x *checker) schema(definition string) (cue.Value, bool) {
	for _, dep := range x.Instance.Dependencies() {
		if dep.ImportPath == "kalypso.io/schema" {
			v := x.Context.BuildInstance(dep).LookupPath(cue.MakePath(cue.Def(definition)))
			return v, v.Exists()
		}
	}
	return cue.Value{}, false
}
