package schedule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// Rings returns the ring of each cluster type, by their names. A ring whose selector is {}
// has the cluster types that no other ring selects. A cluster type in no ring, or in
// several, is absent from the map and is an error among the diagnostics. Rings that select
// nothing are warnings. The diagnostics are unresolved references, into the environment's
// rings and cluster types. Rings returns nil if there are no rings.
func Rings(environment string, rings []model.Ring, clusterTypes []model.ClusterType,
	satisfies selector.Satisfier) (map[string]string, []diag.Diagnostic) {
	if len(rings) == 0 {
		return nil, nil
	}
	f := newFleet(&model.Environment{Name: environment, ClusterTypes: clusterTypes}, satisfies)
	r := &report{environment: environment}
	in := make([][]string, len(f.types)) // names of rings, by the number of the cluster type
	rest := ""
	for i := range rings {
		ring := &rings[i]
		if ring.Select.Op == model.OpAll {
			rest = ring.Name
			continue
		}
		selected := f.typeIndex.Select(ring.Select)
		for _, n := range selected {
			in[n] = append(in[n], ring.Name)
		}
		if len(selected) == 0 {
			ref := model.Ref{Collection: "environments", Name: environment,
				Path: fmt.Sprintf("rings[%d].select", i)}
			d := diag.New(diag.SelectsNothing,
				fmt.Sprintf("ring %s of environment %s selects nothing", ring.Name, environment)).
				On(ref.String()).At(ref, "")
			r.add(selector.VocabularyOf(f.typeFacts()).Explain(d, kindType, &ring.Select))
		}
	}
	of := make(map[string]string, len(f.types))
	for n, t := range f.types {
		switch found := in[n]; {
		case len(found) == 1:
			of[t.Name] = found[0]
		case len(found) == 0 && rest != "":
			of[t.Name] = rest
		default:
			r.add(notInOneRing(environment, t.Name, found, rings))
		}
	}
	return of, r.diagnostics()
}

func notInOneRing(environment, clusterType string, found []string,
	rings []model.Ring) diag.Diagnostic {
	ref := model.Ref{Collection: "clusterTypes", Name: model.TypeOfFolder(clusterType)}
	d := diag.New(diag.RingMembership, "").On(ref.String()).At(ref, "")
	if len(found) > 0 {
		last := len(found) - 1
		d.Message = fmt.Sprintf("cluster type %s is in several rings of environment %s: %s and %s",
			clusterType, environment, strings.Join(found[:last], ", "), found[last])
		return d.Hinting(
			"let only one of them select it, for instance by a label of its own for each ring")
	}
	var names []string
	for i := range rings {
		names = append(names, rings[i].Name)
	}
	slices.Sort(names)
	d.Message = fmt.Sprintf("cluster type %s is in no ring of environment %s: %s", clusterType,
		environment, strings.Join(names, ", "))
	return d.Hinting("let one of them select it; a ring with select: {} has all that are in no other")
}
