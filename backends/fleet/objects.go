package fleet

import (
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The API of Fleet's objects (https://fleet.rancher.io/ref-crds).
const (
	group      = "fleet.cattle.io"
	apiVersion = group + "/v1alpha1"
)

func gitRepoObject(meta kubernetes.Metadata, spec gitRepo) kubernetes.Object {
	return kubernetes.Object{APIVersion: apiVersion, Kind: "GitRepo", Metadata: meta, Spec: spec}
}

// gitRepo is the spec of a GitRepo
// (https://fleet.rancher.io/ref-gitrepo).
type gitRepo struct {
	Repo     string `yaml:"repo"`
	Branch   string `yaml:"branch,omitempty"`
	Revision string `yaml:"revision,omitempty"` // a tag or a commit
	// searched for bundles; the root if empty
	Paths            []string      `yaml:"paths,omitempty"`
	Bundles          []bundlePath  `yaml:"bundles,omitempty"` // instead of paths: exactly these
	TargetNamespace  string        `yaml:"targetNamespace,omitempty"`
	ClientSecretName string        `yaml:"clientSecretName,omitempty"`
	PollingInterval  string        `yaml:"pollingInterval,omitempty"`
	ServiceAccount   string        `yaml:"serviceAccount,omitempty"`
	CorrectDrift     *correctDrift `yaml:"correctDrift,omitempty"`
	Targets          []target      `yaml:"targets,omitempty"`
}

type bundlePath struct {
	Base string `yaml:"base"`
}

type correctDrift struct {
	Enabled bool `yaml:"enabled"`
}

// helmOp is the spec of a HelmOp: the spec of a Bundle, with the fields that fetch the chart
// (https://fleet.rancher.io/ref-helmop).
type helmOp struct {
	Labels           map[string]string `yaml:"labels"` // the Bundle's
	HelmSecretName   string            `yaml:"helmSecretName,omitempty"`
	PollingInterval  string            `yaml:"pollingInterval,omitempty"`
	DefaultNamespace string            `yaml:"defaultNamespace"` // the release's
	Helm             helm              `yaml:"helm"`
	ServiceAccount   string            `yaml:"serviceAccount,omitempty"`
	CorrectDrift     *correctDrift     `yaml:"correctDrift,omitempty"`
	DependsOn        []dependency      `yaml:"dependsOn,omitempty"`
	// Targets select clusters and their options: the first target that matches a cluster applies.
	Targets []target `yaml:"targets"`
}

// fleetYAML is fleet.yaml (https://fleet.rancher.io/ref-fleet-yaml).
type fleetYAML struct {
	Name           string            `yaml:"name"`
	Labels         map[string]string `yaml:"labels"`
	ServiceAccount string            `yaml:"serviceAccount,omitempty"`
	Helm           *helm             `yaml:"helm,omitempty"`
	// DeleteCRDResources says that Fleet deletes CRDs with the bundle.
	DeleteCRDResources bool         `yaml:"deleteCRDResources,omitempty"`
	DependsOn          []dependency `yaml:"dependsOn,omitempty"`
	// TargetCustomizations change the bundle on clusters, and the GitRepo selects the
	// clusters. The first one that matches a cluster applies.
	TargetCustomizations []target `yaml:"targetCustomizations,omitempty"`
}

// helm are options of a bundle's Helm release. Every bundle is a release.
type helm struct {
	Repo          string       `yaml:"repo,omitempty"`
	Chart         string       `yaml:"chart,omitempty"`
	Version       string       `yaml:"version,omitempty"`
	ReleaseName   string       `yaml:"releaseName,omitempty"`
	TakeOwnership bool         `yaml:"takeOwnership,omitempty"`
	Values        *model.Value `yaml:"values,omitempty"`
	// TemplateValues are texts of YAML by key, and ${ } in them are templates.
	TemplateValues map[string]string `yaml:"templateValues,omitempty"`
	// DisablePreProcess keeps Fleet from reading ${ } in values as templates, and from
	// reading TemplateValues at all.
	DisablePreProcess bool `yaml:"disablePreProcess,omitempty"`
}

// target selects the clusters that match all of its selectors.
type target struct {
	Name            string     `yaml:"name"`
	ClusterName     string     `yaml:"clusterName,omitempty"`
	ClusterSelector *selector  `yaml:"clusterSelector,omitempty"`
	Helm            *helm      `yaml:"helm,omitempty"`
	Kustomize       *kustomize `yaml:"kustomize,omitempty"`
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type kustomize struct {
	Dir string `yaml:"dir"` // a folder of the bundle with a kustomization.yaml
}

// dependency is a bundle by its name, or bundles by their labels. At least one bundle must have the
// labels.
type dependency struct {
	Name     string    `yaml:"name,omitempty"`
	Selector *selector `yaml:"selector,omitempty"`
}
