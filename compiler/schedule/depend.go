package schedule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// depend resolves dependsOn: it fails each assignment whose dependencies cannot be met, and
// puts the others in waves.
func (s *Schedule) depend(env *model.Environment, r *report) {
	impossible := make(map[*model.DeploymentTarget][]diag.Diagnostic)
	dependsOn := make(map[*model.DeploymentTarget][]string)
	for _, t := range s.fleet.targets {
		if len(t.DependsOn) == 0 {
			continue
		}
		dependsOn[t.DeploymentTarget] = slices.Compact(slices.Sorted(slices.Values(t.DependsOn)))
		for _, name := range dependsOn[t.DeploymentTarget] {
			if d, ok := s.impossible(env, t, name); ok {
				impossible[t.DeploymentTarget] = append(impossible[t.DeploymentTarget], d)
				r.add(d) // even if the target is not assigned to anything
			}
		}
	}
	if len(dependsOn) == 0 {
		return
	}
	for assignments := range s.clusterTypes {
		for i := range assignments {
			a := &assignments[i]
			a.DependsOn = dependsOn[a.Target]
			for _, d := range impossible[a.Target] {
				a.Failed = true
				r.add(d, a.ID(s.Environment))
			}
		}
		// Resolve the dependencies among the assignments of one cluster type.
		edges := s.edges(assignments, r)
		for _, together := range components(edges) {
			if len(together) > 1 {
				s.failCycle(assignments, edges, together, r)
			}
			wave := 0
			for _, i := range together {
				for _, j := range edges[i] {
					if !contains(together, j) {
						wave = max(wave, assignments[j].Wave+1)
					}
				}
			}
			for _, i := range together {
				assignments[i].Wave = wave
			}
		}
	}
}

// dependencyError returns a diagnostic about the dependsOn of a target.
func dependencyError(t target, message, hint string) diag.Diagnostic {
	ref := t.ref().At("dependsOn")
	return diag.New(diag.DependsOn, message).On(ref.String()).At(ref, "").Hinting(hint)
}

// impossible returns the error of a dependency that fails wherever the target is assigned.
// It returns false if the dependency is possible.
func (s *Schedule) impossible(env *model.Environment, t target, name string) (diag.Diagnostic,
	bool) {
	if name == t.FullName {
		return dependencyError(t, name+" depends on itself", "remove it from its dependsOn"), true
	}
	if _, ok := s.fleet.targetNamed(name); ok {
		return diag.Diagnostic{}, false
	}
	message := fmt.Sprintf("%s depends on %s, which is no deployment target of environment %s",
		t.FullName, name, s.Environment)
	if workload, ok := invalid(env, name); ok {
		return dependencyError(t, message,
			name+" has errors of its own: correct them first").Following(workload.String()), true
	}
	others := slices.DeleteFunc(s.fleet.fullNames(),
		func(other string) bool { return other == t.FullName })
	if i := slices.IndexFunc(others,
		func(other string) bool { return strings.HasSuffix(other, "-"+name) }); i >= 0 {
		d := dependencyError(t, message, "did you mean "+others[i]+"?") // name is its short name
		d.Suggestion = diag.Suggestion{Wrong: name, Right: others[i]}
		return d, true
	}
	return dependencyError(t, message, "").Suggesting(name, others), true
}

// invalid returns the workload of a deployment target that the model lacks because of an
// error in the target or its workload. It returns false if no such workload can have a
// target with the full name.
func invalid(env *model.Environment, fullName string) (model.Ref, bool) {
	for i, c := range fullName {
		if c != '-' {
			continue
		}
		w := model.Workload{Name: fullName[:i]}
		workload := model.Ref{Collection: "workloads", Name: w.Name}
		if env.Invalid[workload] || env.Invalid[w.TargetRef(fullName[i+1:])] {
			return workload, true
		}
	}
	return model.Ref{}, false
}

// edges returns the dependencies among the assignments of one cluster type, as positions.
// It reports dependencies that are not among the assignments.
func (s *Schedule) edges(assignments []Assignment, r *report) [][]int {
	edges := make([][]int, len(assignments))
	for i := range assignments {
		a := &assignments[i]
		for _, name := range a.DependsOn {
			j, here := slices.BinarySearchFunc(assignments, name, func(a Assignment, name string) int {
				return strings.Compare(a.Target.FullName, name)
			})
			if here && i != j {
				edges[i] = append(edges[i], j)
			}
			if _, known := s.fleet.targetNamed(name); known && !here {
				a.Failed = true
				message := fmt.Sprintf("%s depends on %s, which is not assigned to the same cluster type",
					a.Target.FullName, name)
				hint := fmt.Sprintf("schedule %s wherever %s goes, or remove it from dependsOn", name,
					a.Target.FullName)
				// A policy that has errors assigns nothing.
				r.add(dependencyError(target{a.Target, a.Workload}, message,
					hint).Following("schedulingPolicies"), a.ID(s.Environment))
			}
		}
	}
	return edges
}

// failCycle reports assignments that all depend on each other.
func (s *Schedule) failCycle(assignments []Assignment, edges [][]int, together []int, r *report) {
	path := circle(edges, together)
	names := make([]string, len(path))
	for i, n := range path {
		names[i] = assignments[n].Target.FullName
	}
	first := &assignments[path[0]]
	d := dependencyError(target{first.Target, first.Workload},
		"dependencies in a circle: "+strings.Join(names, " -> "),
		"none of them can be applied first: remove one of the dependencies")
	for _, n := range path[1 : len(path)-1] {
		t := target{assignments[n].Target, assignments[n].Workload}
		d = d.At(t.ref().At("dependsOn"), t.FullName)
	}
	for _, n := range together {
		assignments[n].Failed = true
		r.add(d, assignments[n].ID(s.Environment))
	}
}

// circle returns a path that ends at its beginning, in a component of several nodes.
func circle(edges [][]int, together []int) []int {
	var path []int
	visited := make(map[int]int) // positions in path
	for n := together[0]; ; {
		if first, ok := visited[n]; ok {
			return append(path[first:], n)
		}
		visited[n] = len(path)
		path = append(path, n)
		n = edges[n][slices.IndexFunc(edges[n], func(m int) bool { return contains(together, m) })]
	}
}
