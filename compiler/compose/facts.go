package compose

import (
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// matchFacts makes facts those that selectors may know of an assignment.
func (p *Plan) matchFacts(facts selector.Facts, i int) {
	a := &p.assignments[i]
	clear(facts)
	facts["environment"] = selector.Values(p.env.Name)
	facts["workspace"] = selector.Values(a.Workload.Workspace)
	facts["workload"] = selector.Values(a.Workload.Name)
	facts["deploymentTarget"] = selector.Values(a.Target.FullName)
	facts["clusterType"] = selector.Values(a.ClusterType.Name)
	for k, v := range a.ClusterType.Labels {
		facts[k] = selector.Values(v)
	}
	for k, v := range a.Target.Labels {
		if other, both := a.ClusterType.Labels[k]; both && other != v {
			facts[k] = selector.Values(other, v)
			continue
		}
		facts[k] = selector.Values(v)
	}
}

// facts returns the fields of #assignment with these names, as far as they are
// known; values, which are known once they are composed, may be nil.
func (p *Plan) facts(i int, names []string, values *model.Value) model.Value {
	fields := make([]model.Field, 0, len(names))
	for _, name := range names {
		if v, known := p.fact(i, name, values); known {
			fields = append(fields, model.Field{Name: name, Value: v})
		}
	}
	return model.StructOf(fields...)
}

func (p *Plan) fact(i int, name string, values *model.Value) (v model.Value, known bool) {
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
		text = a.ClusterType.Name
	case "labels":
		return labels(a.ClusterType.Labels, a.Target.Labels), true
	case "version":
		return model.StringOf(a.Version), a.Version != ""
	case "namespace":
		return model.StringOf(p.Namespaces[i]), p.Namespaces[i] != ""
	case "values":
		if values == nil {
			return model.Value{}, false
		}
		return *values, true
	default:
		return model.Value{}, false
	}
	return model.StringOf(text), true
}

// labels are those of a cluster type and, over them, those of a target.
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
