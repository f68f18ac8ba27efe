package evaluate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// findings are what is known of a package beside its values: where they are
// written, and the diagnostics about them.
type findings struct {
	positions *model.Positions
	ds        []diag.Diagnostic
	invalid   map[model.Ref]bool // the entities that have errors
	faults    []string           // the paths of errors
	// incomplete says that an error hides which assignments there are.
	incomplete bool

	// exported is the entity that is being exported, and about has for each diagnostic
	// the entity that it was reported for; zero for none.
	exported model.Ref
	about    []model.Ref
	// alike says that a diagnostic of one entity was not repeated for another.
	alike map[[2]model.Ref]bool
}

func newFindings() *findings {
	return &findings{positions: &model.Positions{}, invalid: map[model.Ref]bool{}, alike: map[[2]model.Ref]bool{}}
}

// report adds a diagnostic, for the entity that is being exported.
func (x *findings) report(d diag.Diagnostic) {
	x.ds, x.about = append(x.ds, d), append(x.about, x.exported)
}

// fail reports a diagnostic about the entity that ref is in. An error makes the entity
// invalid. What a template says wrong is wrong in each entity, and reported once.
func (x *findings) fail(ref model.Ref, d diag.Diagnostic) {
	if len(d.Sites) == 0 {
		d = d.At(ref, "")
	}
	if d.Path == "" {
		d.Path = ref.String()
	}
	known := slices.IndexFunc(x.ds, func(o diag.Diagnostic) bool {
		return o.Code == d.Code && o.Message == d.Message && slices.Equal(x.sites(o), x.sites(d))
	})
	if known < 0 {
		x.report(d)
	} else if x.about[known] != x.exported {
		x.alike[[2]model.Ref{x.about[known], x.exported}] = true
	}
	if d.Severity == diag.Error {
		x.faults = append(x.faults, d.Path)
		x.invalid[ref.Entity()] = true
	}
}

// sites returns the positions of a diagnostic.
func (x *findings) sites(d diag.Diagnostic) []model.Position {
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
func (x *findings) faulty(ref model.Ref, but ...string) bool {
	return slices.ContainsFunc(x.faults, func(path string) bool {
		return within(path, ref.String()) && !slices.ContainsFunc(but, func(name string) bool { return within(path, ref.At(name).String()) })
	})
}

// reportedAt says whether there is a diagnostic about a value.
func (x *findings) reportedAt(ref model.Ref) bool {
	return slices.ContainsFunc(x.ds, func(d diag.Diagnostic) bool { return d.Path == ref.String() })
}

// atEntity adds to a diagnostic where an entity is written.
func (x *findings) atEntity(d diag.Diagnostic, ref model.Ref) diag.Diagnostic {
	for _, p := range x.positions.Of(ref) {
		d = d.In(p, "")
	}
	return d
}

// hideAll marks the whole environment as not known: what it has may be in part
// in what cannot be read, configs included, so that its output stays as it is.
func (x *findings) hideAll(environment string) {
	x.invalid[model.Ref{Collection: "environments", Name: environment}] = true
	x.incomplete = true
}

// guard calls f, which asks CUE about an entity, or about a part of one. Where CUE
// panics, that is an error of the entity, and the others are exported. It returns
// whether f came to its end.
func (x *findings) guard(ref model.Ref, f func()) bool {
	what := ref.Path
	if what == "" {
		what = ref.Name
	}
	d, ok := guarded(what, f)
	if !ok {
		x.fail(ref, d)
	}
	return ok
}

// guarded calls f, and returns whether it came to its end; else the diagnostic says
// why.
func guarded(what string, f func()) (d diag.Diagnostic, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			d = diag.New(diag.Crash, fmt.Sprintf("CUE fails at %s, by a mistake of its own: %v", what, p)).
				Hinting("write it in another way: with fewer comprehensions inside each other, or with names that are identifiers")
		}
	}()
	f()
	return d, true
}

// within says whether a path is another, or below it.
func within(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
