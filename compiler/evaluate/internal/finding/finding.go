// Package finding collects findings about a package, in addition to its values. The findings
// are the positions of values, and diagnostics, each with the entity that it concerns.
package finding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Set has the positions of a package's values, and the diagnostics about them. Callers may read
// its fields and add to them. Only one goroutine may use it.
type Set struct {
	Positions   *model.Positions
	Diagnostics []diag.Diagnostic
	Invalid     map[model.Ref]bool // the entities that have errors
	faults      []string           // the paths of errors
	paths       map[string]bool    // of the diagnostics that are indexed
	numbers     map[string]int     // their numbers, by code, message and sites
	indexed     int                // the number of indexed diagnostics
	// Incomplete reports whether an error hides which assignments there are.
	Incomplete bool

	// Current is the entity that is being exported. About has the entity of each diagnostic, or
	// zero if a diagnostic does not concern an entity.
	Current model.Ref
	About   []model.Ref
	// Alike has pairs of entities: a diagnostic of the first one was not repeated for the
	// second one.
	Alike map[[2]model.Ref]bool
}

// New returns an empty set.
func New() *Set {
	return &Set{Positions: &model.Positions{}, Invalid: map[model.Ref]bool{},
		Alike: map[[2]model.Ref]bool{}}
}

// Report adds a diagnostic, for the entity that is being exported.
func (x *Set) Report(d diag.Diagnostic) {
	x.Diagnostics, x.About = append(x.Diagnostics, d), append(x.About, x.Current)
}

// Fail reports a diagnostic about the entity that ref is in. An error makes the entity invalid.
// A mistake in a template or a loop affects several entities. Fail reports such a mistake once,
// with the paths of the other entities.
func (x *Set) Fail(ref model.Ref, d diag.Diagnostic) {
	if len(d.Sites) == 0 {
		d = d.At(ref, "")
	}
	if d.Path == "" {
		d.Path = ref.String()
	}
	x.index()
	number, repeated := x.numbers[x.keyOf(d)]
	if !repeated {
		x.Report(d)
	} else if first := &x.Diagnostics[number]; first.Path != d.Path {
		first.Also = append(first.Also, d.Path) // sorted later
	}
	if repeated && x.About[number] != x.Current {
		x.Alike[[2]model.Ref{x.About[number], x.Current}] = true
	}
	if d.Severity == diag.Error {
		x.faults = append(x.faults, d.Path)
		x.Invalid[ref.Entity()] = true
	}
}

// index indexes the diagnostics, because there may be too many to compare each with all others.
func (x *Set) index() {
	if x.numbers == nil {
		x.numbers, x.paths = map[string]int{}, map[string]bool{}
	}
	for ; x.indexed < len(x.Diagnostics); x.indexed++ {
		d := x.Diagnostics[x.indexed]
		x.paths[d.Path] = true
		key := x.keyOf(d)
		if _, before := x.numbers[key]; !before {
			x.numbers[key] = x.indexed
		}
	}
}

// keyOf returns the code, the message and the sites of a diagnostic, as text.
func (x *Set) keyOf(d diag.Diagnostic) string {
	return fmt.Sprint(d.Code, " ", d.Message, " ", x.sites(d))
}

// sites returns the positions of a diagnostic.
func (x *Set) sites(d diag.Diagnostic) []model.Position {
	var out []model.Position
	for _, s := range d.Sites {
		if s.Position.IsZero() {
			out = append(out, x.Positions.Of(s.Ref)...)
		} else {
			out = append(out, s.Position)
		}
	}
	return out
}

// Faulty reports whether an error is at a value, or in a part of it except the parts in but.
func (x *Set) Faulty(ref model.Ref, but ...string) bool {
	return slices.ContainsFunc(x.faults, func(path string) bool {
		return Within(path, ref.String()) &&
			!slices.ContainsFunc(but, func(name string) bool { return Within(path, ref.At(name).String()) })
	})
}

// ReportedAt reports whether there is a diagnostic about a value.
func (x *Set) ReportedAt(ref model.Ref) bool {
	x.index()
	return x.paths[ref.String()]
}

// HideAll marks the whole environment as unknown: the unreadable part may contain any entity,
// including configs. The environment's output then stays unchanged.
func (x *Set) HideAll(environment string) {
	x.Invalid[model.Ref{Collection: "environments", Name: environment}] = true
	x.Incomplete = true
}

// Guard calls f, which evaluates an entity, or a part of one, with CUE. If CUE panics, Guard
// reports an error of the entity, and the export of the others continues. It returns whether f
// returned.
func (x *Set) Guard(ref model.Ref, f func()) bool {
	what := ref.Path
	if what == "" {
		what = ref.Name
	}
	d, ok := Guarded(what, f)
	if !ok {
		x.Fail(ref, d)
	}
	return ok
}

// Guarded calls f, and returns whether f returned. If f panics, Guarded returns a diagnostic;
// what names the place in its message.
func Guarded(what string, f func()) (d diag.Diagnostic, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			d = diag.New(diag.Crash, fmt.Sprintf("CUE fails at %s, by a mistake of its own: %v", what, p)).
				Hinting("write it in another way: with fewer comprehensions inside each other, or with names " +
					"that are identifiers")
		}
	}()
	f()
	return d, true
}

// Within reports whether a path is equal to another path, or below it.
func Within(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
