package state

import (
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
func (f *Fleet) RestoreCluster(was Heard) {
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
