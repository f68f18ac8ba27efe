package compose

import (
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// assignmentFacts are what selectors and functions may know of an assignment.
type assignmentFacts struct {
	match selector.Facts
	known map[string]model.Value // the fields of #assignment, by name
}

func factsOf(environment string, a *schedule.Assignment) assignmentFacts {
	match := selector.Facts{
		"environment":      selector.Values(environment),
		"workspace":        selector.Values(a.Workload.Workspace),
		"workload":         selector.Values(a.Workload.Name),
		"deploymentTarget": selector.Values(a.Target.FullName),
		"clusterType":      selector.Values(a.ClusterType.Name),
	}
	var labels []model.Field
	for k, v := range a.Target.Labels {
		labels = append(labels, model.Field{Name: k, Value: model.StringOf(v)})
		if other, both := a.ClusterType.Labels[k]; both && other != v {
			match[k] = selector.Values(other, v)
			continue
		}
		match[k] = selector.Values(v)
	}
	for k, v := range a.ClusterType.Labels {
		if _, both := a.Target.Labels[k]; !both {
			labels = append(labels, model.Field{Name: k, Value: model.StringOf(v)})
			match[k] = selector.Values(v)
		}
	}
	known := map[string]model.Value{
		"environment":      model.StringOf(environment),
		"workspace":        model.StringOf(a.Workload.Workspace),
		"application":      model.StringOf(a.Workload.Application),
		"workload":         model.StringOf(a.Workload.Name),
		"deploymentTarget": model.StringOf(a.Target.FullName),
		"clusterType":      model.StringOf(a.ClusterType.Name),
		"labels":           model.StructOf(labels...),
	}
	if a.Version != "" {
		known["version"] = model.StringOf(a.Version)
	}
	return assignmentFacts{match, known}
}

// of returns the facts that a function uses, as far as they are known.
func (f assignmentFacts) of(names []string) model.Value {
	var fields []model.Field
	for _, name := range names {
		if v, known := f.known[name]; known {
			fields = append(fields, model.Field{Name: name, Value: v})
		}
	}
	return model.StructOf(fields...)
}

// callKey identifies a function's call for an assignment.
func (c *composer) callKey(entity string, facts []string, i int) string {
	var b strings.Builder
	b.WriteString(entity)
	b.WriteByte(0)
	b.Write(c.facts[i].of(facts).AppendJSON(nil))
	return b.String()
}
