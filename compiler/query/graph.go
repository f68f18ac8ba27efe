package query

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/view/graph"
)

// drawing is a graph under construction. In a graph of several environments, the ids and labels
// of groups contain the names of the environments.
type drawing struct {
	graph.Graph
	several  bool
	required map[string]bool // the ids of the applications' contracts in the graph
}

// nodeLooks are the looks of kinds of nodes, which are the same in all graphs. DOT and Mermaid
// have eight shapes, so the looks in one graph differ modulo 8.
var nodeLooks = map[string]int{
	"assignment": 0, "config of the base": 1, "config of the environment": 2, "config schema": 3,
	"contract of the application": 4, "assignment with errors": 5,
	"scheduling policy": 6, "scheduling policy that denies": 7, "deployment target": 8,
	"cluster type": 9,
	"registration": 10, "inventory": 11, "git repository": 12, "Helm chart": 13, "OCI artifact": 14,
	"CUE module":  15,
	"environment": 16, "ring": 17,
}

// edgeLooks are the looks of kinds of edges. They differ only within one graph.
var edgeLooks = map[string]int{
	"sets values of": 0, "validates": 1,
	"is assigned to": 0, "selects": 1, "takes away": 2,
	"depends on": 0, "is brought by": 1, "is taken from": 2,
	"passes commits to": 0,
}

func newDrawing(title string, environments []*engine.Environment) *drawing {
	var names []string
	for _, e := range environments {
		names = append(names, e.Name)
	}
	if len(names) > 0 {
		title += " of " + strings.Join(names, ", ")
	}
	return &drawing{graph.Graph{Title: title, Groups: []graph.Group{}, Nodes: []graph.Node{},
		Edges: []graph.Edge{}, NodeLooks: nodeLooks, EdgeLooks: edgeLooks}, len(names) > 1,
		map[string]bool{}}
}

// group adds a group of an environment, and returns its id.
func (d *drawing) group(e *engine.Environment, id, label string, rank int) string {
	if d.several {
		label = e.Name + ": " + label
	}
	id = e.Name + "/" + id
	d.Groups = append(d.Groups, graph.Group{ID: id, Label: label, Rank: rank})
	return id
}

func (d *drawing) node(group, id, kind, label string, detail ...string) string {
	detail = slices.DeleteFunc(detail, func(line string) bool { return line == "" })
	d.Nodes = append(d.Nodes,
		graph.Node{ID: id, Label: label, Kind: kind, Group: group, Detail: detail})
	return id
}

func (d *drawing) edge(from, to, kind string) {
	d.Edges = append(d.Edges, graph.Edge{From: from, To: to, Kind: kind})
}

// finish sorts the graph. It removes groups without nodes, and edges from or to missing nodes.
func (d *drawing) finish() *graph.Graph {
	there, groups := map[string]bool{}, map[string]bool{}
	for _, n := range d.Nodes {
		there[n.ID], groups[n.Group] = true, true
	}
	d.Groups = slices.DeleteFunc(d.Groups, func(g graph.Group) bool { return !groups[g.ID] })
	d.Edges = slices.DeleteFunc(d.Edges,
		func(e graph.Edge) bool { return !there[e.From] || !there[e.To] })
	d.Sort()
	return &d.Graph
}

// reach returns a node and all nodes from which edges lead to it, directly or through others. If
// forwards is set, it returns the node and all nodes to which edges lead from it.
func (d *drawing) reach(id string, forwards bool) map[string]bool {
	next := map[string][]string{}
	for _, e := range d.Edges {
		if forwards {
			next[e.From] = append(next[e.From], e.To)
		} else {
			next[e.To] = append(next[e.To], e.From)
		}
	}
	reached := map[string]bool{}
	var visit func(string)
	visit = func(id string) {
		if !reached[id] {
			reached[id] = true
			for _, n := range next[id] {
				visit(n)
			}
		}
	}
	visit(id)
	return reached
}

// readableOf returns the environments that a graph shows.
func readableOf(b *compiler.Build) []*engine.Environment { return slices.Collect(readable(b)) }

// chosen returns an assignment by its id, with its environment. It returns nil if id is not the
// id of an assignment in a readable environment, or if errors hide the assignment. The cluster
// type in the id may be a class or a cluster. If the assignment does not exist, the error
// suggests a similar name.
func chosen(b *compiler.Build, id string) (*engine.Environment, int, error) {
	environment, clusterType, target, ok := Parse(id)
	e := find(b, environment)
	if !ok || e == nil || e.Model == nil {
		return nil, 0, nil
	}
	folder, _, err := folderOf(e, clusterType)
	if err != nil {
		return nil, 0, err
	}
	if i, assigned := e.Schedule.Index(folder, target); assigned {
		return e, i, nil
	}
	absence, _ := e.Schedule.WhyNot(folder, target)
	if err := unknown(&absence); err != nil {
		return nil, 0, err
	}
	if absence.Uncertain {
		return nil, 0, nil
	}
	return nil, 0, fmt.Errorf("%s is not assigned to %s in %s: kalypso explain %s says why", target,
		clusterType, environment, id)
}

func assignmentID(e *engine.Environment, i int) string {
	return "assignment/" + e.Schedule.Assignments[i].ID(e.Name)
}

// LabelsText returns labels as text, sorted by key.
func LabelsText(labels map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return strings.Join(out, ",")
}

// PromotionGraph shows how commits pass from environment to environment, and through their rings.
// It includes gates, and the branches of source and tree. It highlights an environment and
// everything that a commit passes before it; "" highlights nothing.
func PromotionGraph(all []model.Declaration, environment string) *graph.Graph {
	d := newDrawing("Promotion", nil)
	last := map[string][]string{} // by environment, the nodes that pass a commit on
	for i := range all {
		last[all[i].Name] = d.stages(&all[i])
	}
	for i := range all {
		for _, before := range all[i].Promotion.After {
			for _, id := range last[before] {
				d.edge(id, "environment/"+all[i].Name, "passes commits to")
			}
		}
	}
	g := d.finish()
	if environment != "" {
		g.Highlight(d.reach("environment/"+environment, false))
	}
	return g
}

// stages adds an environment with its rings, and returns the nodes that pass a commit on.
func (d *drawing) stages(of *model.Declaration) (last []string) {
	p := &of.Promotion
	detail := []string{}
	if p.Any && len(p.After) > 1 {
		detail = append(detail, "after any of them")
	}
	if p.Advance != "" && p.Advance != model.LatestPassed {
		detail = append(detail, "advance: "+string(p.Advance))
	}
	if p.Source != nil {
		detail = append(detail,
			fmt.Sprintf("its files: branch %s, folder %s", p.Source.Branch, p.Source.Path))
	}
	if g := of.GitOps; g != nil && g.OCI != "" {
		detail = append(detail, "tree: tag "+g.Tag, g.OCI)
	} else if g != nil {
		detail = append(detail, "tree: branch "+g.Branch, credential.Hide(g.Repo))
	}
	detail = append(detail, gateTexts(&p.Gates)...)
	if of.Invalid || of.NoRings {
		detail = append(detail, "has errors: some may be missing here")
	}
	environment := "environment/" + of.Name
	if len(p.Rings) == 0 {
		return []string{d.node("", environment, "environment", of.Name, detail...)}
	}
	group := "environments/" + of.Name
	d.Groups = append(d.Groups, graph.Group{ID: group, Label: of.Name})
	d.node(group, environment, "environment", of.Name, detail...)
	before := map[string]bool{}
	for i := range p.Rings {
		r := &p.Rings[i]
		id := "ring/" + of.Name + "/" + r.Name
		d.node(group, id, "ring", r.Name,
			slices.Concat([]string{r.Select.String()}, gateTexts(&r.Gates))...)
		for _, after := range r.After {
			before[after] = true
			d.edge("ring/"+of.Name+"/"+after, id, "passes commits to")
		}
		if len(r.After) == 0 {
			d.edge(environment, id, "passes commits to")
		}
	}
	for i := range p.Rings {
		if !before[p.Rings[i].Name] {
			last = append(last, "ring/"+of.Name+"/"+p.Rings[i].Name)
		}
	}
	return last
}

// gateTexts describes the conditions of gates, one per line.
func gateTexts(g *model.Gates) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r := g.Rollout; r != nil {
		if r.Source == "none" {
			say("rollout: is not waited for")
		} else {
			say("rollout: %s healthy%s", r.Min, timeoutText(r.Timeout))
		}
		if r.MaxFailed > 0 {
			say("rollout: at most %d failed", r.MaxFailed)
		}
		for _, s := range r.Status {
			say("rollout status: %s", s.Name)
		}
	}
	for _, s := range g.Status {
		say("status: %s", s.Name)
	}
	if s := g.Soak; s != nil && s.Environment != "" {
		say("soak: %s in %s", spanText(s.For), s.Environment)
	} else if s != nil {
		say("soak: %s", spanText(s.For))
	}
	if g.Approvals != nil {
		say("approvals: %d", g.Approvals.Count)
	}
	for _, w := range g.Windows {
		only := "only"
		if w.Deny {
			only = "not"
		}
		say("window: %s %s to %s %s", only, w.From, w.To, w.TZ)
	}
	for _, h := range g.HTTP {
		say("asks %s", h.Name)
	}
	for _, p := range g.Policy {
		say("policy: %s", p.Name)
	}
	if b := g.Budget; b != nil {
		for _, of := range []struct {
			most *int
			what string
		}{{b.Assignments, "assignments"}, {b.ClusterTypes, "cluster types"}, {b.Clusters, "clusters"}} {
			if of.most != nil {
				say("budget: %d %s", *of.most, of.what)
			}
		}
	}
	return out
}

func timeoutText(timeout time.Duration) string {
	if timeout == 0 {
		return ""
	}
	return " within " + spanText(timeout)
}

// spanText returns a time span without parts that are zero.
func spanText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// ScheduleGraph shows what runs where, and why. It has scheduling policies, the deployment
// targets that they select, and the cluster types of the assignments. It highlights an
// assignment, by its id, with the policies that make it; "" highlights nothing. It returns an
// error if there is no such assignment.
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
		path := map[string]bool{targetID(of, a.Target.FullName): true,
			clusterTypeID(of, a.ClusterType.Name): true}
		for _, name := range a.Policies {
			path[policyID(of, name)] = true
		}
		g.Highlight(path)
	}
	return g, nil
}

func policyID(e *engine.Environment, name string) string { return e.Name + "/policy/" + name }
func targetID(e *engine.Environment,
	fullName string) string {
	return e.Name + "/target/" + fullName
}
func clusterTypeID(e *engine.Environment,
	name string) string {
	return e.Name + "/clusterType/" + name
}

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
	followers := followersOf(e)
	for i := range e.Model.ClusterTypes {
		c := &e.Model.ClusterTypes[i]
		if reconcilers[c.Reconciler] == "" {
			reconcilers[c.Reconciler] = d.group(e, "reconciler/"+c.Reconciler, "reconciler "+c.Reconciler, 2)
		}
		count := ""
		if n := followers[c.Name]; n > 0 {
			count = fmt.Sprintf("clusters: %d", n)
		}
		d.node(reconcilers[c.Reconciler], clusterTypeID(e, c.Name), "cluster type", c.Name,
			LabelsText(c.Labels), count)
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
			d.node(group, targetID(e, w.Targets[j].FullName), "deployment target", w.Targets[j].FullName,
				w.Targets[j].Version)
		}
	}
}
