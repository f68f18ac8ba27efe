package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/build"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/view/graph"
)

// ConfigGraph is the configuration graph of environments: configs by layer, contracts, and the
// assignments that each matches. What an assignment, by its id, is configured by is highlighted;
// "" for none. The error is that there is no such assignment.
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
		d.configs(e, layers)
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

// configs adds an environment; layers are those that there are in all of them.
func (d *drawing) configs(e *build.Environment, layers []int) {
	groups := map[int]string{}
	for rank, layer := range layers {
		groups[layer] = d.group(e, fmt.Sprintf("layer/%d", layer), fmt.Sprintf("layer %d", layer), rank)
	}
	contracts := d.group(e, "contracts", "contracts", len(layers))
	clusterTypes := map[string]string{}
	for i := range e.Model.ClusterTypes {
		c := &e.Model.ClusterTypes[i]
		clusterTypes[c.Name] = d.group(e, "clusterType/"+c.Name, clusterTypeLabel(c), len(layers)+1)
	}
	for i := range e.Model.Configs {
		c := &e.Model.Configs[i]
		if c.UnknownOf == "" {
			var sets []string
			for _, t := range []model.Tree{c.Values, c.Defaults, c.Overrides} {
				keys("", t, &sets)
			}
			d.node(groups[c.Layer], e.Name+"/config/"+c.Name, originKind(e, c), c.Name, c.Match.String(), clustersText(c.Clusters), strings.Join(sets, ", "), errorText(c.Invalid))
		}
	}
	for i := range e.Model.ConfigSchemas {
		s := &e.Model.ConfigSchemas[i]
		d.node(contracts, e.Name+"/configSchema/"+s.Name, "config schema", s.Name, s.Match.String(), clustersText(s.Clusters), errorText(s.Invalid))
	}
	required := map[string]bool{}
	for i := range e.Schedule.Assignments {
		a := &e.Schedule.Assignments[i]
		kind := "assignment"
		if e.Failed(i) {
			kind = "assignment with errors"
		}
		id := d.node(clusterTypes[a.ClusterType.Name], assignmentID(e, i), kind, a.Target.FullName, a.Version)
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
			if !required[requires] {
				required[requires] = true
				d.node(contracts, requires, "contract of the application", "requires of "+of.name)
			}
			d.edge(requires, id, "validates")
		}
	}
}

// originKind says whose a config is.
func originKind(e *build.Environment, c *model.Config) string {
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
