package state

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unique"

	"github.com/kalypso-io/kalypso/compiler/origin"
)

// judge returns the state of an assignment on a cluster.
func (e *environment) judge(c *cluster, target int, now time.Time) State {
	p := &c.pairs[target]
	if p.reported == Nothing {
		if c.stale && p.at != 0 {
			return Stale
		}
		return Missing
	}
	if e.elsewhere(c, target, p) != "" {
		switch _, read := e.byCommit[p.commit.Value()]; {
		case c.stale:
			return Stale
		// the tree may have moved
		case !read && p.commit != none && p.reported != ReportedDrifted && e.mayBeRead(c, target, p, now):
			return Progressing
		}
		return Drifted
	}
	if p.reported == ReportedFailed && p.commit == none && p.digest == none {
		return Failed // before it could apply anything
	}
	digest, known := e.running(c, target, p)
	wanted := known && digest == c.folder.Targets[target].Digest
	switch {
	case wanted && p.reported == ReportedFailed: // it holds until the next report
		return Failed
	case c.stale:
		return Stale
	case !known && p.reported != ReportedDrifted && e.mayBeRead(c, target, p, now):
		return Progressing
	case !known:
		return Drifted
	case !wanted && e.edited(c, target, p, digest):
		return Drifted
	case p.reported == ReportedSuspended:
		return Suspended
	case !wanted:
		return Behind
	case p.reported == ReportedDrifted:
		return Drifted
	case p.reported == ReportedProgressing:
		return Progressing
	}
	return OK
}

// elsewhere returns the difference between the source from which a cluster takes an assignment and
// the wanted source, with both values. It returns "" if no difference is known.
func (e *environment) elsewhere(c *cluster, target int, p *pair) string {
	if p.from == nowhere {
		return ""
	}
	from := p.from.Value()
	ours, known := e.ours.Load(from.Repository)
	if !known {
		ours = e.tree.Has(from.Repository)
		e.ours.Store(from.Repository, ours)
	}
	if ours == true {
		from.Repository = e.tree.Repository
	}
	return e.tree.Differs(from, c.folder.ClusterType, c.folder.Targets[target].Name)
}

// elsewhereMessage describes the wrong source of a drifted assignment. It returns "" for other
// assignments.
func (e *environment) elsewhereMessage(c *cluster, target int, p *pair) string {
	if p.state != Drifted {
		return ""
	}
	out := e.elsewhere(c, target, p)
	if out != "" && p.message != none {
		out += "; " + p.message.Value()
	}
	return out
}

// running returns the running digest of an assignment on a cluster. It returns false if the branch
// never had that content. It returns "" if the cluster does not have its wanted entry.
func (e *environment) running(c *cluster, target int, p *pair) (string, bool) {
	if e.elsewhere(c, target, p) != "" {
		return "", false
	}
	key := e.key(c, target, p)
	if p.digest != none {
		return p.digest.Value(), e.had(key, p.digest.Value())
	}
	place, known := e.byCommit[p.commit.Value()]
	if !known { // it is older than the known commits of the branch, or was never in it
		return p.ran.Value(), p.ran != none && e.had(key, p.ran.Value())
	}
	if c.entry != "" && e.wanted.DigestAt(place, EntryKey(c.name)) != c.entry {
		return "", true
	}
	return e.wanted.DigestAt(place, key), true
}

// resolve keeps the running digest of an assignment, if it is known, for the time when its commit
// is no longer known.
func (e *environment) resolve(c *cluster, target int) {
	p := &c.pairs[target]
	if digest, known := e.running(c, target, p); known {
		p.ran = unique.Make(digest)
	}
}

// had reports whether a folder had a digest in any known commit, or after an edit.
func (e *environment) had(key, digest string) bool {
	return e.wanted.Recorded(key, digest) || slices.Contains(e.byHand[key], digest)
}

// edited reports whether the running content of an assignment, with a digest, was never promoted.
// This is the case if somebody edited it, or the cluster's entry, in the branch.
func (e *environment) edited(c *cluster, target int, p *pair, digest string) bool {
	if len(e.byHand) == 0 {
		return false
	}
	if slices.Contains(e.byHand[e.key(c, target, p)], digest) {
		return true
	}
	place, known := e.byCommit[p.commit.Value()]
	entry := EntryKey(c.name)
	return known && p.digest == none && c.entry != "" &&
		slices.Contains(e.byHand[entry], e.wanted.DigestAt(place, entry))
}

// editedMessage explains that a drifted assignment was edited in the branch. It returns "" for
// others.
func (e *environment) editedMessage(c *cluster, target int, p *pair) string {
	if p.state != Drifted || len(e.byHand) == 0 {
		return ""
	}
	if digest, known := e.running(c, target, p); !known || !e.edited(c, target, p, digest) {
		return ""
	}
	out := "it runs what somebody edited in the GitOps branch by hand"
	if p.message != none {
		out += "; " + p.message.Value()
	}
	return out
}

// key returns the key of the folder that an observation is about.
func (e *environment) key(c *cluster, target int, p *pair) string {
	if p.from != nowhere {
		folder, of, ok := e.tree.FolderOf(p.from.Value())
		switch {
		case ok && of == origin.Any:
			return Key(folder, c.folder.Targets[target].Name)
		case ok:
			return Key(folder, of)
		}
	}
	return Key(c.folder.Name, c.folder.Targets[target].Name)
}

func (f *Fleet) isStale(e *environment, c *cluster, now time.Time) bool {
	last := c.contact.last
	if last.IsZero() {
		return false // it is missing
	}
	if c.contact.restored && last.Before(f.began) && !c.stale {
		last = f.began // the hub did not run then, and could not receive reports
	}
	return now.Sub(last) > cmp.Or(e.wanted.StaleAfter, f.staleAfter)
}

// Expire marks clusters that have not reported for too long, and those that have run an unknown
// commit for too long. It returns the changes.
func (f *Fleet) Expire(now time.Time) *Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := &Changes{}
	for _, e := range f.environments {
		for _, c := range e.clusters {
			if stale := f.isStale(e, c, now); stale != c.stale {
				c.stale = stale
				e.rejudge(c, now, changes)
			}
		}
		// Compute the states of clusters again that have waited for longer than the grace time.
		for _, u := range e.unread {
			if len(u.clusters) == 0 || !e.isOverdue(u, now) {
				continue
			}
			waited := u.clusters
			u.clusters = map[*cluster]struct{}{}
			for c := range waited {
				e.rejudge(c, now, changes)
			}
		}
	}
	return changes
}

// rejudge computes the states of a cluster again.
func (e *environment) rejudge(c *cluster, now time.Time, changes *Changes) {
	for i := range c.pairs {
		if was, is := c.pairs[i].state, e.judge(c, i, now); was != is {
			c.set(i, is, now)
			changes.copied(Change{env: e, cluster: c, target: i, Was: was, Moved: true})
		}
	}
}

// unreadCommit is a reported commit or digest that the hub does not know. A reconciler may be
// faster than a hub, so the hub may be about to read it.
type unreadCommit struct {
	// when it was first reported, by the hub's clock, in milliseconds: one cluster's clock must not
	// end the grace time of all clusters
	first int64
	// clusters are the waiting clusters: an assignment on them is progressing because of it.
	clusters map[*cluster]struct{}
}

// maxUnread is how many unread commits there may be before those that no cluster runs are dropped.
const maxUnread = 1000

// runningID returns an identifier of the running content of an assignment: the commit, or the
// digest with the assignment. It returns none if neither was reported.
func (e *environment) runningID(c *cluster, target int, p *pair) text {
	if p.digest == none {
		return p.commit
	}
	return unique.Make(Key(c.folder.ClusterType, c.folder.Targets[target].Name) + "@" +
		p.digest.Value())
}

// note keeps the time when unknown content was first reported. It returns nil if there is nothing
// to wait for.
func (e *environment) note(said text, at int64) *unreadCommit {
	if said == none || e.grace <= 0 {
		return nil
	}
	u := e.unread[said]
	if u == nil {
		if len(e.unread) >= e.maxUnread {
			// Drop the content that no cluster runs any more.
			runs := map[text]bool{}
			for _, c := range e.clusters {
				for i := range c.pairs {
					runs[e.runningID(c, i, &c.pairs[i])] = true
				}
			}
			maps.DeleteFunc(e.unread, func(said text, _ *unreadCommit) bool { return !runs[said] })
			e.maxUnread = max(maxUnread, 2*len(e.unread))
		}
		u = &unreadCommit{first: at, clusters: map[*cluster]struct{}{}}
		e.unread[said] = u
	}
	u.first = min(u.first, at)
	return u
}

// mayBeRead reports whether a hub may be about to read the unknown content that a cluster runs.
// That is so if it was not reported for longer than the grace time.
func (e *environment) mayBeRead(c *cluster, target int, p *pair, now time.Time) bool {
	u := e.note(e.runningID(c, target, p), now.UnixMilli())
	if u == nil || e.isOverdue(u, now) {
		return false
	}
	u.clusters[c] = struct{}{}
	return true
}

// restoreUnread restores that a cluster waits for unknown content, or that the content was found to
// be drift.
func (e *environment) restoreUnread(c *cluster, target int, began time.Time) {
	p := &c.pairs[target]
	if p.reported == ReportedDrifted || p.state != Progressing && p.state != Drifted {
		return
	}
	if _, known := e.running(c, target, p); known {
		return
	}
	first := max(p.at, p.changed, began.UnixMilli()) // the hub did not run then, and could not read it
	if p.state == Drifted {
		first = 0
	}
	if u := e.note(e.runningID(c, target, p), first); u != nil && p.state == Progressing {
		u.clusters[c] = struct{}{}
	}
}

// overdue reports whether a cluster has waited for longer than the grace time.
func (e *environment) overdue(c *cluster, now time.Time) bool {
	for _, u := range e.unread {
		if _, waits := u.clusters[c]; waits && e.isOverdue(u, now) {
			return true
		}
	}
	return false
}

func (e *environment) isOverdue(u *unreadCommit, now time.Time) bool {
	return now.UnixMilli()-u.first > e.grace.Milliseconds()
}

// unreadMessage explains that the hub has not read the content of a progressing assignment. For
// others it is "".
func (e *environment) unreadMessage(c *cluster, target int, p *pair) string {
	if p.state != Progressing || p.reported == ReportedDrifted {
		return ""
	}
	if _, known := e.running(c, target, p); known || e.runningID(c, target, p) == none {
		return ""
	}
	what, id := "commit", p.commit.Value()
	if p.digest != none {
		what, id = "digest", p.digest.Value()
	}
	out := "the hub has not read " + what + " " + id + " yet"
	if p.message != none {
		out += "; " + p.message.Value()
	}
	return out
}
