package kubernetes

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/internal/apiserver"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// kind is a kind of object that applies folders or workloads to clusters.
type kind struct {
	resource schema.GroupVersionResource
	name     string // for messages
	judge    func(*unstructured.Unstructured, map[string]bool) (judgement, error)
}

var (
	kustomizations = kind{schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}, "Kustomization", judgeFlux}
	helmReleases   = kind{schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}, "HelmRelease", judgeFlux}
	applications   = kind{schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}, "Application", judgeArgoCD}
)

// kindsOf returns the kinds of the wanted assignments' reconcilers. Listing others would
// need permissions that the user need not have. A team's own backend may have any.
func kindsOf(w *rollout.Wanted) []kind {
	groups, others, known := map[string]bool{}, false, all.Backends()
	for i := range w.Assignments {
		b := known[w.Assignments[i].Backend]
		if b == nil || b.Traits().AnyGroup { // nil for one of a later version
			others = true
			break
		}
		for _, group := range b.Traits().Groups {
			groups[group] = true
		}
	}
	var out []kind
	for _, k := range []kind{kustomizations, helmReleases, applications} {
		if others || groups[k.resource.Group] {
			out = append(out, k)
		}
	}
	return out
}

// list returns the findings among all objects of a kind. A cluster without the kind has
// none. The error is as Reports documents it.
func (s *Source) list(ctx context.Context, c *apiserver.Server, k kind, known *expected) ([]finding, error) {
	q := apiserver.Query{Resource: k.resource, Namespace: s.options.Namespace}
	found, err := apiserver.List(ctx, c, q, func(o *unstructured.Unstructured) (finding, bool) { return known.find(k, o, c.Context) })
	if err == nil || apierrors.IsNotFound(err) {
		return found, nil
	}
	err = c.Problem(err, k.name+"s", q)
	if refused := (*apiserver.AuthError)(nil); errors.As(err, &refused) {
		return nil, &forge.AuthError{Host: refused.Host, Problem: refused.Problem, Hint: refused.Hint}
	}
	if silent := (*apiserver.UnavailableError)(nil); errors.As(err, &silent) {
		return nil, &forge.UnavailableError{Host: silent.Host, Err: silent.Err}
	}
	return nil, err
}
