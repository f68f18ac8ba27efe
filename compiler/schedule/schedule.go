// Package schedule decides what runs where: it assigns the deployment targets of one
// environment to its cluster types.
//
// Its input is the evaluated environment. Its output is the assignments, with their pins
// and dependencies resolved, and the diagnostics about policies. The result does not depend
// on the order of the environment's slices, nor on the number of processors. The time is
// proportional to the number of entities and selected pairs, never to deployment targets
// times cluster types.
//
// For example, examples/hello-world declares this policy in dev:
//
//	schedulingPolicies: "functional-test": {
//		deploymentTargets: {workspace: "greetings", labels: purpose: "functional-test"}
//		clusterTypes: labels: edge: "true"
//	}
//
// It selects one [model.DeploymentTarget] and one [model.ClusterType], drone. Assign returns the
// [Assignment] with the ID "dev/drone/hello-world-functional-test" and Policies
// ["functional-test"].
package schedule

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// Assignment is one deployment target on one cluster type.
type Assignment struct {
	Workload    *model.Workload
	Target      *model.DeploymentTarget
	ClusterType *model.ClusterType
	// Policies are the names of the policies that assign it, sorted.
	Policies []string
	// SparedBy are the names of the policies with deny that would remove it, but whose
	// except excludes it; sorted.
	SparedBy []string
	// Version and Manifests are the target's, after the pins of the policies.
	Version   string
	Manifests model.Manifests
	// DependsOn are full names of other deployment targets, sorted; unless it
	// Failed, each is assigned to the same cluster type.
	DependsOn []string
	// Wave is the length of the longest chain of dependencies below it on its cluster type.
	// It is 0 without dependencies. The members of a circle count as one.
	Wave int
	// Failed reports whether it has an error of its own, which is among the diagnostics. If
	// so, it is not emitted, and its last good folder is kept.
	Failed bool
}

// ID returns <environment>/<clusterType>/<full name>.
func (a *Assignment) ID(environment string) string {
	return environment + "/" + a.ClusterType.Name + "/" + a.Target.FullName
}

// Denial is a pair of a deployment target and a cluster type that policies remove.
type Denial struct {
	ClusterType      string
	DeploymentTarget string // the full name
	// Policies are the names of the policies that remove it, with deny or by their own
	// except; sorted.
	Policies []string
}

// Schedule is the assignments of one environment. It is immutable, and its assignments
// share slices and pointers with each other and with the environment. Several goroutines
// may read it if they may call its Satisfier.
type Schedule struct {
	Environment string
	// Assignments are sorted by cluster type, then full name.
	Assignments []Assignment
	// Denied are the pairs that policies select, but that other policies or an except
	// remove completely. They are sorted like the assignments.
	Denied []Denial

	fleet      *fleet
	selections []selection
	lenient    []*selection // of selections
	uncertain  bool
}

// Assign computes the schedule of an environment. The diagnostics are unresolved references
// in an order of their own. If the environment is uncertain, Assign omits the warnings,
// because a missing part may be the reason for them.
func Assign(env *model.Environment, satisfies selector.Satisfier) (*Schedule, []diag.Diagnostic) {
	f := newFleet(env, satisfies)
	s := &Schedule{Environment: env.Name, fleet: f, selections: f.selections(env.SchedulingPolicies),
		uncertain: env.Incomplete}
	s.lenient = lenient(s.selections)
	r := &report{environment: env.Name}
	s.assign(r)
	s.depend(env, r)
	if !env.Incomplete {
		words := labelUsage{keys: make(usage), values: make(map[string]usage)}
		s.addEntities(&words)
		for i := range s.selections {
			for _, side := range s.selections[i].sides() {
				ref := side.ref.At("labels")
				if side.selected == 0 {
					ref = model.Ref{}
				}
				for _, labels := range fieldsNamed("labels", side.selector) {
					words.addSelector(labels, ref)
				}
			}
		}
		for i := range env.Configs {
			words.addSelector(&env.Configs[i].Match, model.Ref{})
		}
		for i := range env.ConfigSchemas {
			words.addSelector(&env.ConfigSchemas[i].Match, model.Ref{})
		}
		warnOfMisspelt("label", words.keys, r)
		for _, key := range slices.Sorted(maps.Keys(words.values)) {
			warnOfMisspelt("value of label "+key, words.values[key], r)
		}
		s.warnOfNoEffect(r)
	}
	return s, r.diagnostics()
}

// Find returns the assignment of a deployment target, by its full name, to a
// cluster type.
func (s *Schedule) Find(clusterType, deploymentTarget string) (*Assignment, bool) {
	i, ok := s.Index(clusterType, deploymentTarget)
	if !ok {
		return nil, false
	}
	return &s.Assignments[i], true
}

// Index returns the number of that assignment.
func (s *Schedule) Index(clusterType, deploymentTarget string) (int, bool) {
	return slices.BinarySearchFunc(s.Assignments, clusterType,
		func(a Assignment, clusterType string) int {
			return cmp.Or(strings.Compare(a.ClusterType.Name, clusterType),
				strings.Compare(a.Target.FullName, deploymentTarget))
		})
}

// clusterTypes yields the assignments of each cluster type that has some, as a
// part of s.Assignments.
func (s *Schedule) clusterTypes(yield func([]Assignment) bool) {
	for first := 0; first < len(s.Assignments); {
		last := first + 1
		for last < len(s.Assignments) &&
			s.Assignments[last].ClusterType == s.Assignments[first].ClusterType {
			last++
		}
		if !yield(s.Assignments[first:last]) {
			return
		}
		first = last
	}
}
