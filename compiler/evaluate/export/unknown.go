package export

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/problem"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// unknown reports that a part of an entity is unknown.
func (x *reader) unknown(v cue.Value, ref model.Ref) {
	code, what := diag.NotConcrete, ref.Path+" has no value"
	if cuevalue.IsStruct(v) {
		if code, what = diag.Incomplete, "which fields "+ref.Path+" has is not known"; ref.Path == "" {
			what = "which fields " + ref.Name + " has is not known"
		}
	}
	d := diag.New(code, what).On(ref.String())
	if all := problem.In(x.Places, v.Err()); len(all) > 0 {
		d = x.because(d, all[0], cuevalue.SourceNodes(v)) // the others follow from it
	}
	x.Fail(ref, d)
}

// unknownParts reports every unknown part of a value, and those of type bytes,
// which is not data either. It returns whether there are none.
func (x *reader) unknownParts(v cue.Value, ref model.Ref) bool {
	if cuevalue.IsUnknown(v) {
		x.unknown(v, ref)
		return false
	}
	ok := true
	switch {
	case cuevalue.IsBytes(v):
		x.note(v, ref)
		x.Fail(ref, diag.New(diag.Bytes, fmt.Sprintf("%s is of type bytes", ref.Path)).
			Hinting("write a string, for instance with base64.Encode"))
		ok = false
	case v.Kind() == cue.StructKind:
		for name, of := range cuevalue.Fields(v) {
			ok = x.unknownParts(of, ref.At(model.Label(name))) && ok
		}
	case v.Kind() == cue.ListKind:
		it, err := v.List()
		for i := 0; err == nil && it.Next(); i++ {
			ok = x.unknownParts(it.Value(), ref.At(fmt.Sprintf("[%d]", i))) && ok
		}
	}
	return ok
}

// because adds to a diagnostic what has no value: the fields that CUE points to, or else
// its message.
func (x *reader) because(d diag.Diagnostic, o problem.Problem, in []ast.Node) diag.Diagnostic {
	var names []string
	var uses, declared []model.Position
	slices.SortFunc(o.At, model.Position.Compare)
	for _, at := range o.At {
		switch name, isField := x.FieldAt(at); {
		case !isField || x.IsOf(at, in):
			uses = append(uses, at)
		case !slices.Contains(names, name):
			names, declared = append(names, name), append(declared, at)
		}
	}
	if len(names) > 0 {
		verb := "has"
		if len(names) > 1 {
			verb = "have"
		}
		d.Message += fmt.Sprintf(": %s %s no value", strings.Join(names, " and "), verb)
		d = d.Hinting("give " + strings.Join(names, " and ") + " a value, or a default with *…|…")
	} else {
		why, hint := problem.Reason(o.Messages[0])
		d.Message += ": " + why
		d = d.Hinting(hint)
	}
	uses = append(uses, x.All(cuevalue.Comprehensions(in, names))...)
	slices.SortFunc(uses, model.Position.Compare)
	d = d.InEach(slices.Compact(uses)...)
	for i, at := range declared {
		d = d.In(at, names[i]+" is declared here")
	}
	return d
}
