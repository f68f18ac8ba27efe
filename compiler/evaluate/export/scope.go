package export

import (
	"cmp"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/finding"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/loader"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/problem"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// scope is an evaluated package with the findings about it. All that exports or checks
// CUE values has one, and writes to it.
type scope struct {
	*loader.Package
	*finding.Set
}

// note records where a value is written: exactly for a scalar, by declaration
// for anything else.
func (x *scope) note(v cue.Value, ref model.Ref) {
	if v.IncompleteKind() != cue.StructKind {
		if p := x.Of(v.Pos()); !p.IsZero() {
			x.Positions.Add(ref, p)
			return
		}
	}
	for _, p := range x.Written(v) {
		x.Positions.Add(ref, p)
	}
}

// noteAll records where a value and everything in it is written.
func (x *scope) noteAll(v cue.Value, ref model.Ref) {
	x.note(v, ref)
	if v.IncompleteKind() == cue.StructKind {
		for name, of := range cuevalue.Fields(v) {
			x.noteAll(of, ref.At(model.Label(name)))
		}
	}
}

// noteContract records where a field of a contract is written: all places where
// these are several, since any may be the one that is broken.
func (x *scope) noteContract(v cue.Value, ref model.Ref) {
	if places := x.Written(v); len(places) > 1 {
		for _, p := range places {
			x.Positions.Add(ref, p)
		}
		return
	}
	x.note(v, ref)
}

// At adds to a diagnostic where values are written.
func (x *scope) At(d diag.Diagnostic, values ...cue.Value) diag.Diagnostic {
	for _, v := range values {
		d = d.InEach(x.Written(v)...)
	}
	return d
}

// writtenIn returns where in a folder a value is written.
func (x *scope) writtenIn(v cue.Value, folder string) []model.Position {
	return slices.DeleteFunc(x.Written(v), func(p model.Position) bool { return !strings.HasPrefix(p.File, folder) })
}

// checkUnsound reports all errors of a package.
func (x *scope) checkUnsound(ref model.Ref) {
	for _, o := range problem.In(x.Places, x.Value.Validate()) {
		for _, o := range problem.Locate(x.Places, o) {
			x.Fail(ref, o.Diagnostic(nil, nil).On(cmp.Or(problem.JoinPath(o.Path), "values")))
		}
	}
}
