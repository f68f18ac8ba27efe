package kubernetes

import (
	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
)

// KustomizationFile is what kustomize, Flux and Argo CD read first in a folder.
const KustomizationFile = "kustomization.yaml"

// Kustomization returns kustomization.yaml with the resources, in their order.
// Without any it has an empty list: kustomize refuses a file that has none.
func Kustomization(resources []string) (backends.File, error) {
	if resources == nil {
		resources = []string{}
	}
	data, err := yaml.Marshal(struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Resources  []string `yaml:"resources"`
	}{"kustomize.config.k8s.io/v1beta1", "Kustomization", resources})
	return backends.File{Path: KustomizationFile, Data: data}, err
}
