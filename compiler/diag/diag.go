// Package diag has kalypso's diagnostics of a platform: errors and warnings as
// values, with a stable code, every position, the assignments concerned and a
// remedy.
//
// A diagnostic names values of the platform by reference; Resolve gives it its
// positions when it is printed, so that a cached diagnostic stays true when a
// line moves.
//
// For example, suppose that hello-world-performance-test of examples/hello-world depends on
// observability-promethues. Package schedule makes a [Diagnostic] with the code K2103 and a
// reference to the dependsOn of this target. Resolve turns the reference into the position of this
// field, such as environments/dev/more.cue:3:66. WriteText prints the message, the position with
// its line, and
//
//	hint: did you mean observability-prometheus?
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Severity reports whether a diagnostic stops what it concerns.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Diagnostic is one message to the user.
type Diagnostic struct {
	Code     Code
	Severity Severity
	Message  string // one line, without a full stop
	// Path is the CUE path that the diagnostic is about; for a composed value,
	// its path in the values.
	Path string
	// Also are the paths of other entities with the same problem from one text, such as the
	// body of a loop; sorted after Sort.
	Also []string
	// Sites are all the places that the user may want to see, the most helpful first.
	Sites []Site
	// Excerpt is the line of the first site, if it is known.
	Excerpt Excerpt
	// Assignments that the diagnostic concerns, as
	// <environment>/<clusterType>/<workload>-<target>, sorted.
	Assignments []string
	// Hint describes how to fix the problem, if there is one way to name.
	Hint string
	// Because are the sources of errors from which the diagnostic may follow. They are
	// paths of entities, names of collections, for errors of any of their entities, or
	// names of assignments. The diagnostic follows from the first that has an error.
	Because []string
	// Environment is the environment of the diagnostic; "" for the base.
	Environment string
	// Suggestion is the part of the fix that an editor can apply.
	Suggestion Suggestion
}

// Suggestion is a change of the platform's text that a hint names, as data. Without one
// it is the zero Suggestion.
type Suggestion struct {
	// Wrong is a misspelt word at one of the sites, or inside the text there. Right is the
	// word that the author probably meant.
	Wrong, Right string
	// Mistake reports that Wrong is almost certainly a mistake: no label or field has that
	// name, or the value is one edit away from Right.
	Mistake bool
	// ToDefaults is a value of a config, in its values, that could move to its defaults.
	ToDefaults model.Ref
	// Import is the path of a package that the file of the first site should import.
	Import string
}

// Site is a place that a diagnostic points to, with a note about it. The place is the
// position, or a reference that Resolve turns into positions.
type Site struct {
	Ref      model.Ref
	Position model.Position
	Note     string
}

// New returns a diagnostic with its code's severity. Like all texts of a diagnostic,
// the message is kept without the credentials of URLs.
func New(code Code, message string) Diagnostic {
	return Diagnostic{Code: code, Severity: code.Severity(), Message: credential.Hide(message)}
}

// At adds a reference as a site.
func (d Diagnostic) At(ref model.Ref, note string) Diagnostic {
	d.Sites = append(slices.Clip(d.Sites), Site{Ref: ref, Note: credential.Hide(note)})
	return d
}

// In adds a position as a site.
func (d Diagnostic) In(p model.Position, note string) Diagnostic {
	if !p.IsZero() {
		d.Sites = append(slices.Clip(d.Sites), Site{Position: p, Note: credential.Hide(note)})
	}
	return d
}

// InEach adds positions as sites, without notes.
func (d Diagnostic) InEach(positions ...model.Position) Diagnostic {
	for _, p := range positions {
		d = d.In(p, "")
	}
	return d
}

// On sets the path that the diagnostic is about.
func (d Diagnostic) On(path string) Diagnostic {
	d.Path = credential.Hide(path)
	return d
}

// Hinting sets the way out.
func (d Diagnostic) Hinting(hint string) Diagnostic {
	d.Hint = credential.Hide(hint)
	return d
}

// Suggesting sets the fix for a misspelt word: the candidate that the author probably
// meant, or else the list of candidates.
func (d Diagnostic) Suggesting(word string, candidates []string) Diagnostic {
	d.Suggestion = Suggestion{}
	if near := spelling.Meant(word, candidates); near != "" {
		d.Suggestion = Suggestion{Wrong: word, Right: near}
	}
	return d.Hinting(spelling.DidYouMean(word, candidates))
}

// EscalateMistakes returns the diagnostics with an error for each scheduling policy that
// selects nothing because of a mistake. Builds report only a warning, so a typo does not
// stop the deployment of everything else.
func EscalateMistakes(ds []Diagnostic) []Diagnostic {
	out := slices.Clone(ds)
	for i, d := range out {
		if d.Code == SelectsNothing && d.Suggestion.Mistake &&
			strings.HasPrefix(d.Path, "schedulingPolicies.") {
			out[i].Severity = Error
			out[i].Hint += "; if it is meant to select nothing, write allowEmpty: true on the policy"
		}
	}
	return out
}

// For adds an assignment that the diagnostic concerns.
func (d Diagnostic) For(assignments ...string) Diagnostic {
	d.Assignments = append(slices.Clip(d.Assignments), assignments...)
	slices.Sort(d.Assignments)
	d.Assignments = slices.Compact(d.Assignments)
	return d
}

// Following sets the sources of errors from which the diagnostic may follow. It ignores "".
func (d Diagnostic) Following(of ...string) Diagnostic {
	d.Because = slices.DeleteFunc(of, func(of string) bool { return of == "" })
	return d
}

// Passing reports whether a result with these diagnostics may differ the next time with the
// same input, so it must not be cached.
func Passing(ds []Diagnostic) bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Code == Unbounded })
}

// Resolve replaces references by their positions in the table. A reference with several
// positions becomes several sites. A reference without positions is dropped.
func Resolve(ds []Diagnostic, table *model.Positions) {
	for i := range ds {
		var sites []Site
		for _, s := range ds[i].Sites {
			if !s.Position.IsZero() {
				sites = append(sites, s)
				continue
			}
			for _, p := range table.Of(s.Ref) {
				sites = append(sites, Site{Ref: s.Ref, Position: p, Note: s.Note})
			}
		}
		ds[i].Sites = sites
	}
}

// Sort orders resolved diagnostics by position, then by code, path and message. Diagnostics
// without a position come last. It merges diagnostics that differ only in their assignments
// or environment. It also merges diagnostics that one text causes in several entities, such
// as the body of a loop.
func Sort(ds []Diagnostic) []Diagnostic {
	slices.SortStableFunc(ds, compare)
	var out []Diagnostic
	inEntities := map[string]int{} // the first diagnostic that each text causes, in out
	for _, d := range ds {
		if n := len(out); n > 0 && same(out[n-1], d) {
			out[n-1] = out[n-1].For(d.Assignments...).also(d.Also...)
			continue
		}
		if text := d.text(); text != "" {
			first, ok := inEntities[text]
			if ok && out[first].entity() != d.entity() {
				out[first] = out[first].also(d.Path).also(d.Also...)
				continue
			}
			if !ok {
				inEntities[text] = len(out)
			}
		}
		out = append(out, d)
	}
	for i := range out {
		slices.Sort(out[i].Also)
		out[i].Also = slices.Compact(out[i].Also)
	}
	return out
}

// also adds the paths of other entities.
func (d Diagnostic) also(paths ...string) Diagnostic {
	for _, path := range paths {
		if path != d.Path {
			d.Also = append(d.Also, path)
		}
	}
	return d
}

// text identifies the text of the platform that causes an error of an entity, and the part
// of the entity that the error is about. It returns "" for another diagnostic.
func (d Diagnostic) text() string {
	names := model.Elements(d.Path)
	if d.Severity != Error || len(names) < 2 || len(d.Assignments) > 0 || len(d.Sites) == 0 ||
		d.entity() == "" {
		return ""
	}
	return fmt.Sprint(d.Code, names[0], names[2:], d.positions())
}

func compare(a, b Diagnostic) int {
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		slices.CompareFunc(a.Sites, b.Sites,
			func(s, t Site) int { return s.Position.Compare(t.Position) }),
		cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Path, b.Path),
		cmp.Compare(a.Message, b.Message),
		slices.Compare(a.Assignments, b.Assignments),
	)
}

// rank orders diagnostics. TooManyRemovals comes first, because then the build writes
// nothing. Diagnostics without a site come last, since they follow from the others.
func rank(d Diagnostic) int {
	switch {
	case d.Code == TooManyRemovals:
		return 0
	case len(d.Sites) > 0:
		return 1
	}
	return 2
}

func same(a, b Diagnostic) bool {
	return a.Code == b.Code && a.Severity == b.Severity && a.Path == b.Path &&
		a.Message == b.Message && a.Hint == b.Hint &&
		slices.EqualFunc(a.Sites, b.Sites,
			func(s, t Site) bool { return s.Position == t.Position && s.Note == t.Note })
}

// Errors reports whether one of the diagnostics is an error.
func Errors(ds []Diagnostic) bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// FillIn returns the CUE for a text that has a variable of a shell, or a template of Helm; ""
// for another text.
func FillIn(text string) string {
	if !strings.Contains(text, "${") && !strings.Contains(text, "{{") {
		return ""
	}
	return `nothing is filled in here: refer to a field, such as _name, by its name, or in a text by "\(_name)"`
}
