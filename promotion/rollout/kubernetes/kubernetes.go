// Package kubernetes reads reports of rollouts from clusters: from the status of the
// objects of Flux (https://fluxcd.io/flux/components) and Argo CD
// (https://argo-cd.readthedocs.io/en/stable/operator-manual/application.yaml) that apply
// the wanted assignments.
//
// It uses the API servers of a kubeconfig with the permissions of its users, and only ever
// lists.
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kalypso-io/kalypso/promotion/rollout"
)

// Options configure a Source.
type Options struct {
	// Kubeconfig is the path of the file. Its exec plugins are run, because it is the
	// user's own. They cannot prompt.
	Kubeconfig string
	// Contexts are contexts of the file, each a cluster of that name; none for the current
	// one.
	Contexts []string
	// Namespace is that of the reconcilers' objects; "" for all, which needs the permission
	// to list them in all namespaces.
	Namespace string
	// Timeout is how long the requests to a cluster may take; 0 for 30 seconds.
	Timeout time.Duration
}

const (
	defaultTimeout = 30 * time.Second
	// atOnce is how many clusters are read at a time.
	atOnce = 8
)

// Source reads reports from clusters. Its methods may be called by several goroutines.
type Source struct {
	options  Options
	clusters []cluster
}

var _ rollout.Source = (*Source)(nil)

// cluster is a context of the kubeconfig.
type cluster struct {
	name, host string
	client     dynamic.Interface
}

// New reads the kubeconfig, and makes no request. The error is for an invalid file, or
// lists its contexts where one is missing.
func New(o Options) (*Source, error) {
	config, err := clientcmd.LoadFromFile(o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", o.Kubeconfig, err)
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	s := &Source{options: o}
	contexts := o.Contexts
	if len(contexts) == 0 {
		contexts = []string{config.CurrentContext}
	}
	for _, name := range contexts {
		if _, there := config.Contexts[name]; !there {
			return nil, fmt.Errorf("the kubeconfig %s has no context %q: it has %s", o.Kubeconfig, name, listOf(config.Contexts))
		}
		c, err := clientcmd.NewNonInteractiveClientConfig(*config, name, nil, nil).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("context %s of the kubeconfig %s: %w", name, o.Kubeconfig, err)
		}
		client, err := clientOf(c)
		if err != nil {
			return nil, fmt.Errorf("context %s of the kubeconfig %s: %w", name, o.Kubeconfig, err)
		}
		s.clusters = append(s.clusters, cluster{name: name, host: hostOf(c.Host), client: client})
	}
	return s, nil
}

func clientOf(c *rest.Config) (dynamic.Interface, error) {
	c.UserAgent = "kalypso"
	c.QPS = -1                           // pages are read one after the other; the server limits the rate
	c.WarningHandler = rest.NoWarnings{} // this package must not print
	c.Wrap(bounded)
	if c.ExecProvider != nil {
		c.ExecProvider.StdinUnavailable = true
		c.ExecProvider.StdinUnavailableMessage = "nobody is asked while a rollout is looked at: log in first"
	}
	return dynamic.NewForConfig(c)
}

// hostOf returns a server as HOST or HOST:PORT.
func hostOf(server string) string {
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		return u.Host
	}
	return server
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

// Name returns "kubeconfig PATH".
func (s *Source) Name() string { return "kubeconfig " + s.options.Kubeconfig }

// Reports returns a report for each assignment and cluster that has an object of it. The
// error is of the clusters that could not be read: a *forge.AuthError where one wants other
// credentials or more permissions, a *forge.UnavailableError where it does not answer in
// time. The reports are then those of the others.
func (s *Source) Reports(ctx context.Context, w *rollout.Wanted) ([]rollout.Report, error) {
	kinds := kindsOf(w)
	if len(kinds) == 0 {
		return nil, nil
	}
	known := newExpected(w)
	reports, problems := make([][]rollout.Report, len(s.clusters)), make([]error, len(s.clusters))
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, c := range s.clusters {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			reports[i], problems[i] = s.ask(ctx, c, known, kinds)
		})
	}
	wait.Wait()
	return slices.Concat(reports...), errors.Join(problems...)
}

// ask returns the reports of one cluster.
func (s *Source) ask(ctx context.Context, c cluster, known *expected, kinds []kind) ([]rollout.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.options.Timeout, errSilent)
	defer cancel()
	var found []finding
	for _, k := range kinds {
		list, err := c.list(ctx, k, s.options.Namespace, known)
		if err != nil {
			return nil, c.problem(err, k)
		}
		found = append(found, list...)
	}
	return known.reports(found, "context "+c.name, time.Now()), nil
}

// errSilent is the cause of a timeout.
var errSilent = errors.New("no answer in time")
