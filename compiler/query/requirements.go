package query

import (
	"context"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Requirement is a key that a contract names for an assignment.
type Requirement struct {
	Environment      string `json:"environment"`
	ClusterType      string `json:"clusterType"`
	DeploymentTarget string `json:"deploymentTarget"`
	Key              string `json:"key"`
	Constraint       string `json:"constraint"`
	Optional         bool   `json:"optional"`
	Enforce          string `json:"enforce"` // block or advise
	RequiredBy       Place  `json:"requiredBy"`
	// Given says whether the key has a value; By is what gives it.
	Given bool     `json:"given"`
	By    []Origin `json:"by"`
}

// Requirements lists what the contracts of all assignments name, by assignment,
// key and contract.
func Requirements(ctx context.Context, b *compiler.Build) ([]Requirement, error) {
	out := []Requirement{}
	for e := range readable(b) {
		for i := range e.Schedule.Assignments {
			a := &e.Schedule.Assignments[i]
			g, err := e.Graph(ctx, i)
			if err != nil {
				return nil, err
			}
			leaves := g.Leaves()
			start := len(out)
			for _, n := range g.Needs {
				r := Requirement{
					Environment: e.Name, ClusterType: a.ClusterType.Name, DeploymentTarget: a.Target.FullName,
					Key: n.Path, Constraint: n.Text, Optional: n.Optional, Enforce: "block", Given: n.Met, By: []Origin{},
					RequiredBy: Place{Kind: kindOf(n.Contract), Name: nameOf(n.Contract),
						Positions: positions(e, n.Contract.At(n.Path))},
				}
				if n.Advise {
					r.Enforce = "advise"
				}
				for _, leaf := range leaves {
					if leaf.Path == n.Path || strings.HasPrefix(leaf.Path, n.Path+".") {
						r.By = append(r.By, origins(e, leaf.From)...)
					}
				}
				out = append(out, r)
			}
			slices.SortStableFunc(out[start:], func(x, y Requirement) int { return strings.Compare(x.Key, y.Key) })
		}
	}
	return out, nil
}

func kindOf(contract model.Ref) string {
	switch {
	case contract.Collection == "configSchemas":
		return "config schema"
	case strings.HasPrefix(contract.Path, "deploymentTargets."):
		return "deployment target"
	}
	return "workload"
}

func nameOf(contract model.Ref) string {
	if rest, ok := strings.CutPrefix(contract.Path, "deploymentTargets."); ok {
		target, _, _ := strings.Cut(rest, ".requires")
		return model.FullName(contract.Name, strings.Trim(target, `"`))
	}
	return contract.Name
}
