package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// unlisted are the cluster types of which no cluster is listed, by configs that are for single
// clusters; each with its assignments.
type unlisted map[model.Ref]map[string][]string

// add adds what is for clusters of a tuple that has none.
func (u unlisted) add(p *Inputs, tuple int) {
	for _, config := range p.Plan.OfClusters(tuple) {
		if u[config] == nil {
			u[config] = map[string][]string{}
		}
		for _, i := range p.Plan.Tuples[tuple].Assignments {
			ct := p.Schedule.Assignments[i].ClusterType.TypeName()
			u[config][ct] = append(u[config][ct], p.id(int(i)))
		}
	}
}

// diagnostics warns of each config. Where an assignment fails, its error is the cause.
func (u unlisted) diagnostics(environment string) (ds []diag.Diagnostic) {
	for config, of := range u {
		types := slices.Sorted(maps.Keys(of))
		var assignments []string
		for _, ct := range types {
			assignments = append(assignments, of[ct]...)
		}
		which := "cluster type " + types[0]
		if last := len(types) - 1; last > 0 {
			which = "cluster types " + strings.Join(types[:last], ", ") + " and " + types[last]
		}
		d := diag.New(diag.NoClusters,
			fmt.Sprintf("config %s has values for single clusters, and no cluster of %s is listed",
				config.Name, which)).
			At(config, "").On(config.String()).Following(assignments...).
			Hinting(fmt.Sprintf("list them: clusters: NAME: clusterType: %q, or in an inventory; or leave "+
				"the cluster type out of the config's match", types[0]))
		d.Environment = environment
		ds = append(ds, d)
	}
	return ds
}
