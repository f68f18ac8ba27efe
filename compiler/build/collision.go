package build

import (
	"context"
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
func (as *assignments) collisions(ctx context.Context, ct int, fresh map[int][]backends.Object) ([]collision, error) {
	s := as.spans[ct]
	proof := as.key("objects differ")
	for i := s.first; i < s.next; i++ {
		if head, ok := decodeHead(as.rows[i].head); ok && !as.rows[i].failed {
			proof.Bytes(head.objects[:])
		}
	}
	table, key := as.table(as.Model.ClusterTypes[ct].Name), proof.Sum()
	if _, proven := table.Head(key); proven {
		return nil, nil
	}
	var out []collision
	shared := 0
	owner := map[backends.Object]int{}
	for i := s.first; i < s.next; i++ {
		if as.rows[i].failed {
			continue
		}
		objects, there := fresh[i]
		if !there {
			var err error
			if objects, err = as.objects(ctx, i); err != nil {
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
					if c.message, c.hint, err = as.definitionCollision(c); err != nil {
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
func (as *assignments) objects(ctx context.Context, i int) ([]backends.Object, error) {
	table := as.tableOf(i)
	if body, ok := table.Body(as.rows[i].key); ok {
		if _, objects, err := decodeBody(body); err == nil {
			return objects, nil
		}
	}
	emission, err := as.emitAgain(ctx, i)
	return emission.Objects, err
}

// collide fails assignments that create one object: those of one cluster type, and
// those of several that may be served by one reconciler.
func (as *assignments) collide(found []collision) (ds []diag.Diagnostic) {
	found, pairs := onMachines(found)
	for _, pair := range pairs {
		message, hint := collideOnMachine(pair)
		ds = append(ds, as.failBoth(pair[0], message, hint))
	}
	for _, c := range found {
		if c.message == "" {
			c.message = fmt.Sprintf("two assignments create the %s %s", c.object.Kind, c.object.Name)
			c.hint = "let the name use what tells them apart: #assignment.deploymentTarget"
			if as.Schedule.Assignments[c.first].ClusterType.Name != as.Schedule.Assignments[c.second].ClusterType.Name {
				c.hint = "one reconciler may serve both cluster types, and their names run together: rename a cluster type or a workload"
			}
		}
		ds = append(ds, as.failBoth(c, c.message, c.hint))
	}
	return ds
}

// failBoth fails the two assignments of a collision.
func (as *assignments) failBoth(c collision, message, hint string) diag.Diagnostic {
	a, b := &as.Schedule.Assignments[c.first], &as.Schedule.Assignments[c.second]
	as.rows[c.first].failed, as.rows[c.second].failed = true, true
	return diag.New(diag.NameCollision, message).
		At(b.Workload.TargetRef(b.Target.Name), "").At(a.Workload.TargetRef(a.Target.Name), "").
		Hinting(hint).
		For(a.ID(as.Name), b.ID(as.Name))
}

// centralCollisions finds the objects that assignments of two cluster types create
// where the reconciler runs. They are named by the assignments alone, so that
// those that fail and those of other shards count as well.
func (as *assignments) centralCollisions(in *scope) []collision {
	var out []collision
	owner := map[backends.Object]int{}
	for ct, s := range as.spans {
		of := &as.Model.ClusterTypes[ct]
		if !as.Reconciled(of) {
			continue
		}
		targets := make([]string, 0, s.next-s.first)
		for i := s.first; i < s.next; i++ {
			targets = append(targets, as.Schedule.Assignments[i].Target.FullName)
		}
		for n, o := range as.backend(of).Central(as.delivered(of), targets) {
			i := s.first + n
			j, taken := owner[o]
			if !taken {
				owner[o] = i
			} else if as.Schedule.Assignments[j].ClusterType != as.Schedule.Assignments[i].ClusterType && (in.has(i) || in.has(j)) {
				out = append(out, collision{first: j, second: i, object: o})
			}
		}
	}
	return out
}
