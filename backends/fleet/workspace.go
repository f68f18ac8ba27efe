package fleet

import (
	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
)

// workspace adds what the namespace service asks for, and the platform config.
func (f *folder) workspace() {
	files, objects, ds := kubernetes.Workspace(f.assignment)
	f.files, f.objects, f.ds = append(f.files, files...), append(f.objects, objects...), append(f.ds, ds...)
	f.overlays()
}

// bundle adds fleet.yaml of the workspace's bundle.
//
// Its release lies in Fleet's default namespace, which is default: one in the
// namespace that it creates would go with it, before Helm has removed what else
// the release holds. All objects name their namespace. It takes over what is
// there, as Fleet does in every upgrade: the namespace may be, because the
// workload's own GitRepo creates it where it comes first.
func (f *folder) bundle() {
	p := partWorkspace
	if f.bare {
		p = partWorkload
	}
	f.files = append(f.files, bundle("", fleetYAML{
		Name:                 nameOf(f.assignment, partWorkspace),
		Labels:               labels(f.assignment, f.assignment.DeploymentTarget, p),
		Helm:                 &helm{TakeOwnership: true},
		TargetCustomizations: f.customizations,
	}))
}

// overlays adds the platform configs of clusters that have values of their own,
// and what chooses them. A file of an overlay replaces the bundle's file
// of its name (https://fleet.rancher.io/ref-fleet-yaml, yaml.overlays).
func (f *folder) overlays() {
	for _, c := range f.assignment.Clusters {
		values, changes := onCluster(f.assignment.Values, c)
		if !changes {
			continue
		}
		file, ds := kubernetes.ClusterConfig(f.assignment, values)
		for _, d := range ds {
			f.ds = append(f.ds, d.At(valuesOf(c), "the cluster's values"))
		}
		f.files = append(f.files, backends.File{Path: delivery.Path("overlays", c.Name, file.Path), Data: file.Data})
		f.customizations = append(f.customizations, target{Name: c.Name, ClusterName: c.Name, YAML: &yamlOptions{[]string{c.Name}}})
	}
}
