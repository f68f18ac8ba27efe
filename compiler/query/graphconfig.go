package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/credential"
	"github.com/kalypso-io/kalypso/view/graph"
)

// ConfigGraph is the configuration graph of environments. It has configs by layer, contracts, and
// the assignments that each of them matches. It highlights the configuration of an assignment, by
// its id; "" highlights nothing. It returns an error if there is no such assignment.
func ConfigGraph(b *compiler.Build, assignment string) (*graph.Graph, error) {
	environments := readableOf(b)
	d := newDrawing("Configuration", environments)
	var layers []int
	for _, e := range environments {
		for i := range e.Model.Configs {
			layers = append(layers, e.Model.Configs[i].Layer)
		}
	}
	slices.Sort(layers)
	layers = slices.Compact(layers)
	for _, e := range environments {
		d.configs(e, layers, func(string) bool { return true }, func(string) bool { return true })
		for i := range e.Schedule.Assignments {
			d.configured(e, i)
		}
	}
	of, n, err := chosen(b, assignment)
	if err != nil {
		return nil, err
	}
	g := d.finish()
	if of != nil {
		g.Highlight(d.reach(assignmentID(of, n), false))
	}
	return g, nil
}

// ConfigPath is the part of the configuration graph that leads to an assignment, given by its
// number in the environment.
func ConfigPath(e *engine.Environment, assignment int) *graph.Graph {
	d := newDrawing("Configuration", []*engine.Environment{e})
	configs, schemas := e.Plan.Configs(assignment), e.Plan.ConfigSchemas(assignment)
	var layers []int
	for i := range e.Model.Configs {
		if c := &e.Model.Configs[i]; slices.Contains(configs, c.Name) {
			layers = append(layers, c.Layer)
		}
	}
	slices.Sort(layers)
	layers = slices.Compact(layers)
	d.configs(e, layers, func(name string) bool { return slices.Contains(configs, name) },
		func(name string) bool { return slices.Contains(schemas, name) })
	d.configured(e, assignment)
	return d.finish()
}

// configs adds configs and config schemas of an environment, by their names. layers are the
// layers of all environments.
func (d *drawing) configs(e *engine.Environment, layers []int, config,
	schema func(name string) bool) {
	groups := map[int]string{}
	for rank, layer := range layers {
		groups[layer] = d.group(e, fmt.Sprintf("layer/%d", layer), fmt.Sprintf("layer %d", layer), rank)
	}
	contracts := d.group(e, contractsGroup, "contracts", len(layers))
	for i := range e.Model.ClusterTypes {
		c := &e.Model.ClusterTypes[i]
		d.group(e, "clusterType/"+c.Name, strings.TrimSpace(c.Name+"  "+LabelsText(c.Labels)),
			len(layers)+1)
	}
	for i := range e.Model.Configs {
		c := &e.Model.Configs[i]
		if c.UnknownOf == "" && config(c.Name) {
			var sets []string
			for _, t := range []model.Tree{c.Values, c.Defaults, c.Overrides} {
				keys("", t, &sets)
			}
			d.node(groups[c.Layer], e.Name+"/config/"+c.Name, originKind(e, c), c.Name, c.Match.String(),
				clustersText(c.Clusters), strings.Join(sets, ", "), errorText(c.Invalid))
		}
	}
	for i := range e.Model.ConfigSchemas {
		s := &e.Model.ConfigSchemas[i]
		if !schema(s.Name) {
			continue
		}
		d.node(contracts, e.Name+"/configSchema/"+s.Name, "config schema", s.Name, s.Match.String(),
			clustersText(s.Clusters), errorText(s.Invalid))
	}
}

// contractsGroup is the id of the group of contracts, in an environment.
const contractsGroup = "contracts"

// configured adds an assignment with the edges of its configuration.
func (d *drawing) configured(e *engine.Environment, i int) {
	a := &e.Schedule.Assignments[i]
	kind := "assignment"
	if e.Failed(i) {
		kind = "assignment with errors"
	}
	id := d.node(e.Name+"/clusterType/"+a.ClusterType.Name, assignmentID(e, i), kind,
		a.Target.FullName, a.Version)
	for _, name := range e.Plan.Configs(i) {
		d.edge(e.Name+"/config/"+name, id, "sets values of")
	}
	for _, name := range e.Plan.ConfigSchemas(i) {
		d.edge(e.Name+"/configSchema/"+name, id, "validates")
	}
	for _, of := range []struct {
		contract *model.Contract
		name     string
	}{{a.Workload.Requires, a.Workload.Name}, {a.Target.Requires, a.Target.FullName}} {
		if of.contract == nil {
			continue
		}
		requires := e.Name + "/" + of.contract.Ref.String()
		if !d.required[requires] {
			d.required[requires] = true
			d.node(e.Name+"/"+contractsGroup, requires, "contract of the application",
				"requires of "+of.name)
		}
		d.edge(requires, id, "validates")
	}
}

// originKind returns the kind of a config's node: of the base, or of the environment.
func originKind(e *engine.Environment, c *model.Config) string {
	for _, p := range e.Model.Positions.Of(model.Ref{Collection: "configs", Name: c.Name}) {
		if strings.HasPrefix(p.File, "environments/"+e.Name+"/") {
			return "config of the environment"
		}
	}
	return "config of the base"
}

func clustersText(s *model.Selector) string {
	if s == nil {
		return ""
	}
	return "clusters " + s.String()
}

func errorText(invalid bool) string {
	if invalid {
		return "has errors"
	}
	return ""
}

// DependencyGraph shows the dependencies of deployment targets, and the external sources of the
// platform. These are sources of manifests and inventories, registrations, and the pins of
// kalypso.lock. It highlights the deployment target of an assignment, by its id, with all its
// dependencies; "" highlights nothing. It returns an error if there is no such assignment.
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
	known map[dependency.Source]bool // the sources that have nodes
}

func (d *dependencies) environment(e *engine.Environment) {
	d.targets(e, 0)
	registered := d.group(e, "registrations", "registrations", 1)
	for i := range e.Model.Registrations {
		r := &e.Model.Registrations[i]
		d.addSource(d.node(registered, e.Name+"/registration/"+r.Name, "registration", r.Name,
			r.Workspace),
			model.Manifests{Git: &r.Git})
	}
	inventories := d.group(e, "inventories", "inventories", 1)
	for i := range e.Model.Inventories {
		if v := &e.Model.Inventories[i]; v.From != nil {
			d.addSource(d.node(inventories, e.Name+"/inventory/"+v.Name, "inventory", v.Name),
				v.From.Manifests())
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
			d.addSource(id, t.Manifests)
		}
	}
	for i := range e.Schedule.Assignments { // a policy may have pinned another revision
		a := &e.Schedule.Assignments[i]
		d.addSource(targetID(e, a.Target.FullName), a.Manifests)
	}
}

// addSource adds an edge to the source of manifests, if they have one.
func (d *dependencies) addSource(id string, m model.Manifests) {
	if s, has := dependency.SourceOf(m); has {
		d.edge(id, d.source(s), "is taken from")
	}
}

// sourceKinds are the names of kinds of sources, and of groups of them.
var sourceKinds = map[dependency.Kind][2]string{
	dependency.Git:    {"git repository", "git repositories"},
	dependency.Chart:  {"Helm chart", "Helm charts"},
	dependency.OCI:    {"OCI artifact", "OCI artifacts"},
	dependency.Module: {"CUE module", "CUE modules"},
}

// source adds a source if it is missing, and returns its id.
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
