package fleet

import (
	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
)

// overlaysFolder holds a folder for each cluster with values of its own, and
// baseFolder what all clusters have, where there is one: to kustomize an overlay
// that refers to a folder around it is a cycle.
const (
	overlaysFolder = "overlays"
	baseFolder     = "base"
)

// workspace adds what the namespace service asks for, and the platform config.
// kustomization.yaml lists it: without one, Fleet would take all YAML of the folder
// to the clusters, reconciler.yaml included.
func (f *folder) workspace() {
	files, objects, ds := kubernetes.Workspace(f.assignment)
	f.objects, f.ds = append(f.objects, objects...), append(f.ds, ds...)
	files = append(files, delivery.Kustomization([]string{kubernetes.NamespaceFile, kubernetes.PlatformConfigFile}))
	f.overlays()
	if len(f.customizations) > 0 {
		for i := range files {
			files[i].Path = delivery.Path(baseFolder, files[i].Path)
		}
		files = append(files, delivery.Kustomization([]string{baseFolder}))
	}
	f.files = append(f.files, files...)
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
	f.files = append(f.files, fleetFile("", fleetYAML{
		Name:                 nameOf(f.assignment, partWorkspace),
		Labels:               labels(f.assignment, f.assignment.DeploymentTarget, p),
		Helm:                 &helm{TakeOwnership: true},
		TargetCustomizations: f.customizations,
	}))
}

// overlays adds the platform configs of clusters that have values of their own,
// and what chooses them.
func (f *folder) overlays() {
	for i := range f.assignment.Clusters {
		c := &f.assignment.Clusters[i]
		values, _, differs := f.onCluster(c)
		if !differs {
			continue
		}
		file, ds := kubernetes.ClusterConfig(f.assignment, values)
		for _, d := range ds {
			f.ds = append(f.ds, d.At(valuesOf(c), "the cluster's values"))
		}
		dir := delivery.Path(overlaysFolder, c.Name)
		f.files = append(f.files,
			backends.File{Path: delivery.Path(dir, file.Path), Data: file.Data},
			overlay(dir, file.Path))
		f.customizations = append(f.customizations, target{Name: c.Name, ClusterName: c.Name, Kustomize: &kustomize{dir}})
	}
}

// overlay returns the kustomization.yaml that makes the workspace a cluster's: a
// patch that holds all keys of the config replaces each of them.
func overlay(dir, patch string) backends.File {
	type reference struct {
		Path string `yaml:"path"`
	}
	return backends.File{Path: delivery.Path(dir, kubernetes.KustomizationFile), Data: yaml.Must(struct {
		APIVersion string      `yaml:"apiVersion"`
		Kind       string      `yaml:"kind"`
		Resources  []string    `yaml:"resources"`
		Patches    []reference `yaml:"patches"`
	}{"kustomize.config.k8s.io/v1beta1", "Kustomization", []string{"../../" + baseFolder}, []reference{{patch}}})}
}
