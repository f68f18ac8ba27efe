package compiler

import (
	"fmt"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// collision says that two assignments, by number, create one object.
type collision struct {
	first, second int
	object        backends.Object
	message, hint string // "" for the usual
}

// collisions finds the objects that two assignments of a cluster type create.
// fresh are those of assignments that were emitted just now; those of the others
// are only read where the cache does not know that nothing collides.
func (e *Environment) collisions(ct int, fresh map[int][]backends.Object) ([]collision, error) {
	s := e.spans[ct]
	proof := e.key("objects differ")
	for i := s.first; i < s.next; i++ {
		if head, ok := decodeHead(e.rows[i].head); ok && !e.rows[i].failed {
			proof.Bytes(head.objects[:])
		}
	}
	table, key := e.assignmentTable(e.Model.ClusterTypes[ct].Name), proof.Sum()
	if _, proven := table.Head(key); proven {
		return nil, nil
	}
	var out []collision
	shared := 0
	owner := map[backends.Object]int{}
	for i := s.first; i < s.next; i++ {
		if e.rows[i].failed {
			continue
		}
		objects, there := fresh[i]
		if !there {
			var err error
			if objects, err = e.objects(i); err != nil {
				return nil, err
			}
		}
		for _, o := range objects {
			if j, taken := owner[o]; !taken {
				owner[o] = i
			} else if j != i {
				c := collision{first: j, second: i, object: o}
				if kubernetes.IsCRD(o) {
					shared++
					var err error
					if c.message, c.hint, err = e.definitionCollision(c); err != nil {
						return nil, err
					} else if c.message == "" {
						continue
					}
				}
				out = append(out, c)
			}
		}
	}
	if len(out)+shared == 0 {
		table.Put(key, nil, nil)
	}
	return out, nil
}

// objects returns those of an assignment that was emitted: from the cache, or
// emitted once more.
func (e *Environment) objects(i int) ([]backends.Object, error) {
	table := e.assignmentTable(e.Schedule.Assignments[i].ClusterType.Name)
	if body, ok := table.Body(e.rows[i].key); ok {
		if _, objects, err := decodeBody(body); err == nil {
			return objects, nil
		}
	}
	emission, err := e.emitAgain(i)
	return emission.Objects, err
}

// collide fails assignments that create one object: those of one cluster type, and
// those of several that may be served by one reconciler.
func (e *Environment) collide(found []collision) {
	found = append(found, e.centralCollisions()...)
	found, pairs := onMachines(found)
	for _, pair := range pairs {
		e.collideOnMachine(pair)
	}
	for _, c := range found {
		if c.message != "" {
			e.failBoth(c, c.message, c.hint)
			continue
		}
		hint := "let the name use what tells them apart: #assignment.deploymentTarget"
		if e.Schedule.Assignments[c.first].ClusterType.Name != e.Schedule.Assignments[c.second].ClusterType.Name {
			hint = "one reconciler may serve both cluster types, and their names run together: rename a cluster type or a workload"
		}
		e.failBoth(c, fmt.Sprintf("two assignments create the %s %s", c.object.Kind, c.object.Name), hint)
	}
}

// failBoth fails the two assignments of a collision.
func (e *Environment) failBoth(c collision, message, hint string) {
	a, b := &e.Schedule.Assignments[c.first], &e.Schedule.Assignments[c.second]
	e.report(diag.New(diag.NameCollision, message).
		At(b.Workload.TargetRef(b.Target.Name), "").At(a.Workload.TargetRef(a.Target.Name), "").
		Hinting(hint).
		For(a.ID(e.Name), b.ID(e.Name)))
	e.rows[c.first].failed, e.rows[c.second].failed = true, true
}

// centralCollisions finds the objects that assignments of two cluster types create
// where the reconciler runs. They are named by the assignments alone, so that
// those that fail and those of other shards count as well.
func (e *Environment) centralCollisions() []collision {
	var out []collision
	owner := map[backends.Object]int{}
	for ct, s := range e.spans {
		r := e.reconciler(&e.Model.ClusterTypes[ct])
		if _, known := e.Plan.Shared[e.Model.ClusterTypes[ct].Name]; r == nil || !known {
			continue
		}
		targets := make([]string, 0, s.next-s.first)
		for i := s.first; i < s.next; i++ {
			targets = append(targets, e.Schedule.Assignments[i].Target.FullName)
		}
		for n, o := range allBackends[r.Backend].Central(e.backendClusterType(&e.Model.ClusterTypes[ct]), targets) {
			i := s.first + n
			j, taken := owner[o]
			if !taken {
				owner[o] = i
			} else if e.Schedule.Assignments[j].ClusterType != e.Schedule.Assignments[i].ClusterType && (e.mine(i) || e.mine(j)) {
				out = append(out, collision{first: j, second: i, object: o})
			}
		}
	}
	return out
}
