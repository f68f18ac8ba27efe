package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/kalypso-io/kalypso/promotion/ledger"
	"github.com/kalypso-io/kalypso/promotion/session"
)

// ErrMoved is the error if the inputs of a saved plan have changed. Nothing was done.
var ErrMoved = errors.New("what the plan rests on has moved since it was made: plan again")

// Check returns ErrMoved if the inputs of a saved plan have changed.
func (pl *Planner) Check(saved *Plan) error {
	now := pl.inputs()
	if !maps.EqualFunc(now, saved.Inputs,
		func(a, b map[string]string) bool { return maps.Equal(a, b) }) {
		for url, refs := range saved.Inputs {
			for ref, id := range refs {
				if now[url][ref] != id {
					return fmt.Errorf("%w (%s of %s)", ErrMoved, ref, url)
				}
			}
		}
		for url, refs := range now {
			for ref := range refs {
				if _, known := saved.Inputs[url][ref]; !known {
					return fmt.Errorf("%w (%s of %s)", ErrMoved, ref, url)
				}
			}
		}
		return ErrMoved
	}
	return nil
}

// StepOf returns the step of a stage in a plan, or nil.
func StepOf(saved *Plan, st *session.Stage) *Step {
	if saved == nil {
		return nil
	}
	for _, p := range saved.Stages {
		if p.Environment == st.Policy.Name && p.Ring == st.RingName() {
			return p.Step
		}
	}
	return nil
}

// inputs returns the refs that decisions rest on.
func (pl *Planner) inputs() map[string]map[string]string {
	in := map[string]map[string]string{}
	note := func(r *session.Repository, ref string) {
		if in[r.URL] == nil {
			in[r.URL] = map[string]string{}
		}
		in[r.URL][ref] = ""
		if id := r.Refs[ref]; !id.IsZero() {
			in[r.URL][ref] = id.String()
		}
	}
	note(pl.state.Platform.Repository, session.BranchRef(pl.state.Platform.Branch))
	for _, stage := range pl.state.Platform.Policies {
		env := pl.state.Environments[stage.Name]
		if from := stage.Promotion.Source; from != nil {
			note(pl.state.Platform.Repository, session.BranchRef(from.Branch))
		}
		if env.Repository == nil {
			continue
		}
		note(env.Repository, session.BranchRef(env.Branch))
		for ref := range env.Repository.Refs {
			if ledger.IsOrder(ref) {
				note(env.Repository, ref)
			}
		}
	}
	return in
}

// The beginning of a saved plan.
const (
	apiVersion = "kalypso.io/v1alpha1"
	planKind   = "PromotionPlan"
)

// Encode returns the plan as JSON, to be saved.
func (p *Plan) Encode() ([]byte, error) {
	type plain Plan
	return json.MarshalIndent(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		*plain
	}{apiVersion, planKind, (*plain)(p)}, "", "  ")
}

// ParsePlan returns the plan that Encode wrote.
func ParsePlan(data []byte) (*Plan, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("it is no saved plan: %w", err)
	}
	if head.Kind != planKind || head.APIVersion != apiVersion {
		return nil, errors.New("it is no saved plan: `kalypso promote plan --out FILE` writes one")
	}
	p := &Plan{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	// An earlier release wrote only the old names.
	if p.Stages == nil {
		p.Stages = p.Stops
	}
	for _, s := range p.Stages {
		s.Deployed = cmp.Or(s.Deployed, s.Landed)
	}
	p.Stops = p.Stages
	return p, nil
}
