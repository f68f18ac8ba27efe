package observe

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/apiserver"
	"github.com/kalypso-io/kalypso/promotion/rollout/reconcilers"
)

const (
	timeout = 30 * time.Second // of the requests to a cluster
	atOnce  = 8                // clusters that are read at a time
)

// Clusters reads the objects of reconcilers from API servers. It is for one goroutine.
type Clusters struct {
	servers []*apiserver.Server
	name    func(context string) string
	now     func() time.Time
	seen    map[string]bool   // clusters that there were reports of
	listed  []map[string]bool // kinds that could be listed once, of each server
	failed  []map[string]failure
}

var _ Source = (*Clusters)(nil)

// NewClusters returns the source of some API servers. name returns the cluster of a context.
func NewClusters(servers []*apiserver.Server, name func(context string) string, now func() time.Time) *Clusters {
	c := &Clusters{servers: servers, name: name, now: now, seen: map[string]bool{}}
	for range servers {
		c.listed, c.failed = append(c.listed, map[string]bool{}), append(c.failed, nil)
	}
	return c
}

// Reports returns a snapshot of each context's cluster, and of each other one that objects on
// them are for, now or when they were read before. Where a server cannot be read, the others'
// are no snapshots: it may have more about the same clusters.
func (c *Clusters) Reports(ctx context.Context) ([]api.Report, error) {
	at := c.now()
	found, problems := make([][]finding, len(c.servers)), make([]error, len(c.servers))
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, s := range c.servers {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			m := &memory{was: c.failed[i], is: map[string]failure{}}
			if found[i], problems[i] = c.read(ctx, s, c.listed[i], m); problems[i] == nil {
				c.failed[i] = m.is
			}
		})
	}
	wait.Wait()
	var all []finding
	for i, s := range c.servers {
		if problems[i] == nil {
			c.seen[c.name(s.Context)] = true
			all = append(all, found[i]...)
		}
	}
	err := errors.Join(problems...)
	items, uids := itemsOf(all), uidsOf(all)
	for name := range items {
		c.seen[name] = true
	}
	var out []api.Report
	for name := range c.seen {
		r := snapshot(name, "kalypso observe", at, items[name])
		r.UID = uids[name]
		if err != nil {
			if len(r.Items) == 0 {
				continue
			}
			r.Snapshot, r.Digest, r.UID = false, "", ""
		}
		out = append(out, r)
	}
	return sorted(out), err
}

// families are the kinds of each reconciler. Who may list the first of one may list all.
var families = [][]reconcilers.Kind{
	{reconcilers.Kustomizations, reconcilers.HelmReleases}, {reconcilers.Applications}, {reconcilers.BundleDeployments},
}

// read returns the findings on one cluster, of the reconcilers whose objects may be listed: the
// error is for none, where there are some, and for what could be listed before.
func (c *Clusters) read(ctx context.Context, s *apiserver.Server, listed map[string]bool, m *memory) ([]finding, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, apiserver.ErrSilent)
	defer cancel()
	var found []finding
	var refused error
	for _, family := range families {
		for i, k := range family {
			sources, err := k.Sources(ctx, s, "")
			if err != nil {
				return nil, err
			}
			q := apiserver.Query{Resource: k.Resource}
			list, err := apiserver.List(ctx, s, q, func(o *unstructured.Unstructured) (finding, bool) { return find(k, o, c.name(s.Context), m, sources) })
			switch {
			case err == nil:
				listed[k.Name] = true
			case apierrors.IsNotFound(err), apierrors.IsForbidden(err) && s.Lacks(ctx, k.Resource.GroupVersion()):
			case apierrors.IsForbidden(err) && i == 0 && !listed[k.Name]:
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
	if len(listed) > 0 {
		return found, nil
	}
	return nil, refused
}
