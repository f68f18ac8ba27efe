// Package kubernetes makes a namespace service and a platform config Kubernetes
// objects, for all backends whose reconcilers speak Kubernetes.
//
// Workspace takes an assignment and returns the two files of its workspace, together with the
// identities of their objects. The other functions are helpers that the backends for Kubernetes
// share. All of them are pure.
//
// Take an example from examples/hello-world: hello-world-performance-test on the cluster type large
// in dev. Among its values are GREETING ("Hello, world") and LOG_LEVEL ("debug"). Its namespace
// service has the label example.com/cost-center with the value hello. Workspace returns
// namespace.yaml with a ServiceAccount and the Namespace dev-large-hello-world-performance-test,
// which has this label. It also returns platform-config.yaml with a ConfigMap:
//
//	data:
//	  GREETING: Hello, world
//	  LOG_LEVEL: debug
package kubernetes

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
)

// Every object has a label with its manager and an annotation with its assignment.
const (
	managedByLabel       = "app.kubernetes.io/managed-by"
	managedBy            = "kalypso"
	assignmentAnnotation = "kalypso.io/assignment"
)

// Metadata is an object's metadata, with its fields in the order of the files.
type Metadata struct {
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
	Finalizers  []string          `yaml:"finalizers,omitempty"`
}

// Meta returns the metadata of an object of the assignment, with kalypso's label
// and annotation. namespace is "" for cluster-scoped objects. The maps are the
// caller's, who may add to them.
func Meta(a *backends.Assignment, name, namespace string) Metadata {
	return Metadata{
		Name:        name,
		Namespace:   namespace,
		Labels:      map[string]string{managedByLabel: managedBy},
		Annotations: map[string]string{assignmentAnnotation: a.Origin()},
	}
}

// Object is an object of a kind that has a spec at most. Other kinds are structs
// that begin with an Object, inline.
type Object struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   Metadata `yaml:"metadata"`
	Spec       any      `yaml:"spec,omitempty"`
}

// Identity returns the identity of the object on a cluster: its group, kind, namespace and name.
func (o Object) Identity() backends.Object {
	return backends.Object{
		Group:     group(o.APIVersion),
		Kind:      o.Kind,
		Namespace: o.Metadata.Namespace,
		Name:      o.Metadata.Name,
	}
}

// group returns the group of an apiVersion, "" for the core group.
func group(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

// KustomizationFile is the file that kustomize, Flux and Argo CD read first in a folder.
const KustomizationFile = "kustomization.yaml"

// Kustomization returns kustomization.yaml with the resources, in their order. Without
// resources it has an empty list, because kustomize refuses a file without a list.
func Kustomization(resources []string) backends.File {
	if resources == nil {
		resources = []string{}
	}
	return backends.File{Path: KustomizationFile, Data: yaml.Must(struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Resources  []string `yaml:"resources"`
	}{"kustomize.config.k8s.io/v1beta1", "Kustomization", resources})}
}

// ReadmeFile is the page that a person sees first in a cluster type's folder.
const ReadmeFile = "README.md"

// README returns README.md for a cluster type's root. It lists the deployment targets that
// are assigned to the cluster type, with their versions and namespaces, in the folders'
// order. It changes only with the assignments, and not with their configuration.
func README(ct *backends.ClusterType, folders []backends.Folder) backends.File {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n\n", ct.Name)
	if description := strings.TrimSpace(ct.Description); description != "" {
		fmt.Fprintf(&out, "%s\n\n", description)
	}
	fmt.Fprintf(&out, "What kalypso assigns to the cluster type `%s` in the environment `%s`.\n",
		ct.Name, ct.Environment)
	fmt.Fprint(&out, "This folder is generated: change the platform, not the files.\n\n")
	if len(folders) == 0 {
		fmt.Fprint(&out, "There are no assignments.\n")
		return backends.File{Path: ReadmeFile, Data: out.Bytes()}
	}
	fmt.Fprint(&out, "| deployment target | workload | version | workspace | namespace |\n")
	fmt.Fprint(&out, "|---|---|---|---|---|\n")
	for _, f := range folders {
		fmt.Fprintf(&out, "| [%s](%[1]s) | %s | %s | %s | %s |\n", f.DeploymentTarget, f.Workload,
			f.Version, f.Workspace, f.Namespace)
	}
	return backends.File{Path: ReadmeFile, Data: out.Bytes()}
}
