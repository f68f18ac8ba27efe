package state

import (
	"time"
	"unique"
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
		if fo := e.byName[s.ClusterType]; fo != nil && !fo.Listed {
			c = f.place(e, name, "", fo, false)
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
		digest: unique.Make(s.Digest), commit: unique.Make(s.Commit), path: unique.Make(s.Path), message: unique.Make(s.Message), by: unique.Make(s.By), ran: unique.Make(s.Ran),
		at: s.At, since: s.Since, changed: s.Changed, reported: s.Reported, state: was,
	}
	c.set(i, s.State, instant(s.Changed))
}

// Stored is what is kept of an assignment on a cluster. Times are in milliseconds.
type Stored struct {
	ClusterType                       string
	Digest, Commit, Path, Message, By string
	Ran                               string // the digest of what runs
	At, Since, Changed                int64
	Reported                          Reported
	State                             State
}

// RestoreCluster sets when there was last any news of a cluster, and its last snapshot.
func (f *Fleet) RestoreCluster(was Heard) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hear(was.Cluster)
	if !was.Last.Before(h.last) {
		*h = heard{was.Last, was.Snapshot, was.Digest, was.By}
	}
}

// Restored computes the states of everything that was restored, and returns what has changed
// meanwhile.
func (f *Fleet) Restored(now time.Time) *Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := &Changes{}
	for _, e := range f.environments {
		for _, c := range e.clusters {
			c.stale = f.isStale(e, c, now)
			for i := range c.pairs {
				p := &c.pairs[i]
				was := p.state
				if p.state = e.judge(c, i); was != p.state || p.changed == 0 {
					p.changed = now.UnixMilli()
					changes.add(Change{env: e, cluster: c, target: i, Was: was, Moved: was != p.state, New: p.at == 0 && was == Missing})
				}
			}
		}
		for _, fo := range e.folders {
			fo.recount()
		}
	}
	return changes
}
