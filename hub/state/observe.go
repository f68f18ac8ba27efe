package state

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unique"
)

// Observe applies a report, and returns the resulting changes. It ignores content that is older
// than the known state, so the result does not depend on the order of reports. A second copy of a
// report changes nothing.
func (f *Fleet) Observe(r *Report) (*Changes, Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	received := r.Received.UTC().Truncate(time.Millisecond) // as it is stored
	at := r.observedAt(received)
	changes := &Changes{}
	if f.elsewhere(r) {
		return changes, Outcome{Elsewhere: true}
	}
	places := f.places(r, received, changes)
	if len(places) == 0 {
		return changes, Outcome{Resend: r.Same, Unlisted: !r.Same} // its items may name its cluster type
	}
	h := f.hear(r.Cluster)
	if r.Same && (h.digest == "" || h.digest != r.Digest) {
		return changes, Outcome{Resend: true}
	}
	o := &observation{Report: r, at: at, received: received, snapshot: h.snapshot, whole: true,
		changes: changes}
	o.all = r.Snapshot && !r.Same && !o.old()
	f.news(h, o)
	for _, p := range places {
		p.cluster.stale = f.isStale(p.env, p.cluster, received)
	}
	found, unknown := f.items(o, places)
	for _, p := range places {
		for i := range p.cluster.pairs {
			if p.target = i; o.all && !found[p] {
				o.take(p, &Item{})
			}
		}
		p.env.rejudge(p.cluster, received, changes)
	}
	if o.all {
		h.partial = len(unknown) > 0
	}
	if !o.whole {
		h.digest = ""
	}
	slices.Sort(unknown)
	return changes, Outcome{Unknown: slices.Compact(unknown)}
}

// observation is a report during its application.
type observation struct {
	*Report
	at, received time.Time
	snapshot     time.Time // when the last one was made, before this report
	all          bool      // its items are all items of the cluster
	whole        bool      // the known state equals the last snapshot
	changes      *Changes
}

// old reports whether a newer snapshot is known.
func (o *observation) old() bool { return o.at.Before(o.snapshot) }

// news sets the last contact of a cluster.
func (f *Fleet) news(h *contact, o *observation) {
	// A report that was carried from a site without a connection keeps its original time. A clock
	// that is wrong by less than staleAfter does not matter.
	news := o.received
	if o.received.Sub(o.at) > f.staleAfter {
		news = o.at
	}
	if news.After(h.last) {
		h.last, h.by, h.restored = news, o.By, false
	}
	switch {
	case !o.Snapshot:
	case !o.old():
		h.snapshot, h.digest = o.at, o.Digest
		h.identify(o.UID, o.received)
	case news == o.received: // it was not carried
		h.identifyOld(o)
	}
}

// items applies the items of a report. It returns the assignments that they are about, and the
// names of the other items.
func (f *Fleet) items(o *observation, places []clusterTarget) (found map[clusterTarget]bool,
	unknown []string) {
	found = make(map[clusterTarget]bool, len(o.Items))
	for i := range o.Items {
		it := &o.Items[i]
		p, ok := f.find(places, it)
		if !ok {
			unknown = append(unknown, cmp.Or(it.Assignment, it.Object))
			continue
		}
		found[p] = true
		o.take(p, it)
	}
	return found, unknown
}

// identify sets the uid of a snapshot. A new uid means that the cluster was created again, or has
// changed how it reports. In both cases the previous uid does not return.
func (h *contact) identify(uid string, received time.Time) {
	switch uid {
	case "", h.uid:
		return
	case h.before:
		h.conflict = received
	}
	h.uid, h.before = uid, h.uid
}

// identifyOld handles the uid of a snapshot that is older than the last one. A single late snapshot
// may come from a cluster that no longer exists. A second cluster with a slow clock sends such
// snapshots again and again, in turns with newer ones of the other cluster. In that case
// identifyOld records a conflict.
func (h *contact) identifyOld(o *observation) {
	if o.UID == "" || h.uid == "" || o.UID == h.uid {
		return
	}
	if l := &h.late; l.uid == o.UID && o.at.After(l.at) && h.snapshot.After(l.after) {
		h.conflict = o.received
	}
	h.late = lateSnapshot{o.UID, o.at, h.snapshot}
}

// observedAt returns when a report was observed. Clocks of reporters may be wrong.
func (r *Report) observedAt(received time.Time) time.Time {
	at := r.At.UTC().Truncate(time.Millisecond)
	switch first := time.UnixMilli(1).UTC(); { // 0 means never
	case r.At.IsZero() || at.After(received):
		return received
	case at.Before(first):
		return first
	}
	return at
}

// Quiet reports whether a report changes only the last contact of its cluster.
func (f *Fleet) Quiet(r *Report) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	h := f.seen[r.Cluster]
	if !r.Same || f.elsewhere(r) || h == nil || h.digest == "" || h.digest != r.Digest {
		return false
	}
	listed := false
	for _, e := range f.environments {
		if c := e.byClust[r.Cluster]; c != nil {
			if c.stale || e.overdue(c, r.Received) {
				return false
			}
			listed = true
		}
	}
	return listed
}

// elsewhere reports whether a report is about a cluster that is also in an environment that its
// reporter may not report about.
func (f *Fleet) elsewhere(r *Report) bool {
	for name, e := range f.environments {
		if !r.Environments.Has(name) && e.byClust[r.Cluster] != nil {
			return true
		}
	}
	return false
}

// clusterTarget is a cluster in an environment.
type clusterTarget struct {
	env     *environment
	cluster *cluster
	target  int
}

// places returns a cluster in each environment that has it. If the platform does not list clusters,
// the items of the report name the cluster types.
func (f *Fleet) places(r *Report, now time.Time, changes *Changes) []clusterTarget {
	var out []clusterTarget
	for _, name := range f.names {
		e := f.environments[name]
		if e == nil || !r.Environments.Has(name) {
			continue
		}
		c := e.byClust[r.Cluster]
		for i := 0; c == nil && i < len(r.Items); i++ {
			clusterType, _ := e.assignmentOf(&r.Items[i], r.Cluster)
			if fo := e.byName[clusterType]; fo != nil && !fo.Listed && r.Cluster != "" {
				c = f.place(now, e, r.Cluster, "", fo, false)
				fo.recount()
				for t := range c.pairs {
					changes.copied(Change{env: e, cluster: c, target: t, New: true})
				}
			}
		}
		if c != nil {
			out = append(out, clusterTarget{env: e, cluster: c})
		}
	}
	return out
}

// assignmentOf returns the cluster type and the deployment target of an item. Both are "" if the
// environment does not have them, or if the item is about another cluster.
func (e *environment) assignmentOf(it *Item, cluster string) (clusterType, target string) {
	if it.Assignment != "" {
		environment, rest, _ := strings.Cut(it.Assignment, "/")
		if environment != e.wanted.Environment {
			return "", ""
		}
		folder, target, _ := strings.Cut(rest, "/")
		clusterType, _, _ = strings.Cut(folder, ".") // of a class; a name has no dot
		return clusterType, target
	}
	o := e.objects[it.Object]
	if o.cluster != "" && o.cluster != cluster {
		return "", ""
	}
	return o.clusterType, o.target
}

func (f *Fleet) find(places []clusterTarget, it *Item) (clusterTarget, bool) {
	for _, p := range places {
		clusterType, target := p.env.assignmentOf(it, p.cluster.name)
		if p.cluster.folder.ClusterType != clusterType {
			continue
		}
		if p.target = p.cluster.folder.index(target); p.target >= 0 {
			return p, true
		}
		if i, there := p.cluster.folder.labels[target]; there {
			p.target = i
			return p, true
		}
	}
	return clusterTarget{}, false
}

// take applies the observed state of an assignment on a cluster. If two reports have the same time,
// the worse one counts, so that their order does not matter.
//
// If a snapshot has the known state, take does not change it, and the state is as old as the
// snapshot. Otherwise each commit of a branch would write all rows again.
func (o *observation) take(at clusterTarget, it *Item) {
	e, c, target := at.env, at.cluster, at.target
	p := &c.pairs[target]
	ms := o.at.UnixMilli()
	is := pair{
		digest: unique.Make(it.Digest), commit: unique.Make(it.Commit), message: unique.Make(it.Message),
		by:      unique.Make(o.By),
		applied: unique.Make(it.Applied), ran: none, at: ms, reported: it.State, state: p.state,
		changed: p.changed,
	}
	said := unique.Make(it.origin())
	is.from, is.fromAt = o.sourceOf(p, said)
	if is.reported == ReportedOK {
		is.message = none // it usually only names the commit
	}
	if !it.Since.IsZero() {
		is.since = it.Since.UnixMilli()
	}
	digest, known := e.running(c, target, &is)
	if known {
		is.ran = unique.Make(digest)
	}
	if !known || is.digest != none { // another folder may have the same digest
		e.note(e.runningID(c, target, &is), o.received.UnixMilli())
	}
	if o.old() {
		return
	}
	if is.reported == ReportedProgressing && it.Before != "" {
		if _, known := e.byCommit[it.Commit]; !known {
			o.whole = false // once it is known, the items define the change
		}
		now := is
		if now.from = said; e.alike(c, target, &now, unique.Make(it.Before)) {
			is.reported, is.message = ReportedOK, none
		}
	}
	old := *p
	p.from, p.fromAt = is.from, is.fromAt
	elsewhere := p.from != old.from
	order := e.compare(c, target, &is, p)
	newer := true
	if p.at != 0 {
		last := max(p.at, milliseconds(o.snapshot))
		newer = ms > last || ms == last && order > 0
	}
	differs := order != 0 || p.at == 0
	switch {
	case !newer:
		o.whole = o.whole && (order == 0 || !o.Snapshot) // newer, different content is known
		if !elsewhere {
			return
		}
	case !differs && !elsewhere && o.Snapshot:
		return
	case differs || !o.Snapshot:
		*p = is
	}
	if elsewhere {
		digest, known := e.running(c, target, p)
		if p.ran = none; known {
			p.ran = unique.Make(digest)
		}
	}
	s := e.judge(c, target, o.received)
	c.set(target, s, o.received)
	ran := old.ran != p.ran || p.ran == none && (old.commit != p.commit || old.digest != p.digest)
	o.changes.copied(
		Change{env: e, cluster: c, target: target, Was: old.state, Moved: old.state != s, Ran: ran})
	o.whole = o.whole && (o.Snapshot || !elsewhere && (!newer || !differs))
}

// sourceOf returns the source of an assignment, and the time of that information, given an item.
// The latest information counts. Most events lack the source, and are about the known one.
func (o *observation) sourceOf(p *pair, said place) (place, int64) {
	if !o.Snapshot && said == nowhere {
		return p.from, p.fromAt
	}
	last := max(p.fromAt, milliseconds(o.snapshot)) // a snapshot without items confirms the source
	if ms := o.at.UnixMilli(); ms > last || ms == last && compareOrigins(said, p.from) > 0 {
		return said, ms
	}
	return p.from, p.fromAt
}

func compareOrigins(a, b place) int {
	if a == b {
		return 0
	}
	x, y := a.Value(), b.Value()
	return cmp.Or(strings.Compare(x.Path, y.Path), strings.Compare(x.Branch, y.Branch),
		strings.Compare(x.Repository, y.Repository))
}

// compare orders two observations of the same time: the greater one counts. They are equal if they
// have the same content, even from different commits.
func (e *environment) compare(c *cluster, target int, a, b *pair) int {
	order := cmp.Or(a.reported.Compare(b.reported),
		strings.Compare(a.digest.Value(), b.digest.Value()),
		strings.Compare(a.message.Value(), b.message.Value()),
		strings.Compare(a.applied.Value(), b.applied.Value()))
	if order == 0 && a.reported != ReportedOK {
		order = cmp.Compare(a.since, b.since)
	}
	if order != 0 || a.commit == b.commit || a.digest != none {
		return order
	}
	folder, entry := e.content(c, target, a)
	other, otherEntry := e.content(c, target, b)
	return cmp.Or(strings.Compare(folder, other), strings.Compare(entry, otherEntry))
}

// alike reports whether another commit has the content that the commit of an observation has.
func (e *environment) alike(c *cluster, target int, p *pair, commit unique.Handle[string]) bool {
	other := *p
	other.commit = commit
	folder, entry := e.content(c, target, p)
	otherFolder, otherEntry := e.content(c, target, &other)
	return folder == otherFolder && entry == otherEntry
}

// content returns the digests of an assignment's folder and of a cluster's entry in the commit of
// an observation. If the commit is not known, it returns the commit.
func (e *environment) content(c *cluster, target int, p *pair) (folder, entry string) {
	place, known := e.byCommit[p.commit.Value()]
	if !known {
		return p.commit.Value(), ""
	}
	return e.wanted.DigestAt(place, e.key(c, target, p)), e.wanted.DigestAt(place, EntryKey(c.name))
}
