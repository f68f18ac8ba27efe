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
	"slices"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/internal/apiserver"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

// Options configure a Source.
type Options struct {
	// Kubeconfig is the path of the file. Its exec plugins are run, because it is the
	// user's own. They cannot prompt.
	Kubeconfig string
	// Contexts are contexts of the file, each a cluster of that name. If the list is empty, the
	// current context counts.
	Contexts []string
	// Namespace is the namespace of the reconcilers' objects; "" for all, which needs the
	// permission to list them in all namespaces.
	Namespace string
	// Timeout is the time for the requests to a cluster; 0 for 30 seconds.
	Timeout time.Duration
}

const (
	defaultTimeout = 30 * time.Second
	// atOnce is the number of clusters that are read at a time.
	atOnce = 8
)

// Source reads reports from clusters. Its methods may be called by several goroutines.
type Source struct {
	options  Options
	clusters []*apiserver.Server
}

var _ rollout.Source = (*Source)(nil)

// New reads the kubeconfig, and makes no request. It returns an error if the file is invalid, or
// if a context is missing. The error then lists the contexts.
func New(o Options) (*Source, error) {
	clusters, err := apiserver.Open(o.Kubeconfig, o.Contexts)
	if err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return &Source{o, clusters}, nil
}

// Name returns "kubeconfig PATH".
func (s *Source) Name() string { return "kubeconfig " + s.options.Kubeconfig }

// Reports returns a report for each assignment and cluster that has an object of it. It returns
// an error if some clusters cannot be read, with the reports of the other clusters. The error is
// a *forge.AuthError if a cluster wants other credentials or more permissions, and a
// *forge.UnavailableError if a cluster does not answer in time.
func (s *Source) Reports(ctx context.Context, w *rollout.DesiredState) ([]rollout.Report, error) {
	kinds := kindsOf(w)
	if len(kinds) == 0 {
		return nil, nil
	}
	known := newExpectation(w)
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
func (s *Source) ask(ctx context.Context, c *apiserver.Server, known *expectation,
	kinds []reconcilers.Kind) ([]rollout.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.options.Timeout, apiserver.ErrSilent)
	defer cancel()
	var found []finding
	for _, k := range kinds {
		list, err := s.list(ctx, c, k, known)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	return known.reports(found, "context "+c.Context, time.Now()), nil
}
