package supervisor

import (
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Trip is an evaluation that was beyond a bound.
type Trip struct {
	What    string `json:"what"`              // such as "environment dev"
	Sources string `json:"sources,omitempty"` // the digest of what was evaluated
	Why     string `json:"why"`               // such as "it takes more than 5m0s of processor time"
	Place   Place  `json:"place"`             // what was evaluated
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
	d := diag.New(diag.Costly, message).InEach(t.Place.At...).
		Hinting("let it evaluate less, or raise the bound with evaluation.cpu or evaluation.memory of the environment in the base, or with --evaluation-cpu or --evaluation-memory")
	if t.Place.Entity != (model.Ref{}) {
		d = d.On(t.Place.Entity.String())
	}
	return d
}
