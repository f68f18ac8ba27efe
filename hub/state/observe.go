package state

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unique"
)

// Observe takes a report, and returns what changes by it. What is older than what is known is
// passed over: the result does not depend on the order in which reports arrive, and one that
// arrives twice changes nothing.
func (f *Fleet) Observe(r *Report) (*Changes, Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := r.At
	if at.IsZero() || at.After(r.Received) {
		at = r.Received
	}
	changes := &Changes{}
	places := f.places(r)
	if len(places) == 0 {
		return changes, Outcome{Unlisted: true}
	}
	h := f.hear(r.Cluster)
	if r.Same && (h.digest == "" || h.digest != r.Digest) {
		return changes, Outcome{Resend: true}
	}
	if r.Received.After(h.last) {
		h.last, h.by = r.Received, r.By
	}
	old := at.Before(h.snapshot)
	if r.Snapshot && !old {
		h.snapshot, h.digest = at, r.Digest
	}
	found := make(map[*cluster]map[int]bool, 1)
	var unknown []string
	for i := range r.Items {
		it := &r.Items[i]
		p, ok := f.find(places, it)
		if !ok {
			unknown = append(unknown, cmp.Or(it.Assignment, it.Object))
			continue
		}
		if found[p.cluster] == nil {
			found[p.cluster] = map[int]bool{}
		}
		found[p.cluster][p.target] = true
		if !old {
			p.env.take(p.cluster, p.target, it, at, r, changes)
		}
	}
	if !r.Snapshot && len(changes.all) > 0 {
		h.digest = "" // the last snapshot is not what there is any more
	}
	for _, p := range places {
		p.cluster.stale = f.isStale(p.env, p.cluster, r.Received)
		if r.Snapshot && !r.Same && !old {
			for i := range p.cluster.pairs {
				if !found[p.cluster][i] {
					p.env.take(p.cluster, i, &Item{}, at, r, changes)
				}
			}
		}
		p.env.rejudge(p.cluster, r.Received, changes)
	}
	slices.Sort(unknown)
	return changes, Outcome{Unknown: slices.Compact(unknown)}
}

// located is a cluster in an environment.
type located struct {
	env     *environment
	cluster *cluster
	target  int
}

// places returns a cluster in each environment that has it. Where the platform does not list
// clusters, it is in the cluster types that its items name.
func (f *Fleet) places(r *Report) []located {
	var out []located
	for _, name := range f.names {
		e := f.environments[name]
		if e == nil {
			continue
		}
		c := e.byClust[r.Cluster]
		for i := 0; c == nil && i < len(r.Items); i++ {
			clusterType, _ := e.about(&r.Items[i], r.Cluster)
			if fo := e.byName[clusterType]; fo != nil && !fo.Listed && r.Cluster != "" {
				c = f.place(e, r.Cluster, "", fo, false)
				fo.recount()
			}
		}
		if c != nil {
			out = append(out, located{env: e, cluster: c})
		}
	}
	return out
}

// about returns the cluster type and the deployment target of an item; "" where the
// environment has no such thing, or it is about another cluster.
func (e *environment) about(it *Item, cluster string) (clusterType, target string) {
	if it.Assignment != "" {
		environment, rest, _ := strings.Cut(it.Assignment, "/")
		if environment != e.wanted.Environment {
			return "", ""
		}
		clusterType, target, _ = strings.Cut(rest, "/")
		return clusterType, target
	}
	o := e.objects[it.Object]
	if o.cluster != "" && o.cluster != cluster {
		return "", ""
	}
	return o.clusterType, o.target
}

func (f *Fleet) find(places []located, it *Item) (located, bool) {
	for _, p := range places {
		clusterType, target := p.env.about(it, p.cluster.name)
		if p.cluster.folder.ClusterType != clusterType {
			continue
		}
		if p.target = p.cluster.folder.index(target); p.target >= 0 {
			return p, true
		}
	}
	return located{}, false
}

// take takes what was observed of an assignment on a cluster. Of two reports of one time the
// worse counts, so that their order does not matter.
func (e *environment) take(c *cluster, target int, it *Item, at time.Time, r *Report, changes *Changes) {
	p := &c.pairs[target]
	ms := at.UnixMilli()
	is := pair{
		digest: unique.Make(it.Digest), commit: unique.Make(it.Commit), path: unique.Make(it.Path), message: unique.Make(it.Message),
		by: unique.Make(r.By), ran: none, at: ms, reported: it.State, state: p.state, changed: p.changed,
	}
	if is.reported == ReportedOK {
		is.message = none // it names the commit, mostly
	}
	if !it.Since.IsZero() {
		is.since = it.Since.UnixMilli()
	}
	if ms < p.at || ms == p.at && compare(&is, p) <= 0 {
		return
	}
	old := *p
	*p = is
	e.resolve(c, target)
	s := e.judge(c, target)
	c.set(target, s, r.Received)
	// Another commit with the same content is no news: each commit of a branch would write
	// all rows anew.
	ran := old.ran != p.ran || p.ran == none && old.commit != p.commit
	if ran || old.message != p.message || old.reported != p.reported || old.state != s || old.since != p.since && p.reported != ReportedOK {
		changes.copied(Change{env: e, cluster: c, target: target, Was: old.state, Moved: old.state != s, Ran: ran})
	}
}

// compare orders two observations of one time: the greater one counts.
func compare(a, b *pair) int {
	return cmp.Or(cmp.Compare(a.reported, b.reported), cmp.Compare(a.since, b.since), strings.Compare(a.digest.Value(), b.digest.Value()),
		strings.Compare(a.commit.Value(), b.commit.Value()), strings.Compare(a.path.Value(), b.path.Value()),
		strings.Compare(a.message.Value(), b.message.Value()), strings.Compare(a.by.Value(), b.by.Value()))
}
