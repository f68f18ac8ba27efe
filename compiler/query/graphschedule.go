package query

import (
	"fmt"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/view/graph"
)

// ScheduleGraph is what runs where, and why: scheduling policies, the deployment targets that
// they select, and the cluster types that these are assigned to. An assignment, by its id, is
// highlighted with the policies that make it; "" for none. The error is that there is no such
// assignment.
func ScheduleGraph(b *compiler.Build, assignment string) (*graph.Graph, error) {
	environments := readableOf(b)
	d := newDrawing("Schedule", environments)
	for _, e := range environments {
		d.schedule(e)
	}
	of, n, err := chosen(b, assignment)
	if err != nil {
		return nil, err
	}
	g := d.finish()
	if of != nil {
		a := &of.Schedule.Assignments[n]
		path := map[string]bool{targetID(of, a.Target.FullName): true, clusterTypeID(of, a.ClusterType.Name): true}
		for _, name := range a.Policies {
			path[policyID(of, name)] = true
		}
		g.Highlight(path)
	}
	return g, nil
}

func policyID(e *engine.Environment, name string) string      { return e.Name + "/policy/" + name }
func targetID(e *engine.Environment, fullName string) string  { return e.Name + "/target/" + fullName }
func clusterTypeID(e *engine.Environment, name string) string { return e.Name + "/clusterType/" + name }

func (d *drawing) schedule(e *engine.Environment) {
	policies := d.group(e, "policies", "scheduling policies", 0)
	for i := range e.Model.SchedulingPolicies {
		p := &e.Model.SchedulingPolicies[i]
		kind := "scheduling policy"
		if p.Deny {
			kind = "scheduling policy that denies"
		}
		pin := ""
		if p.Pin != nil && p.Pin.Version != "" {
			pin = "pins version " + p.Pin.Version
		}
		d.node(policies, policyID(e, p.Name), kind, p.Name, "targets "+p.DeploymentTargets.String(),
			"cluster types "+p.ClusterTypes.String(), clustersText(p.Clusters), pin)
	}
	d.targets(e, 1)
	reconcilers := map[string]string{}
	clusters := map[string]int{}
	for i := range e.Model.Clusters {
		clusters[e.Model.Clusters[i].Folder]++
	}
	for i := range e.Model.ClusterTypes {
		c := &e.Model.ClusterTypes[i]
		if reconcilers[c.Reconciler] == "" {
			reconcilers[c.Reconciler] = d.group(e, "reconciler/"+c.Reconciler, "reconciler "+c.Reconciler, 2)
		}
		count := ""
		if n := clusters[c.Name]; n > 0 {
			count = fmt.Sprintf("clusters: %d", n)
		}
		d.node(reconcilers[c.Reconciler], clusterTypeID(e, c.Name), "cluster type", c.Name, labelsText(c.Labels), count)
	}
	for i := range e.Schedule.Assignments {
		a := &e.Schedule.Assignments[i]
		target := targetID(e, a.Target.FullName)
		for _, name := range a.Policies {
			d.edge(policyID(e, name), target, "selects")
		}
		d.edge(target, clusterTypeID(e, a.ClusterType.Name), "is assigned to")
	}
	for _, denied := range e.Schedule.Denied {
		for _, name := range denied.Policies {
			d.edge(policyID(e, name), targetID(e, denied.DeploymentTarget), "takes away")
		}
	}
}

// targets adds the deployment targets of an environment, by workload.
func (d *drawing) targets(e *engine.Environment, rank int) {
	for i := range e.Model.Workloads {
		w := &e.Model.Workloads[i]
		if len(w.Targets) == 0 {
			continue
		}
		group := d.group(e, "workload/"+w.Name, w.Name, rank)
		for j := range w.Targets {
			d.node(group, targetID(e, w.Targets[j].FullName), "deployment target", w.Targets[j].FullName, w.Targets[j].Version)
		}
	}
}
