package schedule

import (
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// side is one of the selectors of a policy, with how many entities it selects.
type side struct {
	ref      model.Ref
	kind     string // of what it selects, for messages
	selector *model.Selector
	selected int
}

const (
	kindTarget = "deployment target"
	kindType   = "cluster type"
)

// sides returns the selectors of the policy.
func (s *selection) sides() []side {
	ref := model.Ref{Collection: "schedulingPolicies", Name: s.policy.Name}
	p := s.policy
	out := []side{
		{ref.At("deploymentTargets"), kindTarget, &p.DeploymentTargets, len(s.targets)},
		{ref.At("clusterTypes"), kindType, &p.ClusterTypes, len(s.types)},
	}
	if p.Except != nil {
		except := ref.At("except")
		out = append(out,
			side{except.At("deploymentTargets"), kindTarget, &p.Except.DeploymentTargets, len(s.exceptTargets)},
			side{except.At("clusterTypes"), kindType, &p.Except.ClusterTypes, len(s.exceptTypes)})
	}
	return out
}

// warnOfNoEffect reports selectors that select nothing, targets that no policy
// selects and cluster types without assignments.
func (s *Schedule) warnOfNoEffect(r *report) {
	words := map[string]vocabulary{
		kindTarget: vocabularyOf(s.fleet.targetFacts()),
		kindType:   vocabularyOf(s.fleet.typeFacts()),
	}
	selected := make([]bool, len(s.fleet.targets))
	for i := range s.selections {
		p := &s.selections[i]
		for _, side := range p.sides() {
			if side.selected == 0 {
				r.add(selectsNothing(p.policy.Name, side, words[side.kind]))
			}
		}
		if !p.policy.Deny {
			for _, t := range p.targets {
				selected[t] = true
			}
		}
	}
	for i, t := range s.fleet.targets {
		if !selected[i] {
			r.add(diag.New(diag.Unassigned, fmt.Sprintf("no scheduling policy selects deployment target %s", t.FullName)).
				On(t.ref().String()).At(t.ref(), ""))
		}
	}
	s.warnOfEmptyTypes(r)
}

func (s *Schedule) warnOfEmptyTypes(r *report) {
	used := make(map[*model.ClusterType]bool)
	for assignments := range s.clusterTypes {
		used[assignments[0].ClusterType] = true
	}
	for _, c := range s.fleet.types {
		if !used[c] {
			ref := model.Ref{Collection: "clusterTypes", Name: c.Name}
			r.add(diag.New(diag.EmptyClusterType, fmt.Sprintf("nothing is assigned to cluster type %s", c.Name)).
				On(ref.String()).At(ref, ""))
		}
	}
}

func selectsNothing(policy string, s side, words vocabulary) diag.Diagnostic {
	return diag.New(diag.SelectsNothing, fmt.Sprintf("%s of policy %s selects nothing", s.ref.Path, policy)).
		On(s.ref.String()).At(s.ref, "").Hinting(words.hint(s.kind, s.selector))
}
