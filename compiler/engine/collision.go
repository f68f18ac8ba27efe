package engine

import (
	"context"
	"fmt"
	"slices"

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

// collisions finds the objects that two assignments of a cluster type create. fresh are those
// of assignments that were emitted just now. Objects are told apart by their ids in the summaries;
// which they are is looked up where two are the same.
func (as *assignments) collisions(ctx context.Context, ct int, fresh map[int][]backends.Object) ([]collision, error) {
	s := as.in.spans[ct]
	proof := as.in.key("objects differ")
	for i := s.first; i < s.next; i++ {
		if summary, ok := decodeSummary(as.rows[i].summary); ok && !as.rows[i].failed {
			proof.Bytes(summary.objects)
		}
	}
	table, key := as.table(as.in.Model.ClusterTypes[ct].Name), proof.Sum()
	if _, proven := table.Get(key); proven {
		return nil, nil
	}
	var out []collision
	same := false
	claims := map[objectDigest][]int{} // who creates an object, or has the best claim to it
	for i := s.first; i < s.next; i++ {
		summary, ok := decodeSummary(as.rows[i].summary)
		if !ok || as.rows[i].failed {
			continue
		}
		for id := range summary.eachObject {
			others := claims[id]
			if slices.Contains(others, i) {
				continue
			}
			same = same || len(others) > 0
			beside := true
			for n, j := range others {
				c := collision{first: j, second: i}
				found, err := as.collision(ctx, &c, id, fresh)
				if err != nil {
					return nil, err
				}
				if !found {
					continue
				}
				out = append(out, c)
				// Of definitions others may bring the same, and are to be compared as well.
				if !kubernetes.IsCRD(c.object) {
					beside, others[n] = false, as.winner(c, j)
				}
			}
			if beside {
				claims[id] = append(others, i)
			}
		}
	}
	if !same {
		table.Put(key, nil)
	}
	return out, nil
}

// collision says whether two assignments create one object, of which they have the same id,
// and fills in which.
func (as *assignments) collision(ctx context.Context, c *collision, id objectDigest,
	fresh map[int][]backends.Object) (bool, error) {
	definition, err := as.sharedDefinition(c, id)
	if err != nil {
		return false, err
	}
	if definition != nil {
		c.object = *definition
	} else {
		first, err := as.objects(ctx, c.first, fresh)
		if err != nil {
			return false, err
		}
		second, err := as.objects(ctx, c.second, fresh)
		if err != nil {
			return false, err
		}
		n := slices.IndexFunc(second, func(o backends.Object) bool { return objectID(o) == id && slices.Contains(first, o) })
		if n < 0 {
			return false, nil
		}
		c.object = second[n]
	}
	if kubernetes.IsCRD(c.object) {
		c.message, c.hint, err = as.definitionCollision(*c)
		return err == nil && c.message != "", err
	}
	return true, nil
}

// objects returns those of an assignment that was emitted.
func (as *assignments) objects(ctx context.Context, i int, fresh map[int][]backends.Object) ([]backends.Object, error) {
	if objects, there := fresh[i]; there {
		return objects, nil
	}
	emitted, err := as.emitAgain(ctx, []int{i})
	if err != nil {
		return nil, err
	}
	fresh[i] = emitted[0].Objects
	return fresh[i], nil
}

// collide fails assignments that create one object: those of one cluster type, and
// those of several that may be served by one reconciler.
func (as *assignments) collide(found []collision) (ds []diag.Diagnostic) {
	found, pairs := onMachines(found)
	for _, pair := range pairs {
		message, hint := collideOnMachine(pair)
		ds = append(ds, as.fail(pair[0], message, hint))
	}
	for _, c := range found {
		if c.message == "" {
			c.message = fmt.Sprintf("two assignments create the %s %s", c.object.Kind, c.object.Name)
			c.hint = "let the name use what tells them apart: #assignment.deploymentTarget"
			if as.in.Schedule.Assignments[c.first].ClusterType.TypeName() !=
				as.in.Schedule.Assignments[c.second].ClusterType.TypeName() {
				c.hint = "one reconciler may serve both cluster types, and their names run together: rename " +
					"a cluster type or a workload"
			}
		}
		ds = append(ds, as.fail(c, c.message, c.hint))
	}
	return ds
}

// winner returns which assignment of a collision gets the object: the one whose namespace it is
// or is in, else the platform's own one of what a registration brings; the number none where
// neither has a better claim. It follows from the platform alone, and not from what was there
// before.
func (as *assignments) winner(c collision, none int) int {
	switch first, second := as.claim(c.first, c.object), as.claim(c.second, c.object); {
	case first > second:
		return c.first
	case second > first:
		return c.second
	}
	return none
}

// claim is how good a claim an assignment has to an object.
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

// fail fails the assignments of a collision, or the one that has the worse claim.
func (as *assignments) fail(c collision, message, hint string) diag.Diagnostic {
	losers := as.losers(c)
	var ids []string
	for _, i := range losers {
		as.rows[i].failed = true
		ids = append(ids, as.in.id(i))
	}
	first, second := c.second, c.first // the sites of a diagnostic
	if len(losers) == 1 {
		first, second = losers[0], as.winner(c, -1)
		hint = as.wayOut(first, second, c.object)
	}
	a, b := &as.in.Schedule.Assignments[first], &as.in.Schedule.Assignments[second]
	return diag.New(diag.NameCollision, message).
		At(a.Workload.TargetRef(a.Target.Name), "").At(b.Workload.TargetRef(b.Target.Name), "").
		Hinting(hint).
		For(ids...)
}

// wayOut says what an assignment can do that has no claim to an object of another.
func (as *assignments) wayOut(loser, winner int, o backends.Object) string {
	a, b := &as.in.Schedule.Assignments[loser], &as.in.Schedule.Assignments[winner]
	why := fmt.Sprintf("what registration %s brings does not replace what the platform declares", a.Workload.Registration)
	if as.claim(winner, o) == 2 {
		why = fmt.Sprintf("the namespace %s is that of %s", as.in.Plan.Namespaces[winner], b.Target.FullName)
	}
	return why + ": leave the object out of " + a.Target.FullName + ", or give it another name or place"
}

// losers returns the assignments of a collision that fail, in their order.
func (as *assignments) losers(c collision) []int {
	switch as.winner(c, -1) {
	case c.first:
		return []int{c.second}
	case c.second:
		return []int{c.first}
	}
	return []int{c.first, c.second}
}

// centralCollisions finds the objects that assignments of two cluster types create
// where the reconciler runs. They are named by the assignments alone, so that
// those that fail and those of other shards count as well. Classes of one cluster type
// have the same objects, each on its own clusters.
func (as *assignments) centralCollisions(in *scope) []collision {
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
			} else if as.in.Schedule.Assignments[j].ClusterType.TypeName() != of.TypeName() && (in.has(i) || in.has(j)) {
				c := collision{first: j, second: i, object: o}
				out = append(out, c)
				owner[o] = as.winner(c, j)
			}
		}
	}
	return out
}
