package compose

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// ofClusterType is the only fact that is neither a label nor implied by the
// target of an assignment.
const ofClusterType = "clusterType"

// implied returns the facts of an assignment that are not labels, and that are the same for all
// assignments of its target.
func (p *Plan) implied(a *schedule.Assignment) map[string]string {
	return map[string]string{"environment": p.env.Name, "workspace": a.Workload.Workspace,
		"workload": a.Workload.Name, "deploymentTarget": a.Target.FullName}
}

// vocabularyOf returns the names and values that matches can use: all facts of the assignments.
func (p *Plan) vocabularyOf() selector.Vocabulary {
	return selector.VocabularyOf(func(yield func(selector.Facts) bool) {
		for i := range p.assignments {
			a := &p.assignments[i]
			facts := selector.Facts{ofClusterType: selector.Values(a.ClusterType.TypeName())}
			for name, value := range p.implied(a) {
				facts[name] = selector.Values(value)
			}
			for _, labels := range []map[string]string{a.ClusterType.Labels, a.Target.Labels} {
				for key, value := range labels {
					facts[key] = selector.Values(append(facts[key].Values, value)...)
				}
			}
			if !yield(facts) {
				return
			}
		}
	})
}

// selectedNames are the facts that selectors request, of both sides of assignments.
type selectedNames struct {
	names            []string // sorted
	clusterTypes     map[*model.ClusterType][]numberedFact
	targets, implied map[*model.DeploymentTarget][]numberedFact
}

// numberedFact is a fact by the number of its name.
type numberedFact struct {
	number int
	fact   selector.Fact
}

// clusterType returns the requested facts of a cluster type.
func (a *selectedNames) clusterType(ct *model.ClusterType) []numberedFact {
	out, there := a.clusterTypes[ct]
	if !there {
		facts := map[string]string{ofClusterType: ct.TypeName()}
		maps.Copy(facts, ct.Labels)
		out = remembered(a, a.clusterTypes, ct, facts)
	}
	return out
}

// remembered returns the requested facts of an entity.
func remembered[E any](a *selectedNames, all map[*E][]numberedFact, of *E,
	facts map[string]string) []numberedFact {
	out, there := all[of]
	if there {
		return out
	}
	for name, value := range facts {
		if number, found := slices.BinarySearch(a.names, name); found {
			out = append(out, numberedFact{number, selector.Values(value)})
		}
	}
	all[of] = out
	return out
}

// Late has the facts of an assignment that are known only after composing and rendering.
type Late struct {
	Values model.Value // composed
	// Manifests are the source, with the values for a chart; nil for the schedule's manifests.
	Manifests *model.Manifests
	Rendered  model.Value // the list of rendered objects
}

// clusterFact returns the facts of a single cluster.
func clusterFact(c *model.Cluster, of *model.ClusterType) model.Value {
	fields := []model.Field{{Name: "name", Value: model.StringOf(c.Name)},
		{Name: "labels", Value: labels(of.Labels, c.Labels)}, {Name: "values", Value: model.StructOf()}}
	if c.Address != "" {
		fields = append(fields, model.Field{Name: "address", Value: model.StringOf(c.Address)})
	}
	if c.Values != nil {
		fields[2].Value = *c.Values
	}
	return model.StructOf(fields...)
}

// facts returns the fields of #assignment with these names, if they are known; late may be nil.
func (p *Plan) facts(i int, names []string, late *Late) model.Value {
	fields := make([]model.Field, 0, len(names))
	for _, name := range names {
		if v, known := p.fact(i, name, late); known {
			fields = append(fields, model.Field{Name: name, Value: v})
		}
	}
	return model.StructOf(fields...)
}

// fact returns one field of #assignment, and reports whether it is known; late may be nil.
func (p *Plan) fact(i int, name string, late *Late) (v model.Value, known bool) {
	a := &p.assignments[i]
	text := ""
	switch name {
	case "environment":
		text = p.env.Name
	case "workspace":
		text = a.Workload.Workspace
	case "application":
		text = a.Workload.Application
	case "workload":
		text = a.Workload.Name
	case "deploymentTarget":
		text = a.Target.FullName
	case "clusterType":
		text = a.ClusterType.TypeName()
	case "labels":
		return labels(a.ClusterType.Labels, a.Target.Labels), true
	case "version":
		return model.StringOf(a.Version), a.Version != ""
	case "namespace":
		return model.StringOf(p.Namespaces[i]), p.Namespaces[i] != ""
	case "manifests":
		m := a.Manifests
		if late != nil && late.Manifests != nil {
			m = *late.Manifests
		}
		if a.Workload.Registration != "" {
			m = m.WithoutSecrets()
		}
		return factOf(m), true
	case "dependsOn":
		return texts(a.DependsOn), true
	case "wave":
		return model.IntOf(int64(a.Wave)), true
	case "gitops":
		return factOf(p.env.GitOps), p.env.GitOps != nil
	case "configFormat":
		text = string(a.ClusterType.ConfigFormat)
	case "images":
		return factOf(slices.Concat([]model.Image{}, a.ClusterType.Images)), true
	case "values":
		if late == nil {
			return model.Value{}, false
		}
		return late.Values, true
	case "rendered":
		if late == nil {
			return model.Value{}, false
		}
		return late.Rendered, true
	default:
		return model.Value{}, false
	}
	return model.StringOf(text), true
}

// Tested returns the facts of an assignment that a test may use, by the assignment's number: a
// struct with the fields of #TestedAssignment in the schema.
func (p *Plan) Tested(i int) model.Value {
	a := &p.assignments[i]
	known := p.facts(i, []string{"environment", "workspace", "application", "workload",
		"deploymentTarget", "clusterType", "namespace", "labels",
		"version", "manifests", "dependsOn", "wave", "gitops", "configFormat"}, nil)
	fields := append(known.Fields(),
		model.Field{Name: "policies", Value: texts(a.Policies)},
		model.Field{Name: "configs", Value: texts(p.Configs(i))},
		model.Field{Name: "configSchemas", Value: texts(p.ConfigSchemas(i))},
		model.Field{Name: "reconciler", Value: model.StringOf(a.ClusterType.Reconciler)},
		model.Field{Name: "namespaceService", Value: model.StringOf(a.ClusterType.NamespaceService)},
	)
	if r := a.Workload.Registration; r != "" {
		fields = append(fields, model.Field{Name: "registration", Value: model.StringOf(r)})
	}
	return model.StructOf(fields...)
}

// factOf returns the facts of a model value, with the schema's names.
func factOf(of any) model.Value {
	text, err := json.Marshal(of)
	if err != nil {
		panic("compose: " + err.Error()) // strings, bools and Values always have JSON
	}
	var v model.Value
	if err := v.UnmarshalJSON(text); err != nil {
		panic("compose: " + err.Error())
	}
	return v
}

// texts returns a list of strings as a value.
func texts(list []string) model.Value {
	elems := make([]model.Value, len(list))
	for i, s := range list {
		elems[i] = model.StringOf(s)
	}
	return model.ListOf(elems...)
}

// labels returns the labels of a cluster type, overridden by the target's labels.
func labels(clusterType, target map[string]string) model.Value {
	fields := make([]model.Field, 0, len(clusterType)+len(target))
	for k, v := range target {
		fields = append(fields, model.Field{Name: k, Value: model.StringOf(v)})
	}
	for k, v := range clusterType {
		if _, both := target[k]; !both {
			fields = append(fields, model.Field{Name: k, Value: model.StringOf(v)})
		}
	}
	return model.StructOf(fields...)
}
