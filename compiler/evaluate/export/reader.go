package export

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/problem"
	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// reader exports values that must be data, and reports why other values are not data.
type reader struct{ *scope }

// entity exports all fields of an entity except some, as data.
func (x *reader) entity(v cue.Value, ref model.Ref, but ...string) (model.Value, bool) {
	var out []model.Field
	ok := true
	for name, of := range cuevalue.Fields(v) {
		if slices.Contains(but, name) {
			continue
		}
		f, good := x.data(of, ref.At(model.Label(name)))
		out, ok = append(out, model.Field{Name: name, Value: f}), ok && good
	}
	return model.StructOf(out...), ok
}

// decode reads all fields of an entity except some into a Go type, by its JSON tags. It reads
// nothing and returns false if the entity is not data.
func (x *reader) decode(into any, v cue.Value, ref model.Ref, but ...string) bool {
	value, ok := x.entity(v, ref, but...)
	if ok {
		decode(value, into)
	}
	return ok
}

// data exports concrete data, defaults taken. If a part is not concrete, it reports the part
// and returns false.
func (x *reader) data(v cue.Value, ref model.Ref) (model.Value, bool) {
	v, _ = v.Default()
	x.note(v, ref)
	switch {
	case v.IncompleteKind() == cue.BottomKind:
		return model.Value{}, x.notConcrete(v, ref)
	case v.IncompleteKind() == cue.StructKind:
		var out []model.Field
		ok := true
		for name, of := range cuevalue.Fields(v) {
			f, good := x.data(of, ref.At(model.Label(name)))
			out, ok = append(out, model.Field{Name: name, Value: f}), ok && good
		}
		if expr.IsSecret(v) {
			return x.secret(out, ref, ok)
		}
		return model.StructOf(out...), ok
	case v.IncompleteKind() == cue.ListKind && expr.IsFinalList(v):
		it, err := v.List()
		if err != nil {
			return model.Value{}, x.notConcrete(v, ref)
		}
		var elems []model.Value
		ok := true
		for i := 0; it.Next(); i++ {
			e, good := x.data(it.Value(), ref.At(fmt.Sprintf("[%d]", i)))
			elems, ok = append(elems, e), ok && good
		}
		return model.ListOf(elems...), ok
	case v.IsConcrete():
		return x.scalar(v, ref)
	}
	return model.Value{}, x.notConcrete(v, ref)
}

func (x *reader) secret(of []model.Field, ref model.Ref, ok bool) (model.Value, bool) {
	secret := model.SecretOf(of...)
	for _, name := range []string{"store", "key"} {
		if _, given := secret.Lookup(name); !given {
			x.Fail(ref, diag.New(diag.Missing, fmt.Sprintf("the secret reference has no %s", name)).
				Hinting("a reference to a secret has a store and a key"))
			ok = false
		}
	}
	return secret, ok
}

// scalar exports a concrete scalar.
func (x *reader) scalar(v cue.Value, ref model.Ref) (model.Value, bool) {
	switch v.Kind() {
	case cue.BytesKind:
		x.Fail(ref, diag.New(diag.Bytes, fmt.Sprintf("%s is of type bytes", ref.Path)).
			Hinting("write a text in double quotes, and other bytes with base64.Encode"))
		return model.Value{}, false
	case cue.FloatKind:
		return x.float(v, ref)
	}
	value, err := expr.Scalar(v)
	if err != nil {
		panic(fmt.Sprintf("evaluate: %s: %v", ref, err)) // all kinds of scalars are data
	}
	return value, true
}

// float exports a number with its author's digits. It does not choose between two authors,
// because CUE would choose by the order of files.
func (x *reader) float(v cue.Value, ref model.Ref) (model.Value, bool) {
	spelt, err := expr.Spellings(v)
	switch {
	case err != nil:
		x.Fail(ref, x.At(diag.New(diag.NumberRange, fmt.Sprintf("%s cannot be held: %v", ref.Path, err)),
			v).
			Hinting("exponents go from -100000 to 100000: write a smaller number, or a string"))
		return model.Value{}, false
	case len(spelt) > 1:
		d := diag.New(diag.ConflictingValues,
			fmt.Sprintf("conflicting values for %s: one number in two texts", ref.Path))
		for _, s := range spelt {
			d = d.In(x.Position(s.Pos), s.Value.Text())
		}
		x.Fail(ref, d.Hinting("applications get a number as it is written: write it in one way"))
		return model.Value{}, false
	}
	return spelt[0].Value, true
}

// notConcrete reports why a value is not data; it always returns false. check has reported the
// errors of the value itself.
func (x *reader) notConcrete(v cue.Value, ref model.Ref) bool {
	if v.Validate() != nil {
		x.Invalid[ref.Entity()] = true
		return false
	}
	if cuevalue.IsUnknown(v) {
		x.unknown(v, ref)
		return false
	}
	err := v.Validate(cue.Concrete(true))
	if err == nil {
		x.Fail(ref, diag.New(diag.NotConcrete, ref.Path+" has no value"))
		return false
	}
	for _, o := range problem.In(x.Places, err) {
		if len(o.Path) == 0 {
			continue
		}
		var s *shape.Shape
		if len(o.Path) > 2 && slices.Contains(model.CollectionNames, o.Path[0]) {
			s = shape.Of(o.Path[0]).At(o.Path[2:])
		}
		d := o.Diagnostic(s, nil)
		if len(d.Sites) == 0 {
			d = d.At(ref, "")
		}
		x.Fail(ref, d)
	}
	return false
}

// decode reads exported data into a Go type by its JSON tags. The schema has checked the data,
// so a mismatch is a bug.
func decode(v model.Value, into any) {
	if err := json.Unmarshal(v.AppendJSON(nil), into); err != nil {
		panic(fmt.Sprintf("evaluate: the schema and %T differ: %v", into, err))
	}
}

// elements calls f for each element of a list that is a field of a struct, if the field exists.
func (x *reader) elements(of cue.Value, ref model.Ref, name string,
	f func(of cue.Value, ref model.Ref)) {
	v := cuevalue.Field(of, name)
	if !v.Exists() {
		return
	}
	ref = ref.At(name)
	x.note(v, ref)
	v, _ = v.Default()
	it, err := v.List()
	if err != nil || !expr.IsFinalList(v) {
		x.notConcrete(v, ref)
		return
	}
	for i := 0; it.Next(); i++ {
		at := ref.At(fmt.Sprintf("[%d]", i))
		x.note(it.Value(), at)
		f(it.Value(), at)
	}
}

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
		d = x.because(d, all[0], cuevalue.SourceNodes(v)) // the other problems follow from it
	}
	x.Fail(ref, d)
}

// unknownParts reports every unknown part of a value, and every part of type bytes, which is
// not data either. It returns whether the value has no such parts.
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
			Hinting("write a text in double quotes, and other bytes with base64.Encode"))
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

// because adds the reason for a missing value to a diagnostic: the fields that CUE points to,
// or CUE's message.
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
		why, hint := o.Reason()
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
