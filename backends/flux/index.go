package flux

import (
	"fmt"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// Index returns README.md and kustomization.yaml, and with gitops
// assignments.yaml: one Kustomization per folder, which depends on those of the
// folders that must be ready first. Where clusters have values of their own there
// is a folder for each of them.
func (flux) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File, []diag.Diagnostic) {
	o, ds := optionsOf(ct.Reconciler)
	if diag.Errors(ds) {
		return nil, ds
	}
	variables, ds := variablesOf(ct.Clusters, "")
	if ds = append(ds, missing(ct, folders, variables)...); diag.Errors(ds) {
		return nil, ds
	}
	files := []backends.File{kubernetes.README(ct, folders)}
	if len(variables) > 0 && ct.GitOps != nil && !ct.Entries {
		files = append(files, clusterFolders(ct, o, variables)...)
	}
	if ct.GitOps == nil || len(folders) == 0 {
		return delivery.Sorted(append(files, delivery.Kustomization(namesOf(folders)))), nil
	}
	var assignments []any
	var owners []delivery.Owner
	for _, f := range folders {
		object := assignment(ct, o, f)
		assignments = append(assignments, object)
		owners = append(owners, delivery.Owner{
			Name: object.Metadata.Name, Of: "the assignment of " + f.DeploymentTarget,
			Assignment: delivery.FolderID(ct, f.DeploymentTarget),
		})
	}
	ds = append(delivery.Collisions(ct, owners), unready(ct, folders)...)
	if diag.Errors(ds) {
		return nil, ds
	}
	files = append(files,
		backends.File{Path: delivery.AssignmentsFile, Data: yaml.Must(assignments...)},
		delivery.Kustomization([]string{delivery.AssignmentsFile}))
	return delivery.Sorted(files), ds
}

func namesOf(folders []backends.Folder) []string {
	names := make([]string, len(folders))
	for i, f := range folders {
		names[i] = f.DeploymentTarget
	}
	return names
}

// assignment returns the Kustomization that applies a folder. It waits for what
// is in it, which is ready when the workload is. It acts as Flux itself, not in
// the name of the reconciler's service account: that one is for workloads, and
// need not be able to create namespaces.
func assignment(ct *backends.ClusterType, o options, f backends.Folder) kubernetes.Object {
	workload := sharedOf(f)
	spec := kustomization{
		Interval: o.Interval, RetryInterval: o.RetryInterval, Timeout: o.Timeout,
		SourceRef: treeRef(ct),
		Path:      dotSlash(delivery.FolderPath(ct, f.DeploymentTarget)), Prune: o.Prune,
		Wait:       !(workload.Rendered && workload.NoWait),
		Decryption: workload.Decryption.object(),
	}
	if len(workload.Variables) > 0 {
		spec.PostBuild = &postBuild{SubstituteFrom: []kindReference{{Kind: "ConfigMap",
			Name: clusterConfig(ct.Environment, ct.Name)}}}
	}
	for _, target := range f.DependsOn {
		spec.DependsOn = append(spec.DependsOn, reference{backends.AssignmentName(ct.Environment, ct.Name, target)})
	}
	return kubernetes.Object{APIVersion: kustomizeAPI, Kind: "Kustomization",
		Metadata: delivery.AssignmentMeta(ct, f, o.Namespace), Spec: spec}
}

// unready warns of dependencies that Flux takes for ready once they are applied.
func unready(ct *backends.ClusterType, folders []backends.Folder) []diag.Diagnostic {
	hasty := map[string]bool{}
	for _, f := range folders {
		hasty[f.DeploymentTarget] = sharedOf(f).NoWait
	}
	var ds []diag.Diagnostic
	for _, f := range folders {
		for _, target := range f.DependsOn {
			if !hasty[target] {
				continue
			}
			d := diag.New(diag.NotWaitedFor,
				fmt.Sprintf("%s waits until %s is applied, not until it is ready: the reconciler "+
					"has wait: false", f.DeploymentTarget, target)).
				On("flux.wait").At(ct.Reconciler.Ref.At("flux.wait"), "").
				Hinting("let the reconciler wait").For(delivery.FolderID(ct, f.DeploymentTarget))
			ds = append(ds, d)
		}
	}
	return ds
}
