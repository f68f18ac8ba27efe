package pages

import (
	"context"

	"github.com/kalypso-io/kalypso/hub/compiled"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/view"
)

// at returns what an environment is compiled from: in a ring, or in its first one.
func at(w *state.Wanted, ring string) (compiled.At, error) {
	if len(w.Commits) == 0 || len(w.Commits[0].Rings) == 0 {
		return compiled.At{}, missing("nothing was promoted to environment %s yet", w.Environment)
	}
	for i, r := range w.Commits[0].Rings {
		if r.Name == ring || ring == "" && i == 0 {
			return compiled.At{Environment: w.Environment, Base: r.Base, Own: r.Own}, nil
		}
	}
	return compiled.At{}, missing("environment %s has no ring %s, or nothing was promoted to it yet", w.Environment, ring)
}

// Policies returns the scheduling policies of the commits that a ring of an environment has.
func (s *Source) Policies(ctx context.Context, environment, ring string) (*view.Policies, error) {
	out, rings, err := inRing(ctx, s, environment, ring, s.Compiled.Policies)
	if err == nil {
		out.Rings = rings
	}
	return out, err
}

// Configs returns the configs of the commits that a ring of an environment has.
func (s *Source) Configs(ctx context.Context, environment, ring string) (*view.Configs, error) {
	out, rings, err := inRing(ctx, s, environment, ring, s.Compiled.Configs)
	if err == nil {
		out.Rings = rings
	}
	return out, err
}

// Diagnostics says that a hub has none.
func (s *Source) Diagnostics(context.Context) (*view.Diagnostics, error) { return nil, notCompiled() }

// Changes says that a hub has none.
func (s *Source) Changes(context.Context, string) (*view.Changes, error) { return nil, notCompiled() }

func notCompiled() error {
	return missing("a hub knows what is in GitOps branches: kalypso view shows this page, and what is not committed")
}

// inRing returns what is compiled of an environment in a ring, or in its first one, and all rings; none
// where it has none. An error has them too.
func inRing[T any](ctx context.Context, s *Source, environment, ring string,
	of func(context.Context, compiled.At) (T, error)) (out T, rings []view.RingSource, err error) {
	w, err := s.environment(ctx, environment)
	if err != nil {
		return out, nil, err
	}
	rings = ringsOf(w, ring)
	from, err := at(w, ring)
	if err == nil {
		out, err = of(ctx, from)
	}
	if err != nil {
		err = &view.RingError{Environment: environment, Rings: rings, Err: err}
	}
	return out, rings, err
}

// ringsOf returns the rings of an environment, of which one is shown, or the first one; none where
// it has none.
func ringsOf(w *state.Wanted, ring string) (rings []view.RingSource) {
	if len(w.Commits) == 0 || len(w.Commits[0].Rings) == 0 || w.Commits[0].Rings[0].Name == "" {
		return nil
	}
	for i, r := range w.Commits[0].Rings {
		rings = append(rings, view.RingSource{Name: r.Name, Base: r.Base, Own: r.Own,
			Shown: r.Name == ring || ring == "" && i == 0})
	}
	return rings
}
