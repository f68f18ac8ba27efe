package query

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/view/graph"
)

// DependencyGraph is what deployment targets depend on, and what the platform takes from
// elsewhere: sources of manifests and inventories, registrations, and what kalypso.lock pins. The
// deployment target of an assignment, by its id, is highlighted with all that it needs; "" for
// none. The error is that there is no such assignment.
func DependencyGraph(b *compiler.Build, assignment string) (*graph.Graph, error) {
	environments := readableOf(b)
	d := &dependencies{drawing: newDrawing("Dependencies", environments), lock: b.Lock(),
		known: map[dependency.Source]bool{}}
	for _, e := range environments {
		d.environment(e)
	}
	for _, entry := range d.lock.Sources {
		d.source(entry.Source)
	}
	of, n, err := chosen(b, assignment)
	if err != nil {
		return nil, err
	}
	g := d.finish()
	if of != nil {
		g.Highlight(d.reach(targetID(of, of.Schedule.Assignments[n].Target.FullName), true))
	}
	return g, nil
}

type dependencies struct {
	*drawing
	lock  *dependency.Lock
	known map[dependency.Source]bool // that have nodes
}

func (d *dependencies) environment(e *engine.Environment) {
	d.targets(e, 0)
	registered := d.group(e, "registrations", "registrations", 1)
	for i := range e.Model.Registrations {
		r := &e.Model.Registrations[i]
		d.from(d.node(registered, e.Name+"/registration/"+r.Name, "registration", r.Name, r.Workspace),
			model.Manifests{Git: &r.Git})
	}
	inventories := d.group(e, "inventories", "inventories", 1)
	for i := range e.Model.Inventories {
		if v := &e.Model.Inventories[i]; v.From != nil {
			d.from(d.node(inventories, e.Name+"/inventory/"+v.Name, "inventory", v.Name), v.From.Manifests())
		}
	}
	for i := range e.Model.Workloads {
		w := &e.Model.Workloads[i]
		for j := range w.Targets {
			t := &w.Targets[j]
			id := targetID(e, t.FullName)
			for _, other := range t.DependsOn {
				d.edge(id, targetID(e, other), "depends on")
			}
			if w.Registration != "" {
				d.edge(id, e.Name+"/registration/"+w.Registration, "is brought by")
			}
			d.from(id, t.Manifests)
		}
	}
	for i := range e.Schedule.Assignments { // a policy may have pinned another revision
		a := &e.Schedule.Assignments[i]
		d.from(targetID(e, a.Target.FullName), a.Manifests)
	}
}

// from adds that something comes from the source of manifests, if they have one.
func (d *dependencies) from(id string, m model.Manifests) {
	if s, has := dependency.SourceOf(m); has {
		d.edge(id, d.source(s), "is taken from")
	}
}

// sourceKinds are what sources are called, and groups of them.
var sourceKinds = map[dependency.Kind][2]string{
	dependency.Git: {"git repository", "git repositories"}, dependency.Chart: {"Helm chart", "Helm charts"},
	dependency.OCI: {"OCI artifact", "OCI artifacts"}, dependency.Module: {"CUE module", "CUE modules"},
}

// source adds a source, if it is not there, and returns its id.
func (d *dependencies) source(s dependency.Source) string {
	id := "source/" + s.String()
	if d.known[s] {
		return id
	}
	d.known[s] = true
	kind := sourceKinds[s.Kind]
	group := "sources/" + string(s.Kind)
	if !slices.ContainsFunc(d.Groups, func(g graph.Group) bool { return g.ID == group }) {
		d.Groups = append(d.Groups, graph.Group{ID: group, Label: kind[1], Rank: 2})
	}
	_, short, found := strings.Cut(credential.Hide(s.URL), "://")
	if !found {
		short = credential.Hide(s.URL)
	}
	pinned := "not pinned"
	if e, is := d.lock.Find(s); is {
		pinned = "pinned to " + e.Revision
	}
	asked := cmp.Or(s.Branch, s.Tag, s.Semver, s.Commit, s.Version, s.Digest)
	if s.Chart != "" {
		return d.node(group, id, kind[0], s.Chart, short, asked, pinned)
	}
	return d.node(group, id, kind[0], strings.TrimSuffix(short, ".git"), asked, pinned)
}
