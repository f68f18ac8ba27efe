package engine

import (
	"github.com/kalypso-io/kalypso/backends"
)

// collision is two assignments, by number, that create the same object.
type collision struct {
	first, second int
	object        backends.Object
	message, hint string // "" for the default texts
}

// losers returns the assignments of a collision that fail: one of them, or both in their order.
func (as *assignments) losers(c collision) []int {
	switch as.winner(c, -1) {
	case c.first:
		return []int{c.second}
	case c.second:
		return []int{c.first}
	}
	return []int{c.first, c.second}
}

// centralCollisions finds the objects that assignments of two cluster types create where the
// reconciler runs. Only the assignments determine the names of these objects, so failed
// assignments and those of other shards count as well. Classes of one cluster type have the same
// objects, each on its own clusters.
func (as *assignments) centralCollisions(scope *scope) []collision {
	var out []collision
	owner := map[backends.Object]int{}
	for ct, s := range as.in.spans {
		of := &as.in.Model.ClusterTypes[ct]
		if !as.in.Reconciled(of) {
			continue
		}
		targets := make([]string, 0, s.next-s.first)
		for i := s.first; i < s.next; i++ {
			targets = append(targets, as.in.Schedule.Assignments[i].Target.FullName)
		}
		for n, o := range as.in.backend(of).Central(as.in.delivered(of), targets) {
			i := s.first + n
			j, taken := owner[o]
			if !taken {
				owner[o] = i
			} else if as.in.Schedule.Assignments[j].ClusterType.TypeName() != of.TypeName() &&
				(scope.has(i) || scope.has(j)) {
				c := collision{first: j, second: i, object: o}
				out = append(out, c)
				owner[o] = as.winner(c, j)
			}
		}
	}
	return out
}

// machineGroup is the group of the things that backends for machines create. They are not
// Kubernetes objects, and their names are unique within their kind.
const machineGroup = "machine"

// winner returns the assignment of a collision that gets the object. The first choice is the
// assignment whose namespace the object is, or is in. The second choice is an assignment of the
// platform itself, before one of a registration. If neither has a better claim, winner returns
// none. The result depends only on the platform, and not on the previous output.
func (as *assignments) winner(c collision, none int) int {
	switch first, second := as.claim(c.first, c.object), as.claim(c.second, c.object); {
	case first > second:
		return c.first
	case second > first:
		return c.second
	}
	return none
}

// claim returns the strength of an assignment's claim to an object, from 0 to 2.
func (as *assignments) claim(i int, o backends.Object) int {
	namespace := o.Namespace
	if o.Group == "" && o.Kind == "Namespace" {
		namespace = o.Name
	}
	switch {
	case namespace != "" && namespace == as.in.Plan.Namespaces[i] && o.Group != machineGroup:
		return 2
	case as.in.Schedule.Assignments[i].Workload.Registration == "":
		return 1
	}
	return 0
}
