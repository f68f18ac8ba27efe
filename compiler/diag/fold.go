package diag

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// foldedDiagnostic is a diagnostic with the diagnostics that are printed together with it.
type foldedDiagnostic struct {
	Diagnostic
	consequences []Diagnostic // its consequences
	alike        []Diagnostic // the same diagnostics of other entities
}

// CausesFirst returns diagnostics in their order, but with consequences and repetitions of a
// diagnostic right after it. follows has the diagnostics that follow from an earlier one.
func CausesFirst(ds []Diagnostic) (out []Diagnostic, follows []bool) {
	for _, f := range fold(ds) {
		out, follows = append(out, f.Diagnostic), append(follows, false)
		for _, d := range f.consequences {
			out, follows = append(out, d), append(follows, true)
		}
		for _, d := range f.alike {
			out, follows = append(out, d), append(follows, false)
		}
	}
	return out, follows
}

// maxAlike is the number of warnings in full that differ only in their subject.
const maxAlike = 8

// fold groups diagnostics, in their order. It groups consequences with their cause. It
// groups a diagnostic with the first of its kind if both have the same message, or if both
// are among many warnings. It never groups errors in the platform's text with each other,
// because each has its own cause.
func fold(ds []Diagnostic) []foldedDiagnostic {
	causes := causesOf(ds)
	alike := map[string][]int{}
	for i, d := range ds {
		alike[d.kind()] = append(alike[d.kind()], i)
	}
	equal := map[string]int{} // by kind and message, in out
	at := map[int]int{}       // in out, of ds
	var out []foldedDiagnostic
	for i, d := range ds {
		if _, follows := causes.of(ds, i); follows {
			continue
		}
		kind := d.kind()
		same := kind + "\n" + d.Message
		switch {
		case d.Severity == Warning && len(alike[kind]) > maxAlike:
			same = kind
		case d.Code == Unassigned:
			same = kind + "\n" + d.entity()
		case d.Severity == Error && strings.HasPrefix(string(d.Code), "K1"):
			same = fmt.Sprint(i)
		}
		if first, ok := equal[same]; ok {
			out[first].alike = append(out[first].alike, d)
			at[i] = first
			continue
		}
		equal[same], at[i] = len(out), len(out)
		out = append(out, foldedDiagnostic{Diagnostic: d})
	}
	for i, d := range ds {
		if c, follows := causes.of(ds, i); follows {
			out[at[c]].consequences = append(out[at[c]].consequences, d)
		}
	}
	return out
}

// kind is the common part of diagnostics of one kind.
func (d Diagnostic) kind() string { return fmt.Sprintf("%s %s %s", d.Severity, d.Code, d.Hint) }

// causes are the numbers of the diagnostics from which others may follow. They have the
// first error and the first warning of each entity by its path, of each collection by its
// name, and of each assignment by its id.
type causes struct{ errors, warnings map[string]int }

// causesOf returns the causes among diagnostics. An error that itself follows from another
// is a cause only if there is no other.
func causesOf(ds []Diagnostic) causes {
	all := causes{map[string]int{}, map[string]int{}}
	for i, d := range ds {
		causes, of := all.warnings, d.Assignments
		if d.Severity == Error {
			causes = all.errors
		}
		if len(of) == 0 {
			of = []string{d.entity(), d.collection()}
			for _, path := range d.Also {
				of = append(of, Diagnostic{Path: path}.entity())
			}
		}
		for _, of := range of {
			first, known := causes[of]
			if !known || len(d.Because) == 0 && len(ds[first].Because) > 0 {
				causes[of] = i
			}
		}
	}
	return all
}

// of returns the number of the diagnostic that one follows from: an error from an error, a
// warning from either, and from the causes of that.
func (c causes) of(ds []Diagnostic, i int) (cause int, follows bool) {
	for range ds {
		next, known := firstOf(c.errors, ds[i].Because)
		if !known && ds[i].Severity == Warning {
			next, known = firstOf(c.warnings, ds[i].Because)
		}
		if !known || next == i {
			return i, follows
		}
		i, follows = next, true
	}
	return 0, false // a circle
}

// firstOf returns the value of the first of some keys that has a value. It returns false if
// no key has one.
func firstOf(has map[string]int, some []string) (int, bool) {
	for _, of := range some {
		if n, known := has[of]; known {
			return n, true
		}
	}
	return 0, false
}

// entity returns the path of the entity that the diagnostic is about, or "".
func (d Diagnostic) entity() string {
	names := model.Elements(d.Path)
	if len(names) > 1 && slices.Contains(model.CollectionNames, names[0]) {
		return model.Ref{Collection: names[0], Name: names[1]}.String()
	}
	if len(d.Sites) > 0 && d.Sites[0].Ref != (model.Ref{}) {
		return d.Sites[0].Ref.Entity().String()
	}
	return ""
}

// collection returns the name of the collection of the entity that the diagnostic is about, or
// "".
func (d Diagnostic) collection() string {
	if names := model.Elements(d.entity()); len(names) > 0 {
		return names[0]
	}
	return ""
}

// writeMore writes the diagnostics that are printed together with this one.
func (f foldedDiagnostic) writeMore(b *strings.Builder) {
	if n := len(f.consequences); n == 1 {
		fmt.Fprintf(b, "  because of it: %s%s\n", f.consequences[0].Message,
			f.consequences[0].scopeText())
	} else if n > 0 {
		fmt.Fprintf(b, "  and %d more because of it%s\n", n,
			few(f.consequences, func(d Diagnostic) string {
				if len(d.Assignments) > 0 {
					return d.Assignments[0]
				}
				return d.subject()
			}))
	}
	if more := f.more(f.alike); more != "" {
		fmt.Fprintf(b, "  %s\n", more)
	}
}

// more returns a text that names the other subjects of the diagnostic and of similar
// diagnostics, or "".
func (d Diagnostic) more(alike []Diagnostic) string {
	for _, path := range d.Also {
		alike = append(alike, Diagnostic{Path: path})
	}
	if len(alike) == 0 {
		return ""
	}
	return fmt.Sprintf("and %d more of %s%s", len(alike), d.Code, few(alike, Diagnostic.subject))
}

// subject returns the subject of a diagnostic: its path, or its position.
func (d Diagnostic) subject() string {
	if at := d.positions(); d.Path == "" && len(at) > 0 {
		return place(at[0])
	}
	return d.Path
}

// few names some subjects of diagnostics, after a colon; "" if they have no names.
func few(ds []Diagnostic, name func(Diagnostic) string) string {
	var names []string
	seen := map[string]bool{"": true}
	for _, d := range ds {
		if n := name(d); !seen[n] {
			names, seen[n] = append(names, n), true
		}
	}
	switch more := len(names) - shown; {
	case len(names) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf(": %s and %d more", strings.Join(names[:shown], ", "), more)
	}
	return ": " + strings.Join(names, ", ")
}
