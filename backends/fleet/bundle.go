package fleet

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The files that Fleet looks for.
const (
	bundleFile  = "fleet.yaml"
	fleetIgnore = ".fleetignore"
)

// part is one of an assignment's bundles.
type part string

const (
	partWorkspace part = "workspace"
	partCRDs      part = "crds"
	partWorkload  part = "workload"
)

const (
	managedByLabel = "app.kubernetes.io/managed-by"
	// partLabel is the label with the part of a bundle.
	partLabel = "kalypso.io/bundle"
)

// bundleName returns the name of a bundle, which is also the name of its Helm release. Every
// name ends in a part, so that two parts of two deployment targets never have the same name.
func bundleName(environment, clusterType, deploymentTarget string, p part) string {
	return model.ShortName(environment+"-"+clusterType+"-"+deploymentTarget+"-"+string(p),
		model.MaxHelmRelease)
}

func nameOf(a *backends.Assignment, p part) string {
	return bundleName(a.Environment, a.ClusterType, a.DeploymentTarget, p)
}

// labels returns the labels of a bundle. Bundles have no annotations, so their labels name
// the assignment.
func labels(a *backends.Assignment, deploymentTarget string, p part) map[string]string {
	return map[string]string{
		managedByLabel:                 "kalypso",
		environmentLabel:               a.Environment,
		clusterTypeLabel:               a.ClusterType,
		"kalypso.io/deployment-target": model.ShortName(deploymentTarget, model.MaxLabel),
		partLabel:                      string(p),
	}
}

// workloadDependencies returns the dependencies of the workload's bundle: other bundles of its own,
// and the workloads that it depends on. It selects those workloads by labels, because Fleet itself
// names the bundles of a GitRepo. It selects the workload and not the workspace, because a
// workspace may exist, and be ready, long before its workload.
func workloadDependencies(a *backends.Assignment, own ...part) []dependency {
	var out []dependency
	for _, p := range own {
		out = append(out, dependency{Name: nameOf(a, p)})
	}
	for _, target := range a.DependsOn {
		wanted := labels(a, target, partWorkload)
		delete(wanted, managedByLabel) // the other labels are sufficient
		out = append(out, dependency{Selector: &selector{wanted}})
	}
	return out
}

// fleetFile returns the fleet.yaml that makes a folder a bundle, "" for the
// assignment's own.
func fleetFile(dir string, spec fleetYAML) backends.File {
	return backends.File{Path: delivery.Path(dir, bundleFile), Data: yaml.Must(spec)}
}

// ignoreFile returns the .fleetignore that names files and folders, wherever they
// are below it.
func ignoreFile(files, folders []string) backends.File {
	var text strings.Builder
	for _, name := range files {
		text.WriteString(name + "\n")
	}
	for _, name := range folders {
		text.WriteString(name + "/*\n")
	}
	return backends.File{Path: fleetIgnore, Data: []byte(text.String())}
}

// overlaysFolder contains a folder for each cluster with values of its own. If there is one,
// baseFolder contains the files for all clusters. The files cannot be beside overlaysFolder: an
// overlay that refers to a folder around it is a cycle for kustomize.
const (
	overlaysFolder = "overlays"
	baseFolder     = "base"
)

// workspace adds the objects of the namespace service and the platform config. kustomization.yaml
// lists them. Without it, Fleet would take all YAML of the folder to the clusters, including
// reconciler.yaml.
func (f *folder) workspace() {
	files, objects, ds := kubernetes.Workspace(f.assignment)
	f.objects, f.ds = append(f.objects, objects...), append(f.ds, ds...)
	files = append(files,
		kubernetes.Kustomization([]string{kubernetes.NamespaceFile, kubernetes.PlatformConfigFile}))
	f.overlays()
	if len(f.customizations) > 0 {
		for i := range files {
			files[i].Path = delivery.Path(baseFolder, files[i].Path)
		}
		files = append(files, kubernetes.Kustomization([]string{baseFolder}))
	}
	f.files = append(f.files, files...)
}

// bundle adds fleet.yaml of the workspace's bundle.
//
// Its release is in Fleet's default namespace, which is named default. A release in the namespace
// that it creates would go with that namespace, before Helm has removed the release's other
// objects. All objects name their namespace. The release takes over existing objects, as Fleet does
// in every upgrade. The namespace may exist, because the workload's own GitRepo creates it if it
// comes first.
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

// overlays adds the platform configs of clusters that have values of their own, and the
// customizations that select them.
func (f *folder) overlays() {
	for i := range f.assignment.Clusters {
		c := &f.assignment.Clusters[i]
		values, _, differs := f.onCluster(c)
		if !differs {
			continue
		}
		file, ds := kubernetes.ClusterConfig(f.assignment, values)
		for _, d := range ds {
			f.ds = append(f.ds, d.At(delivery.ClusterValues(c), "the cluster's values"))
		}
		dir := delivery.Path(overlaysFolder, c.Name)
		f.files = append(f.files,
			backends.File{Path: delivery.Path(dir, file.Path), Data: file.Data},
			overlay(dir, file.Path))
		f.customizations = append(f.customizations,
			target{Name: c.Name, ClusterName: c.Name, Kustomize: &kustomize{dir}})
	}
}

// overlay returns the kustomization.yaml that turns the workspace into a cluster's
// workspace. Its patch contains all keys of the config and replaces each of them.
func overlay(dir, patch string) backends.File {
	type reference struct {
		Path string `yaml:"path"`
	}
	return backends.File{Path: delivery.Path(dir, kubernetes.KustomizationFile),
		Data: yaml.Must(struct {
			APIVersion string      `yaml:"apiVersion"`
			Kind       string      `yaml:"kind"`
			Resources  []string    `yaml:"resources"`
			Patches    []reference `yaml:"patches"`
		}{"kustomize.config.k8s.io/v1beta1", "Kustomization", []string{"../../" + baseFolder},
			[]reference{{patch}}})}
}

// rendered adds the bundles of the rendered objects. Hooks stay hooks: to Fleet, all objects are a
// release of Helm, which reads their annotations. rendered leaves out tests that differ with each
// render, because Fleet would not run them.
func (f *folder) rendered() {
	all, tests := kubernetes.Split(delivery.Rendered(f.assignment), func(o model.Projected) bool {
		return kubernetes.IsStable(o) || !kubernetes.IsTest(o)
	})
	files, objects, ds := kubernetes.Manifests(f.assignment, all)
	argo, _ := kubernetes.Split(all, kubernetes.IsArgoHook)
	ds = append(ds, delivery.Twice(f.assignment, f.objects, objects, nil)...)
	ds = append(ds, delivery.Hooks(f.assignment, argo, tests)...)
	f.ds = append(append(f.ds, ds...), delivery.SameOnAll(f.assignment)...)
	f.bare = len(files) == 0
	if diag.Errors(ds) || f.bare {
		return
	}
	f.objects = append(f.objects, objects...)
	crds, others := kubernetes.SplitCRDs(files[0].Data, objects)
	own := []part{partWorkspace}
	deletes := f.assignment.Manifests.CRDs() == model.DeleteCRDs
	only := len(others) == 0
	switch {
	case only:
		others = crds
	case len(crds) > 0:
		f.manifests(partCRDs, fleetYAML{
			ServiceAccount: f.options.ServiceAccount,
			// Another assignment's bundle may have left the definitions, or owned them for
			// both.
			Helm:               &helm{TakeOwnership: true},
			DeleteCRDResources: deletes,
		}, crds)
		own = append(own, partCRDs)
	}
	f.manifests(partWorkload, fleetYAML{
		ServiceAccount: f.options.ServiceAccount,
		DependsOn:      workloadDependencies(f.assignment, own...),

		DeleteCRDResources: only && deletes,
	}, others)
}

// manifests adds the bundle of a part, in a folder of the part's name. Its release
// is in the namespace default, like the release of the workspace.
func (f *folder) manifests(p part, spec fleetYAML, data []byte) {
	a := f.assignment
	spec.Name, spec.Labels = nameOf(a, p), labels(a, a.DeploymentTarget, p)
	f.files = append(f.files,
		fleetFile(string(p), spec),
		backends.File{Path: delivery.Path(string(p), kubernetes.ManifestsFile), Data: data})
	f.ignored = append(f.ignored, string(p))
	if n := stored(data); n > maxRelease {
		f.ds = append(f.ds, diag.New(diag.TooLarge,
			fmt.Sprintf("what is rendered has %d bytes when it is compressed, and Helm keeps a release of "+
				"at most %d in a Secret", n, maxRelease)).
			At(a.Ref.At("manifests"), "").
			Hinting("split the workload, or leave out what it does not need"))
	}
}

// maxRelease is the number of bytes that fit into a Secret (MaxSecretSize in
// k8s.io/api/core/v1). A release contains more than the manifests, so larger manifests can
// never fit.
const maxRelease = 1 << 20

// stored returns how many bytes a release keeps of data at the very least: gzip,
// in base64 (helm.sh/helm/v4/pkg/storage/driver). Data that needs no compression
// to fit is not looked at.
func stored(data []byte) int {
	if len(data) <= maxRelease {
		return len(data)
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("fleet: " + err.Error()) // a buffer accepts every write
	}
	return base64.StdEncoding.EncodedLen(out.Len())
}
