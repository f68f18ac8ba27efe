package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kalypso-io/kalypso/backends/all"
	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/internal/terminal"
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

const (
	pageSize = 500
	// A list that changes faster than it is read has an end here.
	maxRestarts = 3
	maxObjects  = 200_000
	maxPage     = 256 << 20 // bytes; objects have at most 1.5 MiB, and are small mostly
)

// list returns the findings among all objects of a kind. A cluster without the kind has
// none.
func (c *cluster) list(ctx context.Context, k kind, namespace string, known *expected) ([]finding, error) {
	var found []finding
	next, objects := "", 0
	for restarts := 0; ; {
		page, err := c.page(ctx, k, namespace, next)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case apierrors.IsResourceExpired(err) && next != "" && restarts < maxRestarts:
			// The snapshot of the list has expired.
			found, next, objects = nil, "", 0
			restarts++
			continue
		case err != nil:
			return nil, err
		}
		for i := range page.Items {
			if f, is := known.find(k, &page.Items[i], c.name); is {
				found = append(found, f)
			}
		}
		if objects += len(page.Items); objects > maxObjects {
			return nil, fmt.Errorf("there are more than %d of them", maxObjects)
		}
		if next = page.GetContinue(); next == "" {
			return found, nil
		}
	}
}

// page reads a page of a list. It returns when the context ends, even if a credential
// plugin does not.
func (c *cluster) page(ctx context.Context, k kind, namespace, next string) (*unstructured.UnstructuredList, error) {
	type answer struct {
		list *unstructured.UnstructuredList
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		list, err := c.client.Resource(k.resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		answers <- answer{list, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return a.list, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// problem returns the error for a failed list, as Reports documents it.
func (c *cluster) problem(err error, k kind) error {
	what := fmt.Sprintf("listing the %ss of context %s", k.name, c.name)
	switch {
	case apierrors.IsUnauthorized(err):
		return &forge.AuthError{Host: c.host, Problem: what + ": " + terminal.Line(err.Error()),
			Hint: "log in again: the context's user is not known to the server"}
	case apierrors.IsForbidden(err):
		return &forge.AuthError{Host: c.host, Problem: what + ": " + terminal.Line(err.Error()),
			Hint: fmt.Sprintf("let the context's user list %s, in the reconciler's namespace at least", k.resource.GroupResource())}
	}
	wrapped := fmt.Errorf("%s: %w", what, err)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && !busy(err) {
		return wrapped
	}
	if network := net.Error(nil); errors.Is(err, errSilent) || errors.As(err, &network) || busy(err) {
		return &forge.UnavailableError{Host: c.host, Err: wrapped}
	}
	return wrapped
}

// busy reports whether an API server cannot answer now.
func busy(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err)
}

// bounded bounds how much of an answer is read.
func bounded(base http.RoundTripper) http.RoundTripper {
	return httpclient.Bounded(base, func(*http.Response) int64 { return maxPage })
}
