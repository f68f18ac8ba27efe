package evaluate

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// check reports everything that CUE and the schema say against an entity, or a
// part of one, and returns whether it is healthy. The schema's shape is asked
// first: CUE hides a misspelt field behind any other error of its struct.
func (x *exporter) check(v cue.Value, s *shape, ref model.Ref) bool {
	before := len(x.ds)
	var told []string
	x.checkShape(v, s, ref, &told)
	if err := v.Validate(); err != nil {
		for _, o := range x.problems(err) {
			path := joinPath(o.path)
			if slices.ContainsFunc(told, func(t string) bool { return within(path, t) }) {
				continue
			}
			d := o.diagnostic(s.find(v, o.path), s.find(v, o.path[:max(len(o.path)-1, 0)])).On(path)
			if inContract(o.path) {
				d.Code, d.Message = diag.BadContract, "the contract can never be satisfied: "+d.Message
			}
			x.fail(ref, d)
		}
	}
	return !diag.Errors(x.ds[before:])
}

// checkShape reports unknown fields, missing ones, and groups of which not
// exactly one is given. It notes in told the paths that it has spoken of.
func (x *exporter) checkShape(v cue.Value, s *shape, ref model.Ref, told *[]string) {
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
	given := map[string]bool{}
	for name, of := range fields(v) {
		given[name] = true
		at := ref.At(model.Label(name))
		switch f, known := s.fields[name]; {
		case known:
			x.checkShape(of, f.shape, at, told)
		case s.pattern != nil:
			x.checkShape(of, s.pattern, at, told)
		case !s.open:
			x.note(of, at)
			d := unknownField(name, s).On(at.String())
			for _, p := range x.written(of) {
				d = d.In(p, "")
			}
			*told = append(*told, at.String())
			x.fail(at, d)
		}
	}
	x.checkFields(s, given, ref, told, v)
}

func (x *exporter) checkFields(s *shape, given map[string]bool, ref model.Ref, told *[]string, v cue.Value) {
	where := func(d diag.Diagnostic) diag.Diagnostic {
		for _, p := range x.written(v) {
			d = d.In(p, "")
		}
		return d
	}
	for _, name := range s.names() {
		if s.fields[name].required && !given[name] {
			at := ref.At(model.Label(name))
			*told = append(*told, at.String())
			x.fail(at, where(diag.New(diag.Missing, fmt.Sprintf("required field %s is missing", name)).On(at.String())))
		}
	}
	for _, group := range s.oneOf {
		var there []string
		for _, name := range group {
			if given[name] {
				there = append(there, name)
			}
		}
		if len(there) == 1 {
			continue
		}
		found := "none is given"
		if len(there) > 1 {
			found = strings.Join(there, " and ") + " are given"
		}
		d := diag.New(diag.OneOf, fmt.Sprintf("exactly one of %s is needed, and %s", strings.Join(group, ", "), found)).On(ref.String())
		x.fail(ref, where(d))
	}
}

// find returns the shape of the value at an absolute path, where s is the shape
// of v; nil where the schema says nothing of it.
func (s *shape) find(v cue.Value, path []string) *shape {
	depth := len(v.Path().Selectors())
	if len(path) < depth {
		return nil
	}
	for _, name := range path[depth:] {
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
		if i >= 2 && (name == "requires" || name == "schema" && path[0] == "configSchemas") {
			return true
		}
	}
	return false
}

// joinPath writes the path of a CUE error as model.Ref does.
func joinPath(path []string) string {
	s := ""
	for _, name := range path {
		if strings.Trim(name, "0123456789") == "" && name != "" {
			s += "[" + name + "]"
			continue
		}
		s = model.JoinPath(s, model.Label(strings.Trim(name, `"`)))
	}
	return s
}

// within says whether a path is another, or below it.
func within(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
