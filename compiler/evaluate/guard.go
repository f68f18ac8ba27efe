package evaluate

import (
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// guard calls f, which asks CUE about an entity, or about a part of one. Where CUE
// panics, that is an error of the entity, and the others are exported. It returns
// whether f came to its end.
func (x *exporter) guard(ref model.Ref, f func()) bool {
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
