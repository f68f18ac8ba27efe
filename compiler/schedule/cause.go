package schedule

import (
	"cmp"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// causes finds the policy that explains why a deployment target or a cluster type has no
// assignment: one with a selector that selects nothing.
type causes struct {
	schedule *Schedule
	empty    []Empty // of policies that assign, without selectors that may select nothing
}

func (s *Schedule) causes() *causes {
	return &causes{s, slices.DeleteFunc(s.Empty(), func(e Empty) bool {
		return e.Policy.AllowEmpty || e.Policy.Deny || e.Except
	})}
}

// path returns the path of the policy of an empty selector, as diagnostics follow from it.
func (e Empty) path() string {
	return model.Ref{Collection: "schedulingPolicies", Name: e.Policy.Name}.String()
}

// all returns the policy that explains why there are no assignments. It returns "" if there
// is no such policy, or if there are assignments.
func (c *causes) all() string {
	if len(c.schedule.Assignments) > 0 || len(c.empty) == 0 {
		return ""
	}
	return c.empty[0].path()
}

// ofTarget returns the policy that explains why a deployment target has no assignment. That
// policy selects the target but no cluster type, or its selector has a misspelt word.
func (c *causes) ofTarget(target int) string {
	return c.emptySelector("deploymentTargets",
		func(p *selection) bool { return contains(p.targets, target) })
}

// ofType does the same for a cluster type.
func (c *causes) ofType(clusterType int) string {
	return cmp.Or(c.emptySelector("clusterTypes", func(p *selection) bool {
		return contains(p.types, clusterType)
	}), c.schedule.WithoutAssignments())
}

func (c *causes) emptySelector(side string, selects func(*selection) bool) string {
	for _, e := range c.empty {
		for i := range c.schedule.selections {
			if p := &c.schedule.selections[i]; p.policy == e.Policy && selects(p) {
				return e.path()
			}
		}
	}
	for _, e := range c.empty {
		if e.Warning.Path == e.path()+"."+side && e.Warning.Suggestion.Wrong != "" {
			return e.path()
		}
	}
	return c.all()
}

// WithoutAssignments returns the reason why the schedule has no assignments, as the path
// from which diagnostics follow. This is the first policy with a selector that selects
// nothing, or else the first workload without an assignment. It returns "" if there are
// assignments, or if it finds no reason.
func (s *Schedule) WithoutAssignments() string {
	if len(s.Assignments) > 0 || s.uncertain {
		return ""
	}
	if cause := s.causes().all(); cause != "" {
		return cause
	}
	for _, t := range s.fleet.targets {
		if !t.AllowEmpty {
			return t.ref().Entity().String()
		}
	}
	return ""
}
