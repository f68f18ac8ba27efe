package promotion

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// ErrPlanMoved says that what a saved plan rests on is not what it was: nothing was
// done.
var ErrPlanMoved = errors.New("what the plan rests on has moved since it was made: plan again")

func (pl *planner) check(plan *Plan) error {
	now := pl.inputs()
	if !maps.EqualFunc(now, plan.Inputs, func(a, b map[string]string) bool { return maps.Equal(a, b) }) {
		for url, refs := range plan.Inputs {
			for ref, id := range refs {
				if now[url][ref] != id {
					return fmt.Errorf("%w (%s of %s)", ErrPlanMoved, ref, url)
				}
			}
		}
		for url, refs := range now {
			for ref := range refs {
				if _, known := plan.Inputs[url][ref]; !known {
					return fmt.Errorf("%w (%s of %s)", ErrPlanMoved, ref, url)
				}
			}
		}
		return ErrPlanMoved
	}
	return nil
}

// planned returns what a plan says of a stop; nil for nothing.
func planned(plan *Plan, st *stop) *Step {
	if plan == nil {
		return nil
	}
	for _, p := range plan.Stops {
		if p.Environment == st.stage.Name && p.Ring == st.ringName() {
			return p.Step
		}
	}
	return nil
}

// inputs are the refs that decisions rest on.
func (pl *planner) inputs() map[string]map[string]string {
	in := map[string]map[string]string{}
	note := func(r *repository, ref string) {
		if in[r.url] == nil {
			in[r.url] = map[string]string{}
		}
		in[r.url][ref] = ""
		if id := r.refs[ref]; !id.IsZero() {
			in[r.url][ref] = id.String()
		}
	}
	note(pl.state.platform.repository, branchRef(pl.state.platform.branch))
	for _, stage := range pl.state.platform.stages {
		o := pl.state.outputs[stage.Name]
		if from := stage.Promotion.Source; from != nil {
			note(pl.state.platform.repository, branchRef(from.Branch))
		}
		if o.repository == nil {
			continue
		}
		note(o.repository, branchRef(o.branch))
		for ref := range o.repository.refs {
			log := ref == ordersRefs+ordersLog || ref == ordersTags+ordersLog // what it says is in the others
			if !log && (strings.HasPrefix(ref, ordersRefs) || strings.HasPrefix(ref, ordersTags)) {
				note(o.repository, ref)
			}
		}
	}
	return in
}

// What a saved plan begins with.
const (
	apiVersion = "kalypso.io/v1alpha1"
	planKind   = "PromotionPlan"
)

// Encode returns a plan to be saved.
func (p *Plan) Encode() ([]byte, error) {
	type plain Plan
	return json.MarshalIndent(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		*plain
	}{apiVersion, planKind, (*plain)(p)}, "", "  ")
}

// ParsePlan reads what Encode writes.
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
	return p, nil
}
