// Package apiserver lists objects of Kubernetes API servers. It reaches the servers of a
// kubeconfig, with the permissions of its users, or the server of its own cluster, with the pod's
// service account. It does not change anything on them.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kalypso-io/kalypso/internal/httpclient"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Server is the API server of a context. Its methods may be called by several goroutines.
type Server struct {
	Context string // its name in the kubeconfig; InCluster for the pod's
	Host    string // HOST or HOST:PORT
	client  dynamic.Interface
	root    rest.Interface // for requests that are not lists
}

// Open returns the servers of contexts of a kubeconfig, in their order. Without contexts it
// returns the server of the current context. It makes no request. A request runs the exec plugins
// of the file, because it is the user's own; they cannot prompt. Open returns an error if the
// file is invalid, or if a context is missing. The error then lists the contexts.
func Open(kubeconfig string, contexts []string) ([]*Server, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	if len(contexts) == 0 {
		contexts = []string{config.CurrentContext}
	}
	var out []*Server
	for _, name := range contexts {
		if _, there := config.Contexts[name]; !there {
			return nil, fmt.Errorf("the kubeconfig %s has no context %q: it has %s", kubeconfig, name,
				listOf(config.Contexts))
		}
		c, err := clientcmd.NewNonInteractiveClientConfig(*config, name, nil, nil).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("context %s of the kubeconfig %s: %w", name, kubeconfig, err)
		}
		s, err := serverOf(name, c)
		if err != nil {
			return nil, fmt.Errorf("context %s of the kubeconfig %s: %w", name, kubeconfig, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// InCluster is the Context of the server that OpenInCluster returns.
const InCluster = "in-cluster"

// OpenInCluster returns the server of the cluster on which this runs as a pod, with the token of
// its service account, which is read again when Kubernetes replaces it. It makes no request. The
// error is for anything that is not such a pod.
func OpenInCluster() (*Server, error) {
	c, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("looking for the service account of this pod: %w", err)
	}
	return serverOf(InCluster, c)
}

func serverOf(name string, c *rest.Config) (*Server, error) {
	c.UserAgent = "kalypso"
	// pages are read one after the other; the server limits the rate
	c.QPS = -1
	c.WarningHandler = rest.NoWarnings{} // this package must not print
	c.Wrap(bounded)
	if c.ExecProvider != nil {
		c.ExecProvider.StdinUnavailable = true
		c.ExecProvider.StdinUnavailableMessage = "nobody is asked while objects are listed: log in first"
	}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	s := &Server{Context: name, Host: hostOf(c.Host)}
	if s.client, err = dynamic.NewForConfigAndClient(c, client); err != nil {
		return nil, err
	}
	c = dynamic.ConfigFor(c)
	c.GroupVersion = &schema.GroupVersion{}
	s.root, err = rest.RESTClientForConfigAndClient(c, client)
	return s, err
}

// Lacks reports whether a server does not have a version of an API group. Users who may not list
// its resources may call it, too.
func (s *Server) Lacks(ctx context.Context, of schema.GroupVersion) bool {
	return apierrors.IsNotFound(s.root.Get().AbsPath("/apis", of.Group, of.Version).Do(ctx).Error())
}

// hostOf returns a server as HOST or HOST:PORT.
func hostOf(server string) string {
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		return u.Host
	}
	return server
}

// Contexts returns the names of the contexts of a kubeconfig, sorted.
func Contexts(kubeconfig string) ([]string, error) {
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return slices.Sorted(maps.Keys(config.Contexts)), nil
}

func listOf[V any](contexts map[string]V) string {
	const most = 10
	if len(contexts) == 0 {
		return "none"
	}
	var names []string
	for name := range contexts {
		names = append(names, fmt.Sprintf("%q", name))
	}
	slices.Sort(names)
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

const (
	pageSize = 500
	// A list that changes faster than it is read has an end here.
	maxRestarts = 3
	maxObjects  = 200_000
	maxPage     = 256 << 20 // bytes; objects have at most 1.5 MiB, and are small mostly
)

// Query selects the objects of a list.
type Query struct {
	Resource  schema.GroupVersionResource
	Namespace string // "" for all
	Selector  string // of labels; "" for all
}

// List returns pick's results for the objects that a query lists, in the server's order. The
// error is the client's own, also if the server does not have the resource, or the cause of
// the context's end; see Problem.
func List[T any](ctx context.Context, s *Server, q Query,
	pick func(*unstructured.Unstructured) (T, bool)) ([]T, error) {
	var found []T
	next, objects := "", 0
	for restarts := 0; ; {
		page, err := s.page(ctx, q, next)
		switch {
		case apierrors.IsResourceExpired(err) && next != "" && restarts < maxRestarts:
			// The snapshot of the list has expired.
			found, next, objects = nil, "", 0
			restarts++
			continue
		case err != nil:
			return nil, err
		}
		for i := range page.Items {
			if picked, ok := pick(&page.Items[i]); ok {
				found = append(found, picked)
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
func (s *Server) page(ctx context.Context, q Query, next string) (*unstructured.UnstructuredList,
	error) {
	type answer struct {
		list *unstructured.UnstructuredList
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		list, err := s.client.Resource(q.Resource).Namespace(q.Namespace).
			List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next, LabelSelector: q.Selector})
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

// ErrSilent is the cause to end a context with that has waited long enough for a server.
var ErrSilent = errors.New("no answer in time")

// AuthError is a request that a server refuses.
type AuthError struct{ Host, Problem, Hint string }

func (e *AuthError) Error() string { return e.Host + ": " + e.Problem }

// UnavailableError is a server that does not answer, or cannot now.
type UnavailableError struct {
	Host string
	Err  error
}

func (e *UnavailableError) Error() string { return e.Host + " does not answer: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Problem returns an error of List with the kind of the listed objects, such as Kustomizations.
// It returns an *AuthError if the server wants other credentials or more permissions, and an
// *UnavailableError if the server does not answer.
func (s *Server) Problem(err error, what string, q Query) error {
	listing := fmt.Sprintf("listing the %s of context %s", what, s.Context)
	switch {
	case apierrors.IsUnauthorized(err):
		return &AuthError{s.Host, listing + ": " + terminal.Line(err.Error()),
			"log in again: the context's user is not known to the server"}
	case apierrors.IsForbidden(err):
		return &AuthError{s.Host, listing + ": " + terminal.Line(err.Error()),
			fmt.Sprintf("let the context's user list %s, in the namespace where they are at least",
				q.Resource.GroupResource())}
	}
	wrapped := fmt.Errorf("%s: %w", listing, err)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && !busy(err) {
		return wrapped
	}
	if network := net.Error(nil); errors.Is(err, ErrSilent) || errors.As(err, &network) || busy(err) {
		return &UnavailableError{s.Host, wrapped}
	}
	return wrapped
}

// busy reports whether an API server cannot answer now.
func busy(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsInternalError(err)
}

// bounded limits the size of an answer.
func bounded(base http.RoundTripper) http.RoundTripper {
	return httpclient.LimitTransport(base, func(*http.Response) int64 { return maxPage })
}
