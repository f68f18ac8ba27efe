package schedule

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// fleet are the two sides that policies select from. Everything about them is by
// their number.
type fleet struct {
	environment string
	targets     []target             // sorted by full name
	types       []*model.ClusterType // sorted by name
	clusters    []model.Cluster
	targetIndex *selector.Index
	typeIndex   *selector.Index
}

// target is a deployment target with its workload.
type target struct {
	*model.DeploymentTarget
	workload *model.Workload
}

// ref of the deployment target.
func (t target) ref() model.Ref { return t.workload.TargetRef(t.Name) }

func newFleet(env *model.Environment, satisfies selector.Satisfier) *fleet {
	f := &fleet{environment: env.Name, clusters: env.Clusters}
	for i := range env.Workloads {
		w := &env.Workloads[i]
		for j := range w.Targets {
			f.targets = append(f.targets, target{&w.Targets[j], w})
		}
	}
	slices.SortFunc(f.targets, func(a, b target) int {
		return cmp.Or(strings.Compare(a.FullName, b.FullName),
			strings.Compare(a.workload.Name, b.workload.Name))
	})
	for i := range env.ClusterTypes {
		f.types = append(f.types, &env.ClusterTypes[i])
	}
	slices.SortFunc(f.types,
		func(a, b *model.ClusterType) int { return strings.Compare(a.Name, b.Name) })
	f.targetIndex = selector.NewIndex(f.targetFacts(), satisfies)
	f.typeIndex = selector.NewIndex(f.typeFacts(), satisfies)
	return f
}

// targetFacts are the facts of deployment targets.
func (f *fleet) targetFacts() iter.Seq[selector.Facts] {
	return func(yield func(selector.Facts) bool) {
		for _, t := range f.targets {
			labels := selector.Labels(t.Labels)
			labels.Facts["workload"] = selector.Values(t.workload.Name)
			labels.Facts["workspace"] = selector.Values(t.workload.Workspace)
			if !yield(selector.Facts{
				"name":        selector.Values(t.Name),
				"workload":    selector.Values(t.workload.Name),
				"workspace":   selector.Values(t.workload.Workspace),
				"environment": selector.Values(f.environment),
				"labels":      labels,
			}) {
				return
			}
		}
	}
}

// typeFacts are the facts of cluster types.
func (f *fleet) typeFacts() iter.Seq[selector.Facts] {
	return func(yield func(selector.Facts) bool) {
		for _, c := range f.types {
			if !yield(selector.Facts{
				"name":   selector.Values(c.TypeName()),
				"labels": selector.Labels(c.Labels),
			}) {
				return
			}
		}
	}
}

// clusterFacts are the own facts of clusters, without facts of their cluster types.
func (f *fleet) clusterFacts() iter.Seq[selector.Facts] {
	return func(yield func(selector.Facts) bool) {
		for i := range f.clusters {
			if !yield(selector.Facts{"name": selector.Values(f.clusters[i].Name),
				"labels": selector.Labels(f.clusters[i].Labels)}) {
				return
			}
		}
	}
}

// targetNamed returns the number of the deployment target with a full name.
func (f *fleet) targetNamed(fullName string) (int, bool) {
	return slices.BinarySearchFunc(f.targets, fullName, func(t target, name string) int {
		return strings.Compare(t.FullName, name)
	})
}

// typeNamed returns the number of the cluster type with a name.
func (f *fleet) typeNamed(name string) (int, bool) {
	return slices.BinarySearchFunc(f.types, name, func(c *model.ClusterType, name string) int {
		return strings.Compare(c.Name, name)
	})
}

// fullNames returns the full names of all deployment targets, sorted.
func (f *fleet) fullNames() []string {
	names := make([]string, len(f.targets))
	for i, t := range f.targets {
		names[i] = t.FullName
	}
	return names
}

// typeNames returns the names of all cluster types, sorted.
func (f *fleet) typeNames() []string {
	names := make([]string, len(f.types))
	for i, c := range f.types {
		names[i] = c.Name
	}
	return names
}

// Bounded returns the cluster types on which each workspace may be, by the names of the
// workspaces. It contains only workspaces that select cluster types. Workspaces that have
// patterns of names are absent.
func Bounded(env *model.Environment, satisfies selector.Satisfier) map[string]map[string]bool {
	var out map[string]map[string]bool
	var f *fleet
	for i := range env.Workspaces {
		w := &env.Workspaces[i]
		if w.SelectedTypes == nil {
			continue
		}
		if f == nil {
			f = newFleet(&model.Environment{Name: env.Name, ClusterTypes: env.ClusterTypes}, satisfies)
			out = map[string]map[string]bool{}
		}
		out[w.Name] = map[string]bool{}
		for _, n := range f.typeIndex.Select(*w.SelectedTypes) {
			out[w.Name][f.types[n].Name] = true
		}
	}
	return out
}
