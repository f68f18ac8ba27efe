package state

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/kalypso-io/kalypso/compiler/origin"
)

// Restore sets the observed state of an assignment from before the hub began, or from another hub,
// and since when it has its state. The wanted state must be known. Restore ignores other rows.
func (f *Fleet) Restore(environment, name, target string, s StoredState) {
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
		digest: unique.Make(s.Digest), commit: unique.Make(s.Commit), message: unique.Make(s.Message),
		by:      unique.Make(s.By),
		applied: unique.Make(s.Applied), from: unique.Make(s.Origin), fromAt: s.At,
		ran: unique.Make(s.Ran),
		at:  s.At, since: s.Since, changed: s.Changed, reported: s.Reported, state: was,
	}
	c.set(i, s.State, instant(s.Changed))
	e.restoreUnread(c, i, f.began)
	if s.State == Stale {
		c.stale = true
	}
}

// StoredState is the stored state of an assignment on a cluster. Times are in milliseconds.
type StoredState struct {
	Folder                      string
	Digest, Commit, Message, By string
	Applied                     string // the commit that was applied last, if that is not Commit
	Origin                      origin.Origin
	Ran                         string // the running digest
	At, Since, Changed          int64
	Reported                    ReportedState
	State                       State
}

// RestoreDesiredState sets the wanted state of an environment, from the store or from another hub.
// It does not return the resulting changes, because they are restored, too.
func (f *Fleet) RestoreDesiredState(now time.Time, w *DesiredState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.want(now, w, nil)
}

// RestoreCluster sets the last contact of a cluster from before, or from another hub. A cluster
// without a contact was forgotten.
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
		h.snapshot, h.digest, h.partial, h.uid, h.before = was.Snapshot, was.Digest, was.Partial, was.UID,
			was.Before
	default: // of two that differ, one lacks content of the other: its items are needed
		if h.partial = h.partial || was.Partial; h.digest != was.Digest {
			h.digest = ""
		}
	}
	if was.Conflict.After(h.conflict) {
		h.conflict = was.Conflict
	}
}

// Restored ends a restoration: it counts the states. A cluster with a stale assignment stays stale
// until its next contact.
func (f *Fleet) Restored() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.environments {
		for _, fo := range e.folders {
			fo.recount()
		}
	}
}

// Judge computes all states again, and returns the changes. States change if another version's
// rules computed the restored ones.
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

// Checkpoint is the state of a Fleet at one moment: the wanted state, and the known state of some
// clusters. Reset can return to it if only those clusters, the wanted state and the time have
// changed the Fleet since.
type Checkpoint struct {
	environments map[string]*environment
	names        []string
	clusters     map[string]clusterCheckpoint
}

// clusterCheckpoint is the known state of a cluster: its contact, or nil if it has never reported,
// and its state in each environment that has it.
type clusterCheckpoint struct {
	contact *contact
	news    contact
	in      map[*environment]savedCluster
}

// savedCluster is a cluster, and a copy of its state.
type savedCluster struct {
	cluster *cluster
	was     cluster
}

// Checkpoint saves the wanted state, and the known state of some clusters. clusters may have
// duplicates.
func (f *Fleet) Checkpoint(clusters []string) *Checkpoint {
	f.mu.RLock()
	defer f.mu.RUnlock()
	m := &Checkpoint{environments: maps.Clone(f.environments), names: f.names,
		clusters: map[string]clusterCheckpoint{}}
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

// Reset returns a Fleet to a checkpoint, which can be used once. Two changes remain, because they
// affect no state: when an unknown commit was first reported, and that the items of a snapshot are
// needed again.
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

// insert adds a cluster. The caller must count its folder again.
func (e *environment) insert(c *cluster) {
	e.byClust[c.name] = c
	byName := func(c *cluster, name string) int { return strings.Compare(c.name, name) }
	at, _ := slices.BinarySearchFunc(e.clusters, c.name, byName)
	e.clusters = slices.Insert(e.clusters, at, c) // at the end, mostly
	c.folder.clusters = append(c.folder.clusters, c)
}

// remove removes a cluster. The caller must count its folder again.
func (e *environment) remove(c *cluster) {
	same := func(other *cluster) bool { return other == c }
	delete(e.byClust, c.name)
	e.clusters = slices.DeleteFunc(e.clusters, same)
	c.folder.clusters = slices.DeleteFunc(c.folder.clusters, same)
	for _, u := range e.unread {
		delete(u.clusters, c)
	}
}
