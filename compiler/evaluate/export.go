package evaluate

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// fields iterates over the regular fields of a struct, in an erroneous one too.
// Those that are required and absent are left out, as CUE does not.
func fields(v cue.Value) iter.Seq2[string, cue.Value] {
	return func(yield func(string, cue.Value) bool) {
		it, err := v.Fields()
		for err == nil && it.Next() {
			if !isAbsent(it.Value()) && !yield(it.Selector().Unquoted(), it.Value()) {
				return
			}
		}
	}
}

// isAbsent says whether a field is only there because it is required.
func isAbsent(v cue.Value) bool {
	err := v.Err()
	if err == nil {
		return false
	}
	first := errors.Errors(err)[0]
	return strings.HasSuffix(text(first), "required but not present") && len(first.Path()) == len(v.Path().Selectors())
}

// reader reads values that must be data, and says why others are none.
type reader struct{ *scope }

// data exports concrete data, defaults taken. It reports what is not concrete,
// and then returns false.
func (x *reader) data(v cue.Value, ref model.Ref) (model.Value, bool) {
	v, _ = v.Default()
	x.note(v, ref)
	switch {
	case v.IncompleteKind() == cue.BottomKind:
		return model.Value{}, x.notConcrete(v, ref)
	case v.IncompleteKind() == cue.StructKind:
		return x.structData(v, ref)
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

func (x *reader) structData(v cue.Value, ref model.Ref) (model.Value, bool) {
	var out []model.Field
	ok := true
	for name, of := range fields(v) {
		f, good := x.data(of, ref.At(model.Label(name)))
		out, ok = append(out, model.Field{Name: name, Value: f}), ok && good
	}
	if expr.IsSecret(v) {
		return x.secret(out, ref, ok)
	}
	return model.StructOf(out...), ok
}

func (x *reader) secret(of []model.Field, ref model.Ref, ok bool) (model.Value, bool) {
	secret := model.SecretOf(of...)
	for _, name := range []string{"store", "key"} {
		if _, given := secret.Lookup(name); !given {
			x.fail(ref, diag.New(diag.Missing, fmt.Sprintf("the secret reference has no %s", name)).
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
		x.fail(ref, diag.New(diag.Bytes, fmt.Sprintf("%s is of type bytes", ref.Path)).
			Hinting("write a string, for instance with base64.Encode"))
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

// float exports a number with the digits that its author wrote. Of two authors
// neither is preferred: CUE would have the order of files decide.
func (x *reader) float(v cue.Value, ref model.Ref) (model.Value, bool) {
	spelt, err := expr.Spellings(v)
	switch {
	case err != nil:
		x.fail(ref, x.at(diag.New(diag.NumberRange, fmt.Sprintf("%s cannot be held: %v", ref.Path, err)), v).
			Hinting("exponents go from -100000 to 100000: write a smaller number, or a string"))
		return model.Value{}, false
	case len(spelt) > 1:
		d := diag.New(diag.ConflictingValues, fmt.Sprintf("conflicting values for %s: one number in two texts", ref.Path))
		for _, s := range spelt {
			d = d.In(x.of(s.Pos), s.Value.Text())
		}
		x.fail(ref, d.Hinting("applications get a number as it is written: write it in one way"))
		return model.Value{}, false
	}
	return spelt[0].Value, true
}

// notConcrete reports why a value is no data; it returns false. What CUE says of
// the value as it stands, check has reported.
func (x *reader) notConcrete(v cue.Value, ref model.Ref) bool {
	if v.Validate() != nil {
		x.invalid[ref.Entity()] = true
		return false
	}
	if isUnknown(v) {
		x.unknown(v, ref)
		return false
	}
	err := v.Validate(cue.Concrete(true))
	if err == nil {
		x.fail(ref, diag.New(diag.NotConcrete, ref.Path+" has no value"))
		return false
	}
	for _, o := range problemsIn(x.places, err) {
		if len(o.path) == 0 {
			continue
		}
		var s *shape
		if len(o.path) > 2 && slices.Contains(model.CollectionNames, o.path[0]) {
			s = entityShape(o.path[0]).at(o.path[2:])
		}
		d := o.diagnostic(s, nil)
		if len(d.Sites) == 0 {
			d = d.At(ref, "")
		}
		x.fail(ref, d)
	}
	return false
}

// decode reads exported data into a Go type by its JSON tags. The schema has
// checked it, so that what does not fit is a mistake of ours.
func decode(v model.Value, into any) {
	if err := json.Unmarshal(v.AppendJSON(nil), into); err != nil {
		panic(fmt.Sprintf("evaluate: the schema and %T differ: %v", into, err))
	}
}
