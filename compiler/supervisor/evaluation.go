package supervisor

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Evaluation is the evaluation of one package: of an environment, of the base, or of an
// application. It may come in several parts. A nil Evaluation is not bounded.
type Evaluation struct {
	supervisor *Supervisor
	what       string
	sources    string
	bounds     Bounds

	// Of the supervisor, under its lock:
	cpu   time.Duration
	parts []*Part // that go on
}

// Evaluation returns the evaluation of the package with the name what, such as "environment
// dev". A digest identifies its sources: if the evaluation trips, the package is not
// evaluated again until they change. bounds are the bounds that the platform sets for it,
// or zero.
func (s *Supervisor) Evaluation(what string, sources [32]byte, bounds Bounds) *Evaluation {
	if s == nil {
		return nil
	}
	b := s.options.Bounds.or(bounds).or(Default())
	if s.options.State.Little {
		b = Bounds{b.CPU / lateCPU, b.Memory / lateMemory}
	}
	return &Evaluation{supervisor: s, what: what, sources: hex.EncodeToString(sources[:]), bounds: b}
}

// Identify sets a more exact digest of the sources, once it is known.
func (e *Evaluation) Identify(sources [32]byte) {
	if e == nil {
		return
	}
	e.supervisor.mu.Lock()
	defer e.supervisor.mu.Unlock()
	e.sources = hex.EncodeToString(sources[:])
}

// Tripped returns the trip of the evaluation. It returns nil if the evaluation has not
// tripped.
func (e *Evaluation) Tripped() *Trip {
	if e == nil {
		return nil
	}
	trips := e.supervisor.options.State.Trips
	i := slices.IndexFunc(trips, (&Trip{What: e.what, Sources: e.sources}).repeats)
	if i < 0 {
		return nil
	}
	return &trips[i]
}

// InPieces reports whether the package must be evaluated in pieces, each with its place.
// This is so if it exceeded a bound at an unknown place.
func (e *Evaluation) InPieces() bool {
	if e == nil {
		return false
	}
	return slices.ContainsFunc(e.supervisor.options.State.Sought,
		(&Trip{What: e.what, Sources: e.sources}).repeats)
}

// maxCPU returns the CPU time that the evaluation may take. In pieces, that is half as
// much: an evaluation that exceeds its bound as a whole exceeds half of it in one piece. It
// is less if less time is left.
func (e *Evaluation) maxCPU() time.Duration {
	if e.InPieces() {
		return min(e.bounds.CPU/2, e.left(e.supervisor.options.State))
	}
	return e.bounds.CPU
}

// left returns the CPU time that the evaluation may take in pieces. Together with the time
// that it took before, this is less than twice its bound.
func (e *Evaluation) left(s State) time.Duration { return e.bounds.CPU/4*7 - s.Spent[e.identity()] }

// identity identifies the package and its sources.
func (e *Evaluation) identity() string { return e.what + " " + e.sources }

// environment returns the name of the evaluated environment. It returns "" if the package
// is not an environment.
func (e *Evaluation) environment() string {
	name, is := strings.CutPrefix(e.what, ofEnvironment)
	if !is {
		return ""
	}
	return name
}

// Place is the current place of an evaluation: an entity, or one of some files.
type Place struct {
	Entity model.Ref        `json:"entity,omitzero"`
	Files  int              `json:"files,omitempty"` // the number of files
	At     []model.Position `json:"at,omitempty"`    // of the entity, or of the first files
}

// exact reports whether the place is a single entity or file.
func (p Place) exact() bool { return p.Entity != (model.Ref{}) || p.Files == 1 }

// isZero reports whether the place is unknown.
func (p Place) isZero() bool { return p.Entity == (model.Ref{}) && p.Files == 0 }

// Part is a part of an evaluation, in one goroutine.
type Part struct {
	evaluation *Evaluation
	place      atomic.Pointer[Place]

	// Of the supervisor, under its lock:
	seen  *Place        // at the last tick
	ticks int           // the number of ticks that it is there
	since time.Duration // the evaluation's CPU time when it reached the place
}

// Begin begins a part of the evaluation, which ends with End. It returns the error of the
// context if the context ends before the part can begin.
func (e *Evaluation) Begin(ctx context.Context) (*Part, error) {
	if e == nil {
		return nil, ctx.Err()
	}
	p := &Part{evaluation: e}
	if err := e.supervisor.begin(ctx, p); err != nil {
		return nil, err
	}
	return p, nil
}

// SetPlace sets the place that is evaluated from now on.
func (p *Part) SetPlace(place Place) {
	if p != nil {
		p.place.Store(&place)
	}
}

// End ends the part.
func (p *Part) End() {
	if p != nil {
		p.evaluation.supervisor.end(p)
	}
}

// beyondCPU returns the trip of an evaluation that takes too much CPU time.
func (e *Evaluation) beyondCPU() *Trip {
	return e.trip("cpu", fmt.Sprintf("it takes more than %s of processor time", e.bounds.CPU))
}

// trip returns a trip of the evaluation, at the place that has been evaluated for longest.
// If the evaluation runs in pieces, the place counts only if it took most of the CPU time.
func (e *Evaluation) trip(bound, why string) *Trip {
	t := &Trip{What: e.what, Sources: e.sources, Why: why, Bound: bound}
	var at *Part
	files := 0
	for _, p := range e.parts {
		if p.seen == nil || p.seen.isZero() {
			continue
		}
		if files += p.seen.Files; at == nil || p.ticks > at.ticks {
			at = p
		}
	}
	if at != nil && (bound != "cpu" || !e.InPieces() || e.cpu-at.since >= e.maxCPU()/2) {
		t.Place = *at.seen
		t.Place.Files = files
	}
	return t
}
