package state

import (
	"maps"
	"time"
	"unique"
)

// unread is a commit or a digest that is reported and that is not known. A reconciler may be faster
// than a hub, so that it may be one that the hub is about to read.
type unread struct {
	// when it was reported first, by the hub's clock, in milliseconds: one cluster's clock must not
	// end the grace time of all
	first int64
	// clusters are those that wait: of which something is progressing because of it.
	clusters map[*cluster]struct{}
}

// mostUnread is how many there may be before those are dropped that nothing runs.
const mostUnread = 1000

// said returns what stands for what a cluster runs of an assignment: the commit, or the digest with the
// assignment; none where neither was reported.
func (e *environment) said(c *cluster, target int, p *pair) text {
	if p.digest == none {
		return p.commit
	}
	return unique.Make(Key(c.folder.ClusterType, c.folder.Targets[target].Name) + "@" + p.digest.Value())
}

// note keeps when what is not known was first reported. It returns nil where nobody waits for it.
func (e *environment) note(said text, at int64) *unread {
	if said == none || e.grace <= 0 {
		return nil
	}
	u := e.unread[said]
	if u == nil {
		if len(e.unread) >= e.mostUnread {
			e.forget()
		}
		u = &unread{first: at, clusters: map[*cluster]struct{}{}}
		e.unread[said] = u
	}
	u.first = min(u.first, at)
	return u
}

// forget drops what nothing runs any more.
func (e *environment) forget() {
	runs := map[text]bool{}
	for _, c := range e.clusters {
		for i := range c.pairs {
			runs[e.said(c, i, &c.pairs[i])] = true
		}
	}
	maps.DeleteFunc(e.unread, func(said text, _ *unread) bool { return !runs[said] })
	e.mostUnread = max(mostUnread, 2*len(e.unread))
}

// mayBeRead reports whether a hub may be about to read what a cluster runs of an assignment, which is not
// known: it was not reported for longer than the grace time.
func (e *environment) mayBeRead(c *cluster, target int, p *pair, now time.Time) bool {
	u := e.note(e.said(c, target, p), now.UnixMilli())
	if u == nil || e.over(u, now) {
		return false
	}
	u.clusters[c] = struct{}{}
	return true
}

// keepUnread takes over when what is still not known was first reported.
func (e *environment) keepUnread(was *environment) {
	e.mostUnread = was.mostUnread
	for said, u := range was.unread {
		if _, known := e.byCommit[said.Value()]; !known {
			e.note(said, u.first)
		}
	}
}

// restoreUnread takes over that a cluster waits for what is not known, or that it was found to be drift.
func (e *environment) restoreUnread(c *cluster, target int, began time.Time) {
	p := &c.pairs[target]
	if p.reported == ReportedDrifted || p.state != Progressing && p.state != Drifted {
		return
	}
	if _, known := e.running(c, target, p); known {
		return
	}
	first := max(p.at, p.changed, began.UnixMilli()) // the hub was not there to read it
	if p.state == Drifted {
		first = 0
	}
	if u := e.note(e.said(c, target, p), first); u != nil && p.state == Progressing {
		u.clusters[c] = struct{}{}
	}
}

// overdue reports whether a cluster has waited for longer than the grace time.
func (e *environment) overdue(c *cluster, now time.Time) bool {
	for _, u := range e.unread {
		if _, waits := u.clusters[c]; waits && e.over(u, now) {
			return true
		}
	}
	return false
}

func (e *environment) over(u *unread, now time.Time) bool {
	return now.UnixMilli()-u.first > e.grace.Milliseconds()
}

// expireUnread judges the clusters anew that have waited for longer than the grace time.
func (e *environment) expireUnread(now time.Time, changes *Changes) {
	for _, u := range e.unread {
		if len(u.clusters) == 0 || !e.over(u, now) {
			continue
		}
		waited := u.clusters
		u.clusters = map[*cluster]struct{}{}
		for c := range waited {
			e.rejudge(c, now, changes)
		}
	}
}

// unreadMessage says of what is progressing because it is not known that it is not; "" of others.
func (e *environment) unreadMessage(c *cluster, target int, p *pair) string {
	if p.state != Progressing || p.reported == ReportedDrifted {
		return ""
	}
	if _, known := e.running(c, target, p); known || e.said(c, target, p) == none {
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
