package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/view/graph"
)

// drawing is a graph that is being made. In a graph of several environments, ids and labels of
// groups have their names.
type drawing struct {
	graph.Graph
	several  bool
	required map[string]bool // the ids of contracts of applications that are added
}

// nodeLooks are the looks of kinds of nodes, the same in all graphs. DOT and Mermaid have eight
// shapes: those of one graph differ modulo 8.
var nodeLooks = map[string]int{
	"assignment": 0, "config of the base": 1, "config of the environment": 2, "config schema": 3,
	"contract of the application": 4, "assignment with errors": 5,
	"scheduling policy": 6, "scheduling policy that denies": 7, "deployment target": 8, "cluster type": 9,
	"registration": 10, "inventory": 11, "git repository": 12, "Helm chart": 13, "OCI artifact": 14, "CUE module": 15,
	"environment": 16, "ring": 17,
}

// edgeLooks are the same of edges. Only those of one graph differ.
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
		Edges: []graph.Edge{}, NodeLooks: nodeLooks, EdgeLooks: edgeLooks}, len(names) > 1, map[string]bool{}}
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
	d.Nodes = append(d.Nodes, graph.Node{ID: id, Label: label, Kind: kind, Group: group, Detail: detail})
	return id
}

func (d *drawing) edge(from, to, kind string) {
	d.Edges = append(d.Edges, graph.Edge{From: from, To: to, Kind: kind})
}

// finish sorts the graph, and leaves out groups without nodes, and edges from and to what is not
// there.
func (d *drawing) finish() *graph.Graph {
	there, groups := map[string]bool{}, map[string]bool{}
	for _, n := range d.Nodes {
		there[n.ID], groups[n.Group] = true, true
	}
	d.Groups = slices.DeleteFunc(d.Groups, func(g graph.Group) bool { return !groups[g.ID] })
	d.Edges = slices.DeleteFunc(d.Edges, func(e graph.Edge) bool { return !there[e.From] || !there[e.To] })
	d.Sort()
	return &d.Graph
}

// reach returns the nodes from which edges lead to a node, or, forwards, to which they lead from
// it, and itself.
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

// chosen returns an assignment by its id, with its environment; nil where none is asked for, and
// where errors hide it. The cluster type may be a class of one, or a cluster. The error says that
// there is none, and what may have been meant.
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

// clusterTypeLabel names a cluster type, with its labels.
func clusterTypeLabel(c *model.ClusterType) string {
	return strings.TrimSpace(c.Name + "  " + labelsText(c.Labels))
}

func labelsText(of map[string]string) string {
	var out []string
	for k, v := range of {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
