package state

import (
	"maps"
	"slices"
	"strings"
)

// Mark is what a Fleet had at one moment: what was wanted, and what was known of some clusters. A
// Fleet can be set back to it as long as nothing but those clusters, what is wanted and the time
// has changed the Fleet since.
type Mark struct {
	environments map[string]*environment
	names        []string
	clusters     map[string]marked
}

// marked is what was known of a cluster: its news, nil for none, and what it was in each environment
// that had it.
type marked struct {
	heard *heard
	news  heard
	in    map[*environment]placed
}

// placed is a cluster, and what it was.
type placed struct {
	cluster *cluster
	was     cluster
}

// Mark notes what is wanted, and what is known of some clusters, which may be there more than once.
func (f *Fleet) Mark(clusters []string) *Mark {
	f.mu.RLock()
	defer f.mu.RUnlock()
	m := &Mark{environments: maps.Clone(f.environments), names: f.names, clusters: map[string]marked{}}
	for _, name := range clusters {
		if _, there := m.clusters[name]; there {
			continue
		}
		known := marked{heard: f.seen[name], in: map[*environment]placed{}}
		if known.heard != nil {
			known.news = *known.heard
		}
		for _, e := range f.environments {
			if c := e.byClust[name]; c != nil {
				was := *c
				was.pairs = slices.Clone(c.pairs)
				known.in[e] = placed{c, was}
			}
		}
		m.clusters[name] = known
	}
	return m
}

// Reset sets a Fleet back to a mark, which is used once. What stays changes no state: when a commit that
// is not known was first reported, and that the items of a snapshot are needed again.
func (f *Fleet) Reset(m *Mark) {
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
		if delete(f.seen, name); known.heard != nil {
			*known.heard, f.seen[name] = known.news, known.heard
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
