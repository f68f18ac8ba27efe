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

// exporter turns one environment's CUE values into the model. It notes where
// everything is written, and what is wrong.
type exporter struct {
	*loaded
	positions  *model.Positions
	ds         []diag.Diagnostic
	invalid    map[model.Ref]bool
	faults     []string // the paths of errors
	incomplete bool
	// undeclared are the collections that do not have the schema's type.
	undeclared map[string]bool

	// wants says which entities to export; nil for all.
	wants    func(model.Ref) bool
	entities []model.Ref // that there are, sick ones included
	uses     []Use

	// exported is the entity that is being exported, and of those that the diagnostics
	// were reported for; zero for none.
	exported model.Ref
	about    []model.Ref
	// alike says that a diagnostic of one entity was not repeated for another.
	alike map[[2]model.Ref]bool
}

func newExporter(l *loaded) *exporter {
	return &exporter{loaded: l, positions: &model.Positions{}, invalid: map[model.Ref]bool{}, undeclared: map[string]bool{}, alike: map[[2]model.Ref]bool{}}
}

func (x *exporter) report(d diag.Diagnostic) {
	x.ds, x.about = append(x.ds, d), append(x.about, x.exported)
}

// fail reports a diagnostic about the entity that ref is in, which is sick with it.
func (x *exporter) fail(ref model.Ref, d diag.Diagnostic) {
	if len(d.Sites) == 0 {
		d = d.At(ref, "")
	}
	if d.Path == "" {
		d.Path = ref.String()
	}
	// What a template says wrong is wrong in each entity, and one mistake.
	told := slices.IndexFunc(x.ds, func(o diag.Diagnostic) bool {
		return o.Code == d.Code && o.Message == d.Message && slices.Equal(x.sites(o), x.sites(d))
	})
	if told < 0 {
		x.report(d)
	} else if x.about[told] != x.exported {
		x.alike[[2]model.Ref{x.about[told], x.exported}] = true
	}
	if d.Severity == diag.Error {
		x.faults = append(x.faults, d.Path)
		x.invalid[model.Ref{Collection: ref.Collection, Name: ref.Name}] = true
	}
}

// sites are the positions of a diagnostic.
func (x *exporter) sites(d diag.Diagnostic) []model.Position {
	var out []model.Position
	for _, s := range d.Sites {
		if s.Position.IsZero() {
			out = append(out, x.positions.Of(s.Ref)...)
		} else {
			out = append(out, s.Position)
		}
	}
	return out
}

// faulty says whether an error is at a value, or in it but not in the part of
// it that is named.
func (x *exporter) faulty(ref model.Ref, but ...string) bool {
	return slices.ContainsFunc(x.faults, func(path string) bool {
		return within(path, ref.String()) && !slices.ContainsFunc(but, func(name string) bool { return within(path, ref.At(name).String()) })
	})
}

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

// note records where a value is written: exactly for a scalar, by declaration
// for anything else.
func (x *exporter) note(v cue.Value, ref model.Ref) {
	if v.IncompleteKind() != cue.StructKind {
		if p := x.of(v.Pos()); !p.IsZero() {
			x.positions.Add(ref, p)
			return
		}
	}
	for _, p := range x.written(v) {
		x.positions.Add(ref, p)
	}
}

// noteAll records where a value and everything in it is written.
func (x *exporter) noteAll(v cue.Value, ref model.Ref) {
	x.note(v, ref)
	if v.IncompleteKind() == cue.StructKind {
		for name, of := range fields(v) {
			x.noteAll(of, ref.At(model.Label(name)))
		}
	}
}

// data exports concrete data, defaults taken. It reports what is not concrete,
// and then returns false.
func (x *exporter) data(v cue.Value, ref model.Ref) (model.Value, bool) {
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

func (x *exporter) structData(v cue.Value, ref model.Ref) (model.Value, bool) {
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

func (x *exporter) secret(of []model.Field, ref model.Ref, ok bool) (model.Value, bool) {
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
func (x *exporter) scalar(v cue.Value, ref model.Ref) (model.Value, bool) {
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
func (x *exporter) float(v cue.Value, ref model.Ref) (model.Value, bool) {
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
func (x *exporter) notConcrete(v cue.Value, ref model.Ref) bool {
	if v.Validate() != nil {
		x.invalid[model.Ref{Collection: ref.Collection, Name: ref.Name}] = true
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
	for _, o := range x.problems(err) {
		if len(o.path) == 0 {
			continue
		}
		var s *shape
		if len(o.path) > 2 && slices.Contains(collectionNames(), o.path[0]) {
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
