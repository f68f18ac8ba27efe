package schedule

import (
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// report collects diagnostics: one for each problem, with all the assignments that it
// concerns.
type report struct {
	environment string
	found       []diag.Diagnostic
	concerned   [][]string // for each of found: the assignments
	number      map[finding]int
}

// finding identifies equal diagnostics.
type finding struct {
	code    diag.Code
	path    string
	message string
}

// add reports d. If an id is given, d concerns one more assignment.
func (r *report) add(d diag.Diagnostic, ids ...string) {
	key := finding{d.Code, d.Path, d.Message}
	n, ok := r.number[key]
	if !ok {
		if r.number == nil {
			r.number = make(map[finding]int)
		}
		n = len(r.found)
		r.number[key] = n
		d.Environment = r.environment
		r.found = append(r.found, d)
		r.concerned = append(r.concerned, nil)
	}
	r.concerned[n] = append(r.concerned[n], ids...)
}

// diagnostics returns the reported diagnostics, in the order of their first reports.
func (r *report) diagnostics() []diag.Diagnostic {
	for i := range r.found {
		r.found[i] = r.found[i].For(r.concerned[i]...)
	}
	return r.found
}
