package pull

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kalypso-io/kalypso/internal/apiserver"
)

// clusterTypeLabel is the label by which Fleet's bundles find the clusters of a cluster type.
const clusterTypeLabel = "kalypso.io/cluster-type"

// kind is a kind of object that represents a cluster.
type kind struct {
	group, name, resource string
	versions              []string // the first that a server has
	selector              string   // of labels that such objects have
	// Where the object has the URL or host of its cluster; nil for nowhere.
	address func(*unstructured.Unstructured) string
}

var kinds = map[string]kind{
	// https://cluster-api.sigs.k8s.io/developer/core/controllers/cluster
	ClusterAPI: {"cluster.x-k8s.io", "Cluster", "clusters", []string{"v1beta2", "v1beta1"}, "",
		func(o *unstructured.Unstructured) string {
			return text(o, "spec", "controlPlaneEndpoint", "host")
		}},
	// https://open-cluster-management.io/docs/concepts/cluster-inventory/managedcluster
	OCM: {"cluster.open-cluster-management.io", "ManagedCluster", "managedclusters", []string{"v1"},
		"", func(o *unstructured.Unstructured) string {
			configs, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "managedClusterClientConfigs")
			if all, ok := configs.([]any); ok && len(all) > 0 {
				if first, ok := all[0].(map[string]any); ok {
					server, _ := first["url"].(string)
					return hostOf(server)
				}
			}
			return ""
		}},
	// Its status.apiServerURL is the address of the manager, as agents know it
	// (https://fleet.rancher.io/ref-crds#clusterstatus).
	Fleet: {"fleet.cattle.io", "Cluster", "clusters", []string{"v1alpha1"}, "", nil},
	// https://argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/#clusters
	ArgoCD: {"", "Secret", "secrets", []string{"v1"}, "argocd.argoproj.io/secret-type=cluster",
		func(o *unstructured.Unstructured) string { return hostOf(secretText(o, "server")) }},
}

// text returns a field of an object that is a text; "" for any other.
func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

// secretText returns the value of a key of a secret.
func secretText(o *unstructured.Unstructured, key string) string {
	if s := text(o, "stringData", key); s != "" {
		return s
	}
	decoded, err := base64.StdEncoding.DecodeString(text(o, "data", key))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(decoded))
}

// cluster returns the cluster that an object represents, without its labels.
func (r *Reader) cluster(k kind, o *unstructured.Unstructured) Cluster {
	c := Cluster{Name: o.GetName(), Labels: o.GetLabels(), origin: k.name + " " + o.GetName()}
	if o.GetNamespace() != "" {
		c.origin = k.name + " " + o.GetNamespace() + "/" + o.GetName()
	}
	if r.From == ArgoCD { // Argo CD has a name for the cluster, or uses its URL
		c.Name = cmp.Or(secretText(o, "name"), c.Name)
	}
	if k.address != nil {
		c.Address = k.address(o)
	}
	c.ClusterType = c.Labels[clusterTypeLabel]
	c.Description = o.GetAnnotations()["kubernetes.io/description"]
	return c
}

// matches reports whether an object counts.
func (r *Reader) matches(o *unstructured.Unstructured) bool {
	return (r.Selector == nil || r.Selector.Matches(labels.Set(o.GetLabels()))) &&
		(r.Namespace == "" || r.Namespace == o.GetNamespace())
}

// object reads an object of a text.
func (r *Reader) object(object map[string]any) error {
	k, o := kinds[r.From], &unstructured.Unstructured{Object: object}
	if group := o.GroupVersionKind().Group; group != k.group || o.GetKind() != k.name ||
		!selects(k.selector, o) {
		if r.passed == nil {
			r.passed = map[string]int{}
		}
		if len(r.passed) < 100 {
			r.passed[cmp.Or(strings.Trim(o.GetKind()+"."+group, "."), "no kind")]++
		}
		return nil
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(o.Object, "metadata", field); err != nil {
			return fmt.Errorf("%s %q has %s that are no texts: quote them", k.name, o.GetName(), field)
		}
	}
	if !r.matches(o) {
		return nil
	}
	return r.add(r.cluster(k, o))
}

func selects(selector string, o *unstructured.Unstructured) bool {
	s, err := labels.Parse(selector)
	return err == nil && s.Matches(labels.Set(o.GetLabels()))
}

// Server reads the objects of an API server. The method Problem of the server documents the
// error.
func (r *Reader) Server(ctx context.Context, s *apiserver.Server) error {
	k, selector := kinds[r.From], kinds[r.From].selector
	if r.Selector != nil && !r.Selector.Empty() {
		selector = strings.Trim(selector+","+r.Selector.String(), ",")
	}
	var problem error
	for _, version := range k.versions {
		q := apiserver.Query{Resource: schema.GroupVersionResource{Group: k.group, Version: version,
			Resource: k.resource}, Namespace: r.Namespace, Selector: selector}
		found, err := apiserver.List(ctx, s, q,
			func(o *unstructured.Unstructured) (Cluster, bool) { return r.cluster(k, o), true })
		switch {
		case apierrors.IsNotFound(err):
			problem = fmt.Errorf(
				"context %s has no %s: it is not the one that %s runs in, or the resource %s is not installed",
				s.Context, q.Resource.GroupResource(), r.From, q.Resource.GroupResource())
			continue
		case err != nil:
			return s.Problem(err, q.Resource.GroupResource().String(), q)
		}
		for _, c := range found {
			if err := r.add(c); err != nil {
				return err
			}
		}
		return nil
	}
	return problem
}
