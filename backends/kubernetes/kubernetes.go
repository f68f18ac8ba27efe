// Package kubernetes makes a namespace service and a platform config Kubernetes
// objects, for all backends whose reconcilers speak Kubernetes.
//
// Workspace goes in with an assignment and comes out with the two files that
// hold its workspace, and with the identities of their objects. The other
// functions are what such backends share besides. All of them are pure.
package kubernetes

import (
	"strings"

	"github.com/kalypso-io/kalypso/backends"
)

// What every object carries: who made it, and for which assignment.
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

// Identity returns what identifies the object on a cluster.
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
