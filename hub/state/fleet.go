// Package state holds the wanted and the observed state of clusters. It computes and counts the
// state of each assignment on each cluster.
//
// An assignment on a cluster is OK only if it was observed to be ready with the wanted digests.
// These are the digests of the assignment's folder, and of the cluster's entry if it has one. A
// rollback, a promotion without changes and a commit about something else therefore need no special
// case.
//
// Everything is in memory and a function of its inputs: the wanted state, the reports in any order,
// and the time. The package reads and writes no files.
//
// For example, the branch of dev wants hello-main of the cluster type large, at digest d2, since
// commit c2; before, it wanted d1, at c1. A report of cluster oslo with the Item
//
//	{Assignment: "dev/large/hello-main", Commit: "c1", State: ReportedOK}
//
// makes a Change from Missing to Behind, because c1 had d1. The next one, with c2, makes a Change
// from Behind to OK. A third one with c3, which changes only other folders, makes none: c3 has d2.
package state

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/kalypso-io/kalypso/compiler/origin"
)

// Fleet is all clusters of all environments. One goroutine changes it, any number read it.
type Fleet struct {
	mu           sync.RWMutex
	staleAfter   time.Duration
	grace        time.Duration
	began        time.Time
	environments map[string]*environment
	names        []string // of environments, in the order of promotion
	// seen is the last contact of each cluster, by name.
	seen map[string]*contact
}

// contact is the most recent report of a cluster. All environments with the cluster share it.
type contact struct {
	last     time.Time // by the hub's clock
	snapshot time.Time // by the reporter's
	digest   string    // of the last snapshot; "" if its items are needed again
	partial  bool      // some items of that snapshot did not match assignments of the cluster
	by       string
	uid      string // of the last snapshot that had one, and the different one before it
	before   string
	conflict time.Time    // when one of the two last returned, by the hub's clock
	late     lateSnapshot // not kept over restarts
	restored bool         // the report came before the hub began, or to another hub
}

// lateSnapshot is the last snapshot with another uid that was older than the snapshot before it. It
// has the times of both, by the reporters' clocks.
type lateSnapshot struct {
	uid       string
	at, after time.Time
}

// environment is one environment. Its folders and clusters are sorted by name.
type environment struct {
	wanted   *DesiredState
	folders  []*folder
	byName   map[string]*folder
	clusters []*cluster
	byClust  map[string]*cluster
	objects  map[string]object
	byCommit map[string]int
	tree     origin.Tree
	ours     sync.Map            // whether a repository's URL is one of the tree's, by URL
	byHand   map[string][]string // the digests that somebody edited in the branch, by Key
	grace    time.Duration

	unread    map[text]*unreadCommit
	maxUnread int
}

// object is the assignment that a reconciler's object is about. cluster is "" if each cluster has
// an object with that name.
type object struct{ clusterType, target, cluster string }

type folder struct {
	*Folder
	tallies  []Tally        // of each target
	labels   map[string]int // targets, by their labels
	clusters []*cluster
}

type cluster struct {
	name    string
	folder  *folder
	listed  bool
	entry   string // the wanted digest of its entry; "" if it has no entry
	contact *contact
	stale   bool
	states  uint16 // one bit for each state that any pair has
	pairs   []pair // of each target of the folder
}

type text = unique.Handle[string]

var none = unique.Make("")

// place is the source from which a cluster takes an assignment.
type place = unique.Handle[origin.Origin]

var nowhere = unique.Make(origin.Origin{})

// pair is an assignment on a cluster.
type pair struct {
	digest, commit, message, by text
	applied                     text // the commit that was applied last, if that is not commit
	from                        place
	fromAt                      int64 // the time of the report that named it, in milliseconds
	ran                         text  // the running digest, when it was last known
	at, since                   int64 // the time of the first report of this state, in milliseconds
	changed                     int64 // since when the state holds
	reported                    ReportedState
	state                       State
}

// New returns a Fleet without clusters. A cluster is stale if its last contact is older than
// staleAfter. For a contact before the start, the start counts. A commit may need as long as grace
// until it is known. An unknown commit or digest is drift once clusters have reported it for longer
// than grace.
func New(staleAfter, grace time.Duration, start time.Time) *Fleet {
	return &Fleet{staleAfter: staleAfter, grace: grace, began: start,
		environments: map[string]*environment{}, seen: map[string]*contact{}}
}

// Order sets the order of environments, and removes all others. It returns the removed assignments
// as changes.
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

// Want replaces the wanted state of an environment, and returns the resulting changes. The observed
// state stays the same.
func (f *Fleet) Want(now time.Time, w *DesiredState) *Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := &Changes{}
	f.want(now, w, changes)
	return changes
}

// want is Want for the caller's changes, which may be nil.
func (f *Fleet) want(now time.Time, w *DesiredState, changes *Changes) {
	was := f.environments[w.Environment]
	is := newEnvironment(w, f.grace)
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
		// Keep the times when still unknown content was first reported.
		is.maxUnread = was.maxUnread
		for said, u := range was.unread {
			if _, known := is.byCommit[said.Value()]; !known {
				is.note(said, u.first)
			}
		}
		// clusters that have reported and that the platform does not list
		for _, c := range was.clusters {
			if to := is.byName[c.folder.Name]; !c.listed && to != nil && !to.Listed {
				f.place(now, is, c.name, "", to, false)
			}
		}
	}
	for _, c := range is.clusters {
		var old *cluster
		if was != nil {
			old = was.byClust[c.name]
		}
		more := f.inherit(now, was, is, old, c, changes)
		// The last snapshot may have had an item that was not wanted, and is now.
		if (more || c.contact.partial) && c.contact.digest != "" {
			c.contact.digest = ""
			changes.AddContact(c.name)
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

func newEnvironment(w *DesiredState, grace time.Duration) *environment {
	e := &environment{
		wanted: w, byName: map[string]*folder{}, byClust: make(map[string]*cluster, len(w.Clusters)),
		objects: map[string]object{}, byCommit: map[string]int{},
		byHand: w.byHand(), grace: grace, unread: map[text]*unreadCommit{}, maxUnread: maxUnread,
	}
	e.tree = origin.Tree{Repository: w.Repository, Mirrors: w.Mirrors, Branch: w.Branch, Path: w.Path}
	for i := range w.Folders {
		fo := &folder{Folder: &w.Folders[i], tallies: make([]Tally, len(w.Folders[i].Targets))}
		e.folders = append(e.folders, fo)
		e.byName[fo.Name] = fo
		for i, t := range fo.Targets {
			if t.Label != "" {
				if fo.labels == nil {
					fo.labels = map[string]int{}
				}
				fo.labels[t.Label] = i
			}
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

// place adds a cluster to a folder, or returns the existing one.
func (f *Fleet) place(now time.Time, e *environment, name, entry string, to *folder,
	listed bool) *cluster {
	if c := e.byClust[name]; c != nil {
		return c
	}
	c := &cluster{name: name, folder: to, listed: listed, entry: entry, contact: f.hear(name),
		pairs: make([]pair, len(to.Targets))}
	for i := range c.pairs {
		c.pairs[i] = pair{digest: none, commit: none, message: none, by: none, applied: none,
			from: nowhere, ran: none, state: Missing, changed: now.UnixMilli()}
	}
	c.recount()
	e.insert(c)
	return c
}

func (f *Fleet) hear(name string) *contact {
	h := f.seen[name]
	if h == nil {
		h = &contact{}
		f.seen[name] = h
	}
	return h
}

// inherit copies the earlier observed state of a cluster. It reports whether the cluster has new
// assignments.
func (f *Fleet) inherit(now time.Time, was, is *environment, old, c *cluster,
	changes *Changes) (more bool) {
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
			more = true
			continue
		}
		o := old.pairs[before]
		*p = o
		is.resolve(c, i)
		if p.state = is.judge(c, i, now); p.state != o.state {
			p.changed = now.UnixMilli()
		}
		other := old.folder.Targets[before].Digest != c.folder.Targets[i].Digest ||
			old.folder.Name != c.folder.Name ||
			old.folder.Targets[before].Version != c.folder.Targets[i].Version
		if p.state != o.state || p.ran != o.ran || other {
			changes.add(Change{env: is, cluster: c, target: i, Was: o.state, Moved: p.state != o.state,
				Ran: p.ran != o.ran, Other: other})
		}
	}
	if old == nil {
		return more
	}
	for i := range old.pairs {
		if c.folder.index(old.folder.Targets[i].Name) < 0 {
			changes.add(Change{env: was, cluster: old, target: i, Was: old.pairs[i].state, Gone: true})
		}
	}
	return more
}

func (fo *folder) index(target string) int {
	i, found := slices.BinarySearchFunc(fo.Targets, target,
		func(t Target, name string) int { return strings.Compare(t.Name, name) })
	if !found {
		return -1
	}
	return i
}

// recount counts the states of a folder again.
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
		s := c.pairs[target].state
		if i == 0 || slices.Index(order[:], s) > slices.Index(order[:], worst) {
			worst = s
		}
	}
	fo.tallies[target][worst] = 1
}

// set changes the state of a pair, and updates the counts.
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

// recount computes again which states the assignments on a cluster have.
func (c *cluster) recount() {
	c.states = 0
	for i := range c.pairs {
		c.states |= 1 << c.pairs[i].state
	}
}

// Forget removes a cluster that the platform does not list, and its observed state, until it
// reports again. It returns nil if the cluster does not exist. If environments list the cluster, it
// stays, and listed has these environments.
func (f *Fleet) Forget(name string) (changes *Changes, listed []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.seen[name] != nil
	for _, environment := range f.names {
		if e := f.environments[environment]; e != nil && e.byClust[name] != nil &&
			e.byClust[name].listed {
			listed = append(listed, environment)
		}
	}
	if !found || len(listed) > 0 {
		return nil, listed
	}
	changes = &Changes{}
	f.forget(name, changes)
	return changes, nil
}

// forget removes a cluster from the cluster types that list no clusters. changes may be nil.
func (f *Fleet) forget(name string, changes *Changes) {
	for _, environment := range f.names {
		e := f.environments[environment]
		if e == nil || e.byClust[name] == nil || e.byClust[name].listed {
			continue
		}
		c := e.byClust[name]
		for i := range c.pairs {
			changes.add(Change{env: e, cluster: c, target: i, Was: c.pairs[i].state, Gone: true})
		}
		e.remove(c)
		c.folder.recount()
	}
	delete(f.seen, name)
}

// Environments is a set of environments, by name; nil means all.
type Environments []string

// In returns the set of one environment, or all environments if name is "".
func In(name string) Environments {
	if name == "" {
		return nil
	}
	return Environments{name}
}

// Has reports whether an environment is among them.
func (e Environments) Has(name string) bool { return e == nil || slices.Contains(e, name) }

// Names returns all environments of the platform, in the order of promotion. It includes
// environments that could not be read.
func (f *Fleet) Names() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(f.names)
}
