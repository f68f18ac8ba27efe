package supervisor

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Trip is an evaluation that was beyond a bound.
type Trip struct {
	What    string `json:"what"`              // such as "environment dev"
	Sources string `json:"sources,omitempty"` // the digest of the evaluated sources
	Why     string `json:"why"`               // such as "it takes more than 5m0s of processor time"
	Bound   string `json:"bound,omitempty"`   // that can be raised: cpu or memory, or ""
	Place   Place  `json:"place"`             // the evaluated entity or files
}

// ofEnvironment is the prefix of Trip.What for an environment.
const ofEnvironment = "environment "

// repeats reports whether another trip has the same package and sources. Without this
// check, the program would begin again for ever.
func (t *Trip) repeats(other Trip) bool {
	return t.What == other.What &&
		t.Sources == other.Sources
}

// Error describes the package, the exceeded bound, and how to raise it, on one line.
func (t *Trip) Error() string {
	text := t.What + ": " + t.Why
	if t.Bound != "" {
		text += "; raise the bound with --evaluation-" + t.Bound
	}
	return text
}

// Diagnostic reports the trip.
func (t *Trip) Diagnostic() diag.Diagnostic {
	message := t.What + " cannot be evaluated: " + t.Why
	switch {
	case t.Place.Entity != (model.Ref{}):
		message += ", at " + t.Place.Entity.String()
	case t.Place.Files > len(t.Place.At):
		message += fmt.Sprintf(", at one of %d files", t.Place.Files)
	}
	hint := "write it with less depth"
	if t.Bound != "" {
		hint = "let it evaluate less, or raise the bound with --evaluation-" + t.Bound
		if strings.HasPrefix(t.What, ofEnvironment) {
			hint += ", or evaluation." + t.Bound + " in the base"
		}
	}
	d := diag.New(diag.Costly, message).InEach(t.Place.At...).Hinting(hint)
	if t.Place.Entity != (model.Ref{}) {
		d = d.On(t.Place.Entity.String())
	}
	return d
}
