// Package state holds what is wanted of clusters and what was observed of them, and computes
// the state of each assignment on each cluster, which it counts.
//
// An assignment on a cluster is OK iff it was observed to be ready with the wanted digests: of
// the assignment's folder, and of the cluster's entry where it has one. So a rollback, a
// promotion that changes nothing and a commit that is about something else need no case of
// their own.
//
// Everything is in memory and a function of its inputs: of what is wanted, of the reports in
// any order, and of the time. Nothing is read or written.
package state

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"
)

// Fleet is all clusters of all environments. One goroutine changes it, any number read it.
type Fleet struct {
	mu           sync.RWMutex
	staleAfter   time.Duration
	began        time.Time
	environments map[string]*environment
	names        []string // of environments, in the order of promotion
	// seen is the last news of each cluster, by name.
	seen map[string]*heard
}

// heard is what is known of a cluster in all environments.
type heard struct {
	last     time.Time // by the hub's clock
	snapshot time.Time // by the reporter's
	digest   string    // of the last snapshot; "" where its items are needed again
	partial  bool      // that snapshot had items that are no assignments of the cluster
	by       string
	restored bool // it was heard before the hub began, or by another one
}

// environment is one environment. Its folders and clusters are sorted by name.
type environment struct {
	wanted   *Wanted
	folders  []*folder
	byName   map[string]*folder
	clusters []*cluster
	byClust  map[string]*cluster
	objects  map[string]object
	byCommit map[string]int
}

// object is what a reconciler's object is about; cluster is "" where each cluster has one of
// the name.
type object struct{ clusterType, target, cluster string }

type folder struct {
	*Folder
	tallies  []Tally // of each target
	clusters []*cluster
}

type cluster struct {
	name   string
	folder *folder
	listed bool
	entry  string // the wanted digest of its entry; "" for none
	heard  *heard
	stale  bool
	states uint16 // one bit for each state that any pair has
	pairs  []pair // of each target of the folder
}

type text = unique.Handle[string]

var none = unique.Make("")

// pair is an assignment on a cluster.
type pair struct {
	digest, commit, path, message, by text
	ran                               text  // the digest of what runs, as it was when that was last known
	at, since                         int64 // of the report that said so first, in milliseconds
	changed                           int64 // since when the state is what it is
	reported                          Reported
	state                             State
}

// New returns a Fleet without clusters. A cluster is stale when its last news, or the start
// for those of before, is older than staleAfter.
func New(staleAfter time.Duration, start time.Time) *Fleet {
	return &Fleet{staleAfter: staleAfter, began: start, environments: map[string]*environment{}, seen: map[string]*heard{}}
}

// Order sets the order of environments, and drops all others. It returns what is not wanted any
// more.
func (f *Fleet) Order(names []string) *Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names = slices.Clone(names)
	changes := &Changes{}
	for _, name := range slices.Sorted(maps.Keys(f.environments)) {
		if slices.Contains(names, name) {
			continue
		}
		e := f.environments[name]
		for _, c := range e.clusters {
			for i := range c.pairs {
				changes.add(Change{env: e, cluster: c, target: i, Was: c.pairs[i].state, Gone: true})
			}
		}
		delete(f.environments, name)
	}
	return changes
}

// Want replaces what is wanted of an environment, and returns what changes by it. What was
// observed stays as it is.
func (f *Fleet) Want(now time.Time, w *Wanted) *Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := &Changes{}
	f.want(now, w, changes)
	return changes
}

// want is Want; the changes may be nil.
func (f *Fleet) want(now time.Time, w *Wanted, changes *Changes) {
	was := f.environments[w.Environment]
	is := newEnvironment(w)
	f.environments[w.Environment] = is
	if !slices.Contains(f.names, w.Environment) {
		f.names = append(f.names, w.Environment)
	}
	for i := range w.Clusters {
		c := &w.Clusters[i]
		if to := is.byName[c.Folder]; to != nil {
			f.place(now, is, c.Name, c.Entry, to, true)
		}
	}
	if was != nil {
		f.keep(now, was, is)
	}
	for _, c := range is.clusters {
		var old *cluster
		if was != nil {
			old = was.byClust[c.name]
		}
		f.inherit(now, was, is, old, c, changes)
		if c.heard.partial && c.heard.digest != "" { // what was unknown in its snapshot may be wanted now
			c.heard.digest = ""
			changes.hear(c.name)
		}
	}
	if was != nil {
		for _, old := range was.clusters {
			if is.byClust[old.name] == nil {
				for i := range old.pairs {
					changes.add(Change{env: was, cluster: old, target: i, Was: old.pairs[i].state, Gone: true})
				}
			}
		}
	}
	for _, fo := range is.folders {
		fo.recount()
	}
}

func newEnvironment(w *Wanted) *environment {
	e := &environment{wanted: w, byName: map[string]*folder{}, byClust: make(map[string]*cluster, len(w.Clusters)), objects: map[string]object{}, byCommit: map[string]int{}}
	for i := range w.Folders {
		fo := &folder{Folder: &w.Folders[i], tallies: make([]Tally, len(w.Folders[i].Targets))}
		e.folders = append(e.folders, fo)
		e.byName[fo.Name] = fo
		for _, t := range fo.Targets {
			if t.Object != "" {
				e.objects[t.Object] = object{fo.ClusterType, t.Name, ""}
			}
			for name, of := range t.Objects {
				e.objects[name] = object{fo.ClusterType, t.Name, of}
			}
		}
	}
	for i := len(w.Commits) - 1; i >= 0; i-- {
		e.byCommit[w.Commits[i].ID] = i
	}
	return e
}

// place adds a cluster, or returns the one that is there.
func (f *Fleet) place(now time.Time, e *environment, name, entry string, to *folder, listed bool) *cluster {
	if c := e.byClust[name]; c != nil {
		return c
	}
	c := &cluster{name: name, folder: to, listed: listed, entry: entry, heard: f.hear(name), pairs: make([]pair, len(to.Targets))}
	for i := range c.pairs {
		c.pairs[i] = pair{digest: none, commit: none, path: none, message: none, by: none, ran: none, state: Missing, changed: now.UnixMilli()}
	}
	c.recount()
	e.byClust[name] = c
	at, _ := slices.BinarySearchFunc(e.clusters, name, func(c *cluster, name string) int { return strings.Compare(c.name, name) })
	e.clusters = slices.Insert(e.clusters, at, c) // at the end, mostly
	to.clusters = append(to.clusters, c)
	return c
}

func (f *Fleet) hear(name string) *heard {
	h := f.seen[name]
	if h == nil {
		h = &heard{}
		f.seen[name] = h
	}
	return h
}

// keep takes over the clusters that have reported and that the platform does not list.
func (f *Fleet) keep(now time.Time, was, is *environment) {
	for _, c := range was.clusters {
		if to := is.byName[c.folder.Name]; !c.listed && to != nil && !to.Listed {
			f.place(now, is, c.name, "", to, false)
		}
	}
}

// inherit gives a cluster what was observed of it before.
func (f *Fleet) inherit(now time.Time, was, is *environment, old, c *cluster, changes *Changes) {
	c.stale = old != nil && old.stale
	c.stale = f.isStale(is, c, now)
	defer c.recount()
	for i := range c.pairs {
		p, name := &c.pairs[i], c.folder.Targets[i].Name
		before := -1
		if old != nil {
			before = old.folder.index(name)
		}
		if before < 0 {
			changes.add(Change{env: is, cluster: c, target: i, New: true})
			continue
		}
		o := old.pairs[before]
		*p = o
		is.resolve(c, i)
		if p.state = is.judge(c, i); p.state != o.state {
			p.changed = now.UnixMilli()
		}
		other := old.folder.Targets[before].Digest != c.folder.Targets[i].Digest || old.folder.Name != c.folder.Name || old.folder.Targets[before].Version != c.folder.Targets[i].Version
		if p.state != o.state || p.ran != o.ran || other {
			changes.add(Change{env: is, cluster: c, target: i, Was: o.state, Moved: p.state != o.state, Ran: p.ran != o.ran, Other: other})
		}
	}
	if old == nil {
		return
	}
	for i := range old.pairs {
		if c.folder.index(old.folder.Targets[i].Name) < 0 {
			changes.add(Change{env: was, cluster: old, target: i, Was: old.pairs[i].state, Gone: true})
		}
	}
}

func (fo *folder) index(target string) int {
	i, found := slices.BinarySearchFunc(fo.Targets, target, func(t Target, name string) int { return strings.Compare(t.Name, name) })
	if !found {
		return -1
	}
	return i
}

// recount counts the states of a folder anew.
func (fo *folder) recount() {
	for i := range fo.tallies {
		fo.count(i)
	}
}

func (fo *folder) count(target int) {
	fo.tallies[target] = Tally{}
	if fo.Listed {
		for _, c := range fo.clusters {
			fo.tallies[target][c.pairs[target].state]++
		}
		return
	}
	worst := Missing
	for i, c := range fo.clusters {
		if s := c.pairs[target].state; i == 0 || s > worst {
			worst = s
		}
	}
	fo.tallies[target][worst] = 1
}

// set changes the state of a pair, and the count.
func (c *cluster) set(target int, s State, now time.Time) {
	p := &c.pairs[target]
	if p.state == s {
		return
	}
	was := p.state
	p.state, p.changed = s, now.UnixMilli()
	c.recount()
	if c.folder.Listed {
		c.folder.tallies[target][was]--
		c.folder.tallies[target][s]++
		return
	}
	c.folder.count(target)
}

// recount finds out anew which states there are on a cluster.
func (c *cluster) recount() {
	c.states = 0
	for i := range c.pairs {
		c.states |= 1 << c.pairs[i].state
	}
}

// judge returns the state of an assignment on a cluster.
func (e *environment) judge(c *cluster, target int) State {
	p := &c.pairs[target]
	if p.reported == Nothing {
		if c.stale && p.at != 0 {
			return Stale
		}
		return Missing
	}
	if p.reported == ReportedFailed && p.commit == none && p.digest == none {
		return Failed // before it could apply anything
	}
	digest, known := e.running(c, target, p)
	wanted := known && digest == c.folder.Targets[target].Digest
	switch {
	case wanted && p.reported == ReportedFailed: // it holds until there is other news
		return Failed
	case c.stale:
		return Stale
	case !known:
		return Drifted
	case !wanted:
		return Behind
	case p.reported == ReportedDrifted:
		return Drifted
	case p.reported == ReportedProgressing:
		return Progressing
	}
	return OK
}

// running returns the digest of what a cluster runs of an assignment; false where its branch
// has had no such thing. It is "" where the cluster does not have its wanted entry.
func (e *environment) running(c *cluster, target int, p *pair) (string, bool) {
	key := e.key(c, target, p)
	if p.digest != none {
		return p.digest.Value(), e.had(key, p.digest.Value())
	}
	place, known := e.byCommit[p.commit.Value()]
	if !known { // it is older than what is known of the branch, or was never there
		return p.ran.Value(), p.ran != none && e.had(key, p.ran.Value())
	}
	if c.entry != "" && e.wanted.At(place, EntryKey(c.name)) != c.entry {
		return "", true
	}
	return e.wanted.At(place, key), true
}

// resolve keeps the digest of what a cluster runs, where it is known, for when its commit is
// not known any more.
func (e *environment) resolve(c *cluster, target int) {
	p := &c.pairs[target]
	if digest, known := e.running(c, target, p); known {
		p.ran = unique.Make(digest)
	}
}

// had reports whether a folder had a digest in any known commit.
func (e *environment) had(key, digest string) bool {
	if e.wanted.At(0, key) == digest {
		return true
	}
	for i := range e.wanted.Commits {
		if e.wanted.Commits[i].Was[key] == digest {
			return true
		}
	}
	return false
}

// key returns the key of the folder that an observation is about.
func (e *environment) key(c *cluster, target int, p *pair) string {
	key := Key(c.folder.Name, c.folder.Targets[target].Name)
	if p.path != none {
		return keyOf(p.path.Value(), key)
	}
	return key
}

// keyOf returns the key of a folder of which the path in the repository is known.
func keyOf(path, otherwise string) string {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	if len(segments) < 2 {
		return otherwise
	}
	return Key(segments[len(segments)-2], segments[len(segments)-1])
}

func (f *Fleet) bound(e *environment) time.Duration { return cmp.Or(e.wanted.StaleAfter, f.staleAfter) }

func (f *Fleet) isStale(e *environment, c *cluster, now time.Time) bool {
	last := c.heard.last
	if last.IsZero() {
		return false // it is missing
	}
	if c.heard.restored && last.Before(f.began) && !c.stale {
		last = f.began // the hub was not there to hear it
	}
	return now.Sub(last) > f.bound(e)
}

// Expire marks clusters of which there was no news for too long, and returns what changes.
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
	}
	return changes
}

// rejudge computes the states of a cluster anew.
func (e *environment) rejudge(c *cluster, now time.Time, changes *Changes) {
	for i := range c.pairs {
		if was, is := c.pairs[i].state, e.judge(c, i); was != is {
			c.set(i, is, now)
			changes.copied(Change{env: e, cluster: c, target: i, Was: was, Moved: true})
		}
	}
}
