package fleet

import (
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/yaml"
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
	// partLabel says which part a bundle is.
	partLabel = "kalypso.io/bundle"
)

// bundleName returns the name of a bundle, which is its Helm release's as well.
// Every name ends in a part, so that no two parts of two deployment targets have
// one name.
func bundleName(environment, clusterType, deploymentTarget string, p part) string {
	return model.ShortName(environment+"-"+clusterType+"-"+deploymentTarget+"-"+string(p), model.MaxHelmRelease)
}

func nameOf(a *backends.Assignment, p part) string {
	return bundleName(a.Environment, a.ClusterType, a.DeploymentTarget, p)
}

// labels returns the labels of a bundle. Bundles have no annotations, so these say
// which assignment it is of.
func labels(a *backends.Assignment, deploymentTarget string, p part) map[string]string {
	return map[string]string{
		managedByLabel:                 "kalypso",
		environmentLabel:               a.Environment,
		clusterTypeLabel:               a.ClusterType,
		"kalypso.io/deployment-target": model.ShortName(deploymentTarget, model.MaxLabel),
		partLabel:                      string(p),
	}
}

// workloadDependencies returns what the workload's bundle waits for: other bundles
// of its own, and the workloads that it depends on. Those are looked for by labels,
// because a GitRepo's bundles have names of Fleet's own making; and as workloads,
// because a workspace alone may be there, and ready, long before.
func workloadDependencies(a *backends.Assignment, own ...part) []dependency {
	var out []dependency
	for _, p := range own {
		out = append(out, dependency{Name: nameOf(a, p)})
	}
	for _, target := range a.DependsOn {
		wanted := labels(a, target, partWorkload)
		delete(wanted, managedByLabel) // the others say enough
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
