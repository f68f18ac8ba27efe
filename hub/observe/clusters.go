// Package observe reads the state of clusters as reports for a hub, and sends them. It reads the
// objects of Flux, Argo CD and Fleet on clusters, and files. It does not know the wanted state.
package observe

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/apiserver"
	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

const (
	defaultTimeout = 30 * time.Second
	atOnce         = 8 // clusters that are read at a time
)

// Clusters reads the objects of reconcilers from API servers. It is for one goroutine.
type Clusters struct {
	// Timeout is how long one API server may take; 0 means 30 seconds.
	Timeout time.Duration

	servers []*server
	now     func() time.Time
	seen    map[string]bool // clusters that were in earlier reports
	bound   func(ctx context.Context, context string) (context.Context, context.CancelFunc)
}

var _ Source = (*Clusters)(nil)

// server is an API server, with its state from earlier reads.
type server struct {
	*apiserver.Server
	name   string             // of its own cluster
	listed map[string]bool    // kinds that could be listed once
	failed map[string]failure // objects
	// the clusters of all its objects so far, and its own; nil before it was read
	clusters map[string]bool
	own      bool // it has had objects for its own cluster
	silent   bool // it did not answer in time, the last time
}

// NewClusters returns the source of some API servers. name returns the cluster of a context.
func NewClusters(servers []*apiserver.Server, name func(context string) string,
	now func() time.Time) *Clusters {
	c := &Clusters{now: now, seen: map[string]bool{}}
	for _, s := range servers {
		c.servers = append(c.servers,
			&server{Server: s, name: name(s.Context), listed: map[string]bool{}})
	}
	c.bound = func(ctx context.Context, _ string) (context.Context, context.CancelFunc) {
		timeout := cmp.Or(c.Timeout, defaultTimeout)
		return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w (%s)", apiserver.ErrSilent, timeout))
	}
	return c
}

// Reports returns a snapshot of each context's cluster, and of each other cluster that the objects
// on them are for, now or at an earlier read. If a server cannot be read, the reports of clusters
// that it may know more about are not snapshots.
func (c *Clusters) Reports(ctx context.Context) ([]api.Report, error) {
	at := c.now()
	found, problems := make([][]finding, len(c.servers)), make([]error, len(c.servers))
	var wait sync.WaitGroup
	// Servers that did not answer the last time use their own slots, so that the others do not wait
	// for them.
	slots, slow := make(chan struct{}, atOnce), make(chan struct{}, atOnce)
	for i, s := range c.servers {
		wait.Go(func() {
			if s.silent {
				found[i], problems[i] = c.wait(ctx, s, slow)
				return
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := c.bound(ctx, s.Context)
			defer cancel()
			found[i], problems[i] = s.read(ctx)
		})
	}
	wait.Wait()
	var all []finding
	for i, s := range c.servers {
		if s.silent = errors.Is(problems[i], apiserver.ErrSilent); problems[i] != nil {
			continue
		}
		if s.clusters == nil {
			s.clusters = map[string]bool{s.name: true}
		}
		c.seen[s.name] = true
		for _, f := range found[i] {
			s.clusters[f.cluster] = true
			s.own = s.own || f.cluster == s.name
		}
		all = append(all, found[i]...)
	}
	items, uids := itemsOf(all), uidsOf(all)
	for name := range items {
		c.seen[name] = true
	}
	var out []api.Report
	for name := range c.seen {
		r := snapshot(name, "kalypso observe", at, items[name])
		r.UID = uids[name]
		if c.isPart(name, problems) {
			if len(r.Items) == 0 {
				continue
			}
			r.Snapshot, r.Digest, r.UID = false, "", ""
		}
		out = append(out, r)
	}
	return sorted(out), errors.Join(problems...)
}

// wait reads a server that did not answer the last time, once one of some slots is free. Its time
// runs meanwhile. All such servers together therefore take no longer than one of them.
func (c *Clusters) wait(ctx context.Context, s *server, slots chan struct{}) ([]finding, error) {
	ctx, cancel := c.bound(ctx, s.Context)
	defer cancel()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
		return s.read(ctx)
	case <-ctx.Done():
		return nil, s.Problem(context.Cause(ctx), families[0][0].Name+"s", apiserver.Query{})
	}
}

// isPart reports whether a server that could not be read may have more about a cluster. That is so
// if it had some before. Nothing is known about a server that was never read. It may belong to an
// Argo CD, and serve any cluster except those that serve themselves.
func (c *Clusters) isPart(cluster string, problems []error) bool {
	itself := slices.ContainsFunc(c.servers,
		func(s *server) bool { return s.own && s.name == cluster })
	for i, s := range c.servers {
		if problems[i] != nil &&
			(s.clusters[cluster] || s.clusters == nil && (!itself || s.name == cluster)) {
			return true
		}
	}
	return false
}

// families are the kinds of each reconciler. Permission to list the first of a family implies
// permission to list all.
var families = [][]reconcilers.Kind{
	{reconcilers.Kustomizations, reconcilers.HelmReleases}, {reconcilers.Applications},
	{reconcilers.BundleDeployments},
}

// read returns the findings on one cluster, of the reconcilers whose objects may be listed. It
// returns an error if it may list no reconciler's objects, or not those that it could list before.
func (s *server) read(ctx context.Context) ([]finding, error) {
	m := &memory{was: s.failed, is: map[string]failure{}}
	var found []finding
	var refused error
	for _, family := range families {
		for i, k := range family {
			sources, err := k.Sources(ctx, s.Server, "")
			if err != nil {
				return nil, err
			}
			q := apiserver.Query{Resource: k.Resource}
			list, err := apiserver.List(ctx, s.Server, q,
				func(o *unstructured.Unstructured) (finding, bool) {
					return find(k, o, s.name, m, sources)
				})
			switch {
			case err == nil:
				s.listed[k.Name] = true
			case apierrors.IsNotFound(err),
				apierrors.IsForbidden(err) && s.Lacks(ctx, k.Resource.GroupVersion()):
			case apierrors.IsForbidden(err) && i == 0 && !s.listed[k.Name]:
				refused = s.Problem(err, k.Name+"s", q)
			default:
				return nil, s.Problem(err, k.Name+"s", q)
			}
			if err != nil && i == 0 {
				break
			}
			found = append(found, list...)
		}
	}
	if len(s.listed) == 0 {
		return nil, refused
	}
	s.failed = m.is
	return found, nil
}

// Source is a source of reports. Reports returns an error about the parts that it could not read,
// together with the reports about the other parts.
type Source interface {
	Reports(ctx context.Context) ([]api.Report, error)
}

// DigestOf returns a digest of the items of a snapshot. It ignores their order, and the times since
// when their states hold. It is "" if there are no items: a snapshot without a digest and items
// reports an empty cluster.
func DigestOf(items []api.Item) string {
	if len(items) == 0 {
		return ""
	}
	sorted := slices.Clone(items)
	for i := range sorted {
		sorted[i].Since = time.Time{}
		if sorted[i].State == state.ReportedOK.String() {
			sorted[i].Message = ""
		}
	}
	slices.SortFunc(sorted, compare)
	data, err := json.Marshal(sorted)
	if err != nil {
		panic(err) // they contain only texts and times
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func compare(a, b api.Item) int {
	return cmp.Or(strings.Compare(a.Assignment, b.Assignment), strings.Compare(a.Object, b.Object),
		strings.Compare(a.Commit, b.Commit),
		strings.Compare(a.Path, b.Path), strings.Compare(a.Branch, b.Branch),
		strings.Compare(a.Repository, b.Repository), strings.Compare(a.Digest, b.Digest),
		strings.Compare(a.State, b.State), strings.Compare(a.Message, b.Message))
}

// snapshot returns the report of all items on a cluster.
func snapshot(cluster, by string, at time.Time, items []api.Item) api.Report {
	slices.SortFunc(items, compare)
	return api.Report{Cluster: cluster, By: by, At: at, Snapshot: true, Digest: DigestOf(items),
		Items: items}
}

// sorted sorts reports by cluster, then by time.
func sorted(reports []api.Report) []api.Report {
	slices.SortFunc(reports, func(a,
		b api.Report) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), a.At.Compare(b.At))
	})
	return reports
}
