package kubernetes

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/internal/apiserver"
	"github.com/kalypso-io/kalypso/promotion/forge"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

// kindsOf returns the kinds of the wanted assignments' reconcilers. Listing others would
// need permissions that the user need not have. A team's own backend may have any.
func kindsOf(w *rollout.DesiredState) []reconcilers.Kind {
	known := all.Backends()
	var groups []string
	for i := range w.Assignments {
		b := known[w.Assignments[i].Backend]
		if b == nil || b.Traits().AnyGroup { // nil for one of a later version
			return reconcilers.InGroups(allGroups())
		}
		groups = append(groups, b.Traits().Groups...)
	}
	return reconcilers.InGroups(groups)
}

// allGroups returns the API groups of all backends.
func allGroups() (out []string) {
	for _, b := range all.List() {
		out = append(out, b.Traits().Groups...)
	}
	return out
}

// list returns the findings among all objects of a kind. A cluster without the kind has no
// findings. Reports documents the errors.
func (s *Source) list(ctx context.Context, c *apiserver.Server, k reconcilers.Kind,
	known *expectation) ([]finding, error) {
	var found []finding
	of, err := k.Sources(ctx, c, s.options.Namespace)
	if err == nil {
		q := apiserver.Query{Resource: k.Resource, Namespace: s.options.Namespace}
		found, err = apiserver.List(ctx, c, q,
			func(o *unstructured.Unstructured) (finding, bool) { return known.find(k, o, c.Context, of) })
		if err == nil || apierrors.IsNotFound(err) {
			return found, nil
		}
		err = c.Problem(err, k.Name+"s", q)
	}
	if refused := (*apiserver.AuthError)(nil); errors.As(err, &refused) {
		return nil, &forge.AuthError{Host: refused.Host, Problem: refused.Problem, Hint: refused.Hint}
	}
	if silent := (*apiserver.UnavailableError)(nil); errors.As(err, &silent) {
		return nil, &forge.UnavailableError{Host: silent.Host, Err: silent.Err}
	}
	return nil, err
}
