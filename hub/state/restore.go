package state

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/kalypso-io/kalypso/compiler/origin"
)

// Restore sets what was observed of an assignment before the hub began, or by another hub, and
// since when its state is what it was then. What is wanted must be known; other rows are
// passed over.
func (f *Fleet) Restore(environment, name, target string, s Stored) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.environments[environment]
	if e == nil {
		return
	}
	c := e.byClust[name]
	if c == nil {
		if fo := e.byName[s.Folder]; fo != nil && !fo.Listed {
			c = f.place(instant(s.Changed), e, name, "", fo, false)
			fo.recount()
		}
	}
	if c == nil {
		return
	}
	i := c.folder.index(target)
	if i < 0 {
		return
	}
	was := c.pairs[i].state
	c.pairs[i] = pair{
		digest: unique.Make(s.Digest), commit: unique.Make(s.Commit), message: unique.Make(s.Message), by: unique.Make(s.By),
		applied: unique.Make(s.Applied), from: unique.Make(s.Origin), fromAt: s.At, ran: unique.Make(s.Ran),
		at: s.At, since: s.Since, changed: s.Changed, reported: s.Reported, state: was,
	}
	c.set(i, s.State, instant(s.Changed))
	e.restoreUnread(c, i, f.began)
	if s.State == Stale {
		c.stale = true
	}
}

// Stored is what is kept of an assignment on a cluster. Times are in milliseconds.
type Stored struct {
	Folder                      string
	Digest, Commit, Message, By string
	Applied                     string // the commit that was applied last, where that is not Commit
	Origin                      origin.Origin
	Ran                         string // the digest of what runs
	At, Since, Changed          int64
	Reported                    Reported
	State                       State
}

// RestoreWanted sets what is wanted of an environment, as it was before, or as another hub has
// it. What changes by it is restored, too.
func (f *Fleet) RestoreWanted(now time.Time, w *Wanted) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.want(now, w, nil)
}

// RestoreCluster takes the last news of a cluster from before, or from another hub. One without any
// was forgotten.
func (f *Fleet) RestoreCluster(was Contact) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was.Last.IsZero() && was.Snapshot.IsZero() {
		f.forget(was.Cluster, nil)
		return
	}
	h := f.hear(was.Cluster)
	switch was.Last.Compare(h.last) {
	case 1:
		h.last, h.by, h.restored = was.Last, was.By, true
	case 0:
		h.by = max(h.by, was.By)
	}
	switch was.Snapshot.Compare(h.snapshot) {
	case 1:
		h.snapshot, h.digest, h.partial, h.uid, h.before = was.Snapshot, was.Digest, was.Partial, was.UID, was.Before
	default: // of two that differ, one lacks what the other has: its items are needed
		if h.partial = h.partial || was.Partial; h.digest != was.Digest {
			h.digest = ""
		}
	}
	if was.Conflict.After(h.conflict) {
		h.conflict = was.Conflict
	}
}

// Restored ends a restoration of everything: it counts. A cluster of which anything was stale
// is so until there is news of it.
func (f *Fleet) Restored() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.environments {
		for _, fo := range e.folders {
			fo.recount()
		}
	}
}

// Judge computes all states anew, and returns what changes: where those that were restored are
// by another version's rules.
func (f *Fleet) Judge(now time.Time) *Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := &Changes{}
	for _, e := range f.environments {
		for _, c := range e.clusters {
			c.stale = f.isStale(e, c, now)
			e.rejudge(c, now, changes)
		}
	}
	return changes
}

// Checkpoint is what a Fleet had at one moment: what was wanted, and what was known of some clusters. A
// Fleet can be set back to it as long as nothing but those clusters, what is wanted and the time
// has changed the Fleet since.
type Checkpoint struct {
	environments map[string]*environment
	names        []string
	clusters     map[string]clusterCheckpoint
}

// clusterCheckpoint is what was known of a cluster: its news, nil for none, and what it was in each environment
// that had it.
type clusterCheckpoint struct {
	contact *contact
	news    contact
	in      map[*environment]savedCluster
}

// savedCluster is a cluster, and what it was.
type savedCluster struct {
	cluster *cluster
	was     cluster
}

// Checkpoint notes what is wanted, and what is known of some clusters, which may be there more than once.
func (f *Fleet) Checkpoint(clusters []string) *Checkpoint {
	f.mu.RLock()
	defer f.mu.RUnlock()
	m := &Checkpoint{environments: maps.Clone(f.environments), names: f.names, clusters: map[string]clusterCheckpoint{}}
	for _, name := range clusters {
		if _, there := m.clusters[name]; there {
			continue
		}
		known := clusterCheckpoint{contact: f.seen[name], in: map[*environment]savedCluster{}}
		if known.contact != nil {
			known.news = *known.contact
		}
		for _, e := range f.environments {
			if c := e.byClust[name]; c != nil {
				was := *c
				was.pairs = slices.Clone(c.pairs)
				known.in[e] = savedCluster{c, was}
			}
		}
		m.clusters[name] = known
	}
	return m
}

// Reset sets a Fleet back to a mark, which is used once. What stays changes no state: when a commit that
// is not known was first reported, and that the items of a snapshot are needed again.
func (f *Fleet) Reset(m *Checkpoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.environments, f.names = m.environments, m.names
	changed := map[*folder]bool{}
	for name, known := range m.clusters {
		for _, e := range f.environments {
			was, is := known.in[e], e.byClust[name]
			if is != was.cluster && is != nil {
				changed[is.folder] = true
				e.remove(is)
			}
			if was.cluster == nil {
				continue
			}
			if is != was.cluster {
				e.insert(was.cluster)
			}
			*was.cluster = was.was
			changed[was.cluster.folder] = true
		}
		if delete(f.seen, name); known.contact != nil {
			*known.contact, f.seen[name] = known.news, known.contact
		}
	}
	for fo := range changed {
		fo.recount()
	}
}

// insert adds a cluster; its folder is to be counted anew.
func (e *environment) insert(c *cluster) {
	e.byClust[c.name] = c
	byName := func(c *cluster, name string) int { return strings.Compare(c.name, name) }
	at, _ := slices.BinarySearchFunc(e.clusters, c.name, byName)
	e.clusters = slices.Insert(e.clusters, at, c) // at the end, mostly
	c.folder.clusters = append(c.folder.clusters, c)
}

// remove removes a cluster; its folder is to be counted anew.
func (e *environment) remove(c *cluster) {
	same := func(other *cluster) bool { return other == c }
	delete(e.byClust, c.name)
	e.clusters = slices.DeleteFunc(e.clusters, same)
	c.folder.clusters = slices.DeleteFunc(c.folder.clusters, same)
	for _, u := range e.unread {
		delete(u.clusters, c)
	}
}
