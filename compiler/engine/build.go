package engine

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
)

// build emits the assignments of all cluster types of this build, except of those that equal the
// recorded ones.
func (as *assignments) build(ctx context.Context, s *scope, r *retainedOutput, out *reports) error {
	var types []int
	total := 0
	for ct, at := range as.in.spans {
		if s.builds(as.in.Model.ClusterTypes[ct].Name) {
			types, total = append(types, ct), total+at.next-at.first
		}
	}
	progress := as.progress(total)
	found := make([][]collision, len(as.in.spans))
	central, concerned := as.centralCollisions(s), map[*model.ClusterType]bool{}
	for _, c := range central {
		concerned[as.in.Schedule.Assignments[c.first].ClusterType] = true
		concerned[as.in.Schedule.Assignments[c.second].ClusterType] = true
	}
	group, within := errgroup.WithContext(ctx) // within ends with the group
	workers := min(runtime.GOMAXPROCS(0), max(1, len(types)))
	for w := range workers {
		group.Go(func() error {
			composer := as.in.Plan.NewComposer()
			for n := w; n < len(types); n += workers {
				ct := types[n]
				if concerned[&as.in.Model.ClusterTypes[ct]] || !as.recall(s, r, ct) {
					var err error
					if found[ct], err = as.buildType(within, s, ct, composer); err != nil {
						return err
					}
				}
				progress(as.in.spans[ct].next - as.in.spans[ct].first)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	leftOut, lists := as.leftOutTuples()
	out.add(as.tuples.diagnostics(s, leftOut, lists)...)
	ds, err := as.diagnostics(ctx)
	if err != nil {
		return err
	}
	out.add(ds...)
	out.add(as.collide(append(slices.Concat(found...), central...))...)
	ds, err = as.overQuota(s)
	out.add(ds...)
	return err
}

// buildType emits the assignments of a cluster type, and returns its collisions.
func (as *assignments) buildType(ctx context.Context, s *scope, ct int,
	composer *compose.Composer) ([]collision, error) {
	objects, err := as.buildClusterType(ctx, as.in.spans[ct], composer)
	if err != nil {
		return nil, err
	}
	found, err := as.collisions(ctx, ct, objects)
	if err != nil {
		return nil, err
	}
	return found, as.shareDefinitions(ctx, s, ct, found)
}

// progress returns a function that reports done more assignments, out of total.
func (as *assignments) progress(total int) func(done int) {
	if as.in.request.Progress == nil {
		return func(int) {}
	}
	var all atomic.Int64
	report := func(done int) {
		as.in.request.Progress(
			Progress{Environment: as.in.Name, Done: int(all.Add(int64(done))), Total: total})
	}
	report(0)
	return report
}

// leftOutTuples returns the unresolved tuples of cluster types that equal the recorded ones, by
// number. It also returns the lists of all tuples of these cluster types.
func (as *assignments) leftOutTuples() (leftOut []bool, lists lists) {
	leftOut, lists = make([]bool, len(as.tuples.all)), newLists()
	for ct := range as.types {
		if !as.types[ct].same {
			continue
		}
		for _, list := range as.types[ct].Lists {
			lists.paths[list] = true
		}
		as.in.request.Meter.count(cache.Tuple, 0, as.unresolved(ct, leftOut))
	}
	return leftOut, lists
}

// unresolved marks the tuples of a cluster type that are not resolved, by number. It counts the
// newly marked ones.
func (as *assignments) unresolved(ct int, marks []bool) (count int) {
	for i := as.in.spans[ct].first; i < as.in.spans[ct].next; i++ {
		if n := as.in.Plan.TupleOf[i]; !marks[n] && !as.tuples.all[n].isClaimed() {
			marks[n] = true
			count++
		}
	}
	return count
}

// complete makes the rows of a cluster type that the build skipped, from the cached results of
// its assignments.
func (as *assignments) complete(ctx context.Context, s *scope, ct int) error {
	known := &as.types[ct]
	known.mu.Lock()
	defer known.mu.Unlock()
	if !known.same || known.complete {
		return nil
	}
	// They were counted before, and buildType counts them again.
	as.in.request.Meter.count(cache.Tuple, 0, -as.unresolved(ct, make([]bool, len(as.tuples.all))))
	as.in.request.Meter.count(cache.Assignment, 0, as.in.spans[ct].first-as.in.spans[ct].next)
	if _, err := as.buildType(ctx, s, ct, as.in.Plan.NewComposer()); err != nil {
		return err
	}
	for i := as.in.spans[ct].first; i < as.in.spans[ct].next; i++ {
		if as.rows[i].failed {
			// The content of a source has been removed since. Nothing else can fail only now.
			return fmt.Errorf("%s was built, and cannot be built once more: build again", as.in.id(i))
		}
	}
	known.complete = true
	return nil
}

// collide fails assignments that create the same object, on one cluster type or on several that
// one reconciler may serve.
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

// fail fails the assignments of a collision, or only the one with the weaker claim.
func (as *assignments) fail(c collision, message, hint string) diag.Diagnostic {
	losers := as.losers(c)
	var ids []string
	for _, i := range losers {
		as.rows[i].failed = true
		ids = append(ids, as.in.id(i))
	}
	first, second := c.second, c.first // in the order of the diagnostic's sites
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

// wayOut returns a hint for an assignment that creates an object to which another has a better
// claim.
func (as *assignments) wayOut(loser, winner int, o backends.Object) string {
	a, b := &as.in.Schedule.Assignments[loser], &as.in.Schedule.Assignments[winner]
	why := fmt.Sprintf("what registration %s brings does not replace what the platform declares",
		a.Workload.Registration)
	if as.claim(winner, o) == 2 {
		why = fmt.Sprintf("the namespace %s is that of %s", as.in.Plan.Namespaces[winner],
			b.Target.FullName)
	}
	return why + ": leave the object out of " + a.Target.FullName +
		", or give it another name or place"
}

// overQuota fails the assignments that make a workspace exceed its quota. They count in the order
// of their deployment targets and cluster types. So it depends only on the platform which of them
// fail, and not on the previous output.
func (as *assignments) overQuota(s *scope) (ds []diag.Diagnostic, err error) {
	if !slices.ContainsFunc(as.in.Model.Workspaces,
		func(w model.Workspace) bool { return w.Quota != nil }) {
		return nil, nil
	}
	as.requested = map[string]kubernetes.Requests{}
	for _, i := range as.byTarget() {
		a := &as.in.Schedule.Assignments[i]
		of, _ := as.in.Model.WorkspaceOf(a.Workload)
		if of == nil || of.Quota == nil || as.rows[i].failed || !s.has(i) {
			continue
		}
		summary, _ := decodeSummary(as.rows[i].summary)
		requests, err := summary.decodeRequests()
		if err != nil {
			return nil, err
		}
		sum := kubernetes.Requests{}
		sum.Add(as.requested[of.Name])
		sum.Add(requests)
		over := overOf(sum, of.Quota)
		if len(over) == 0 {
			as.requested[of.Name] = sum
			continue
		}
		as.rows[i].failed = true
		ref := model.Ref{Collection: "workspaces", Name: of.Name, Path: "quota"}
		ds = append(ds, diag.New(diag.Bounds,
			fmt.Sprintf("with %s on cluster type %s, workspace %s requests more than its quota: %s",
				a.Target.FullName, a.ClusterType.Name, of.Name, strings.Join(over, ", "))).
			At(a.Workload.TargetRef(a.Target.Name), "").At(ref, "").For(as.in.id(i)).
			Hinting("let the workspace's workloads request less, or raise the quota"))
	}
	return ds, nil
}

// byTarget returns the numbers of the assignments, sorted by deployment target and cluster type.
func (as *assignments) byTarget() []int {
	out := make([]int, len(as.in.Schedule.Assignments))
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, func(i, j int) int {
		a, b := &as.in.Schedule.Assignments[i], &as.in.Schedule.Assignments[j]
		if c := strings.Compare(a.Target.FullName, b.Target.FullName); c != 0 {
			return c
		}
		return strings.Compare(a.ClusterType.Name, b.ClusterType.Name)
	})
	return out
}

// overOf returns the requests that exceed a quota as texts, sorted by resource.
func overOf(requests kubernetes.Requests, quota map[string]model.Value) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(quota)) {
		most, err := resource.ParseQuantity(quota[name].Text())
		if is := requests[name]; err == nil && is.Cmp(most) > 0 {
			out = append(out, fmt.Sprintf("%s of %s %s", is.String(), most.String(), name))
		}
	}
	return out
}

// collisions finds the objects that two assignments of a cluster type create. fresh are the
// objects of newly emitted assignments. collisions compares the ids of objects in the summaries.
// It looks up the objects themselves only if two ids are the same.
func (as *assignments) collisions(ctx context.Context, ct int,
	fresh map[int][]backends.Object) ([]collision, error) {
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
	// the assignments that create an object, or the one with the best claim to it
	claims := map[objectDigest][]int{}
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
				// Other assignments may bring the same definition, so compare them as well.
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

// collision reports whether two assignments with the same object id create the same object. If
// so, it fills in the object.
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
		n := slices.IndexFunc(second,
			func(o backends.Object) bool { return objectID(o) == id && slices.Contains(first, o) })
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

// objects returns the objects of an emitted assignment.
func (as *assignments) objects(ctx context.Context, i int,
	fresh map[int][]backends.Object) ([]backends.Object, error) {
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

// machineHints are the hints for two assignments that create the same thing on a machine, by its
// kind.
var machineHints = map[string]string{
	"user": "leave machine.user out, or let it use what tells them apart: " +
		"#assignment.deploymentTarget; a daemon that brings its own user takes harden: false",
	"directory": "let the directory's path use what tells them apart: #assignment.deploymentTarget",
	"package": "give the package to one deployment target, and let the others depend on that with " +
		"dependsOn",
	"file": "give the file to one deployment target, and let the others depend on that with " +
		"dependsOn, or give each a path of its own",
	"unit": "give the unit to one deployment target, and let the others depend on that with " +
		"dependsOn, or give each a name of its own",
}

// onMachines separates the collisions on machines from the others. It returns the collisions on
// machines by pair of assignments, which become one error each. It leaves out consequences of
// other collisions, such as a user's directories.
func onMachines(found []collision) (others []collision, pairs [][]collision) {
	at := map[[2]int]int{}
	for _, c := range found {
		if c.object.Group != machineGroup {
			others = append(others, c)
			continue
		}
		pair := [2]int{c.first, c.second}
		i, there := at[pair]
		if !there {
			i = len(pairs)
			at[pair] = i
			pairs = append(pairs, nil)
		}
		pairs[i] = append(pairs[i], c)
	}
	for i, pair := range pairs {
		var causes []collision
		for _, c := range pair {
			if !follows(c.object, pair) {
				causes = append(causes, c)
			}
		}
		pairs[i] = causes
	}
	return others, pairs
}

// follows reports whether a file or directory belongs to a user or a unit that collides itself.
func follows(o backends.Object, pair []collision) bool {
	if o.Kind != "file" && o.Kind != "directory" {
		return false
	}
	for _, c := range pair {
		switch name := c.object.Name; {
		case c.object.Kind == "user" &&
			(o.Name == "/var/lib/"+name || strings.HasPrefix(o.Name+"/", "/etc/"+name+"/")),
			c.object.Kind == "unit" && strings.HasPrefix(o.Name, "/etc/systemd/system/"+name):
			return true
		}
	}
	return false
}

// collideOnMachine returns the message and the hint for the things that two assignments both
// create.
func collideOnMachine(pair []collision) (message, hint string) {
	var names []string
	for _, c := range pair {
		names = append(names, "the "+c.object.Kind+" "+c.object.Name)
	}
	return "two assignments create " + strings.Join(names, ", "), machineHints[pair[0].object.Kind]
}
