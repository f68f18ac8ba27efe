package reconcilers

import (
	"cmp"
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kalypso-io/kalypso/compiler/origin"
	"github.com/kalypso-io/kalypso/internal/apiserver"
)

// sourceKind is a kind of source, such as a GitRepository of Flux.
type sourceKind struct {
	resource schema.GroupVersionResource
	name     string
}

// sourceKinds returns the kinds of source that objects of kind k refer to. Applications have no
// sources, because they name their repository themselves.
func (k Kind) sourceKinds() []sourceKind {
	of := func(group, version, resource, name string) sourceKind {
		return sourceKind{schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
			name}
	}
	switch k.Name {
	case Kustomizations.Name:
		const group = "source.toolkit.fluxcd.io"
		return []sourceKind{of(group, "v1", "gitrepositories", "GitRepository"),
			of(group, "v1", "ocirepositories", "OCIRepository")}
	case BundleDeployments.Name:
		return []sourceKind{of(BundleDeployments.Resource.Group, "v1alpha1", "gitrepos", "GitRepo")}
	}
	return nil
}

// Sources are the sources of one API server, by kind, namespace and name. A nil map is empty.
type Sources map[string]*source

// source is the repository, branch and path that a source object pulls.
type source struct {
	origin.Origin
	suspended bool
}

// Sources lists the sources for objects of kind k in a namespace, "" for all. It leaves out kinds
// that the server does not have and kinds that the user may not list.
func (k Kind) Sources(ctx context.Context, server *apiserver.Server, namespace string) (Sources,
	error) {
	out := Sources{}
	for _, of := range k.sourceKinds() {
		q := apiserver.Query{Resource: of.resource, Namespace: namespace}
		_, err := apiserver.List(ctx, server, q, func(o *unstructured.Unstructured) (struct{}, bool) {
			out.add(of.name, o)
			return struct{}{}, false
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return nil, server.Problem(err, k.Name+"s", q)
		}
	}
	return out, nil
}

// add adds a source object.
func (s Sources) add(kind string, o *unstructured.Unstructured) {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(o.Object, append([]string{"spec"}, fields...)...)
		return value
	}
	is := &source{}
	switch kind {
	case "GitRepo":
		paths, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "paths")
		// a tree; other GitRepos belong to workloads
		if len(paths) == 1 && strings.HasSuffix(paths[0], "/"+origin.Any) {
			branch := cmp.Or(text("revision"), text("branch"), "master")
			is.Origin = origin.Origin{Repository: text("repo"), Branch: branch, Path: paths[0]}
		}
		is.suspended, _, _ = unstructured.NestedBool(o.Object, "spec", "paused")
	case "OCIRepository":
		is.Repository = text("url")
		is.suspended, _, _ = unstructured.NestedBool(o.Object, "spec", "suspend")
	// the order of precedence: https://fluxcd.io/flux/components/source/gitrepositories/#reference
	default:
		is.Repository, is.Branch = text("url"), cmp.Or(
			text("ref", "commit"), text("ref", "name"), text("ref", "semver"), text("ref", "tag"),
			text("ref", "branch"), "master")
		is.suspended, _, _ = unstructured.NestedBool(o.Object, "spec", "suspend")
	}
	s[key(kind, o.GetNamespace(), o.GetName())] = is
}

func key(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// origin returns the origin of an object, as far as the object and its source name it, and a reason
// if the source is suspended.
func (k Kind) origin(o *unstructured.Unstructured, of Sources) (from origin.Origin,
	suspended string) {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(o.Object, fields...)
		return value
	}
	switch k.Name {
	case Kustomizations.Name:
		kind, name := text("spec", "sourceRef", "kind"), text("spec", "sourceRef", "name")
		namespace := cmp.Or(text("spec", "sourceRef", "namespace"), o.GetNamespace())
		revision, _, _ := strings.Cut(cmp.Or(text("status", "lastAttemptedRevision"),
			text("status", "lastAppliedRevision")), "@sha1:")
		if is := of[key(kind, namespace, name)]; is != nil {
			from = is.Origin
			if is.suspended {
				suspended = "has a source that is suspended, " + kind + " " + namespace + "/" + name
			}
		} else if kind == "GitRepository" && !strings.HasPrefix(revision, "sha1:") {
			from.Branch = revision
		}
		from.Path = text("spec", "path")
	case Applications.Name:
		from = origin.Origin{Repository: text("spec", "source", "repoURL"),
			Branch: text("spec", "source", "targetRevision"), Path: text("spec", "source", "path")}
	case BundleDeployments.Name:
		labels := o.GetLabels()
		if is := of[key("GitRepo", labels["fleet.cattle.io/bundle-namespace"],
			labels["fleet.cattle.io/repo-name"])]; is != nil {
			from = is.Origin
			if is.suspended {
				suspended = "has a GitRepo that is paused"
			}
		}
	}
	return from.Clean(), suspended
}
