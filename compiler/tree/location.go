package tree

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// location tells where an environment's folder is: it returns a path in it as the
// user would open it.
type location func(p string) string

// placed says in a RecordError where the folder is.
func (at location) placed(err error) error {
	var bad *RecordError
	if errors.As(err, &bad) {
		bad.File = at(bad.Path)
	}
	return err
}

// unreadable reports that a file of ownFolder cannot be used.
func (at location) unreadable(p string, err error) []problem {
	bad := &RecordError{Path: p, File: at(p), Err: err}
	return []problem{{bad.Diagnostic(), bad.adoptable()}}
}

// belongs reports a record or journal of another platform or environment.
func (at location) belongs(st *state, o Options) []problem {
	check := func(p, platform, environment string) []problem {
		if platform == o.Platform && (environment == o.Environment || slices.Contains(o.Formerly, environment)) {
			return nil
		}
		message := fmt.Sprintf("the folder belongs to environment %s of platform %s, not to %s of %s",
			environment, platform, o.Environment, o.Platform)
		report := at.at(diag.New(diag.ForeignRecord, message), p)
		hint := "write to a folder, or a branch, of its own"
		if platform == o.Platform {
			hint += fmt.Sprintf("; if %s was renamed to %s, write environments: %[2]s: formerly: %[1]q",
				environment, o.Environment)
		}
		return []problem{{report.Hinting(hint), false}}
	}
	if r := st.record; r != nil {
		return check(recordPath, r.Platform, r.Environment)
	}
	if j := st.journal; j != nil {
		return check(journalPath, j.Platform, j.Environment)
	}
	return nil
}

// foreign reports that what stands at p is not kalypso's.
func (at location) foreign(p, what string) diag.Diagnostic {
	return at.at(diag.New(diag.ForeignFile, p+" "+what), p)
}

// at points a diagnostic to a path in the folder, as the user would open it.
func (at location) at(report diag.Diagnostic, p string) diag.Diagnostic {
	return report.In(model.Position{File: at(p), Line: 1, Column: 1}, "")
}
