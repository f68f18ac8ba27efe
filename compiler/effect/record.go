package effect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// CompareRecords compares two records of an environment; nil is an empty tree. To compare more than
// two records, use a Reader.
func CompareRecords(before, after *tree.Record) (*Effect, error) {
	return new(Reader).Compare(before, after)
}

// Reader compares a series of records, such as the commits of a branch. It remembers the content
// of the last two records, so it reads the record of a folder once while that stays. The zero
// Reader is ready to use. It is for one goroutine.
type Reader struct {
	// Prefetch is called with the ids of the folders' records that are read next. When it
	// returns, they are available without delay. It may be nil.
	Prefetch func(ids []tree.ID) error

	known map[tree.ID]*recordedFolder // by the id of a folder's record
}

// recordedFolder is the part of a folder's record that an effect needs.
type recordedFolder struct {
	assignments []Assignment // sorted by deployment target
	clusters    []string     // that are listed
	entries     []Cluster    // in a folder of entries
}

// Compare compares two records of an environment; nil is an empty tree. Their trees are in git: the
// id of a folder's record identifies the content of the folder.
//
// It reads folders with equal records only if clusters move to or from them. Before, After, Ways
// and Unchanged leave out cluster types without a differing folder or a moving cluster. An error
// names the folder whose record cannot be read.
func (r *Reader) Compare(before, after *tree.Record) (*Effect, error) {
	c := &recordChange{Reader: r, busy: map[string]bool{}, moved: map[string]bool{}}
	for n, record := range []*tree.Record{before, after} {
		c.sides[n] = recordSide{record: record, listed: map[string]*tree.ClusterTypeEntry{},
			follows: map[string]Cluster{}, hasEntries: map[string]bool{}}
		if record != nil {
			for i := range record.ClusterTypes {
				c.sides[n].listed[record.ClusterTypes[i].Name] = &record.ClusterTypes[i]
			}
		}
	}
	differing := c.differing()
	if len(differing) == 0 {
		return &Effect{}, nil
	}
	if r.known == nil {
		r.known = map[tree.ID]*recordedFolder{}
	}
	if err := c.readEntries(differing); err != nil {
		return nil, err
	}
	if err := c.readClusters(); err != nil {
		return nil, err
	}
	e, err := Compare(c.side(0), c.side(1), c.same)
	if err != nil {
		return nil, err
	}
	current := map[tree.ID]bool{}
	for n := range c.sides {
		for _, entry := range c.sides[n].listed {
			current[entry.Record] = true
		}
	}
	maps.DeleteFunc(r.known, func(id tree.ID, _ *recordedFolder) bool { return !current[id] })
	return e, nil
}

// recordChange is one call of Reader.Compare.
type recordChange struct {
	*Reader
	sides [2]recordSide
	// busy are the cluster types with a differing folder or a moving cluster, and moved are
	// the folders at both ends of such a cluster's way.
	busy, moved map[string]bool
}

// recordSide is one of the records.
type recordSide struct {
	record *tree.Record
	listed map[string]*tree.ClusterTypeEntry // by name, with the folders of entries
	// follows has the clusters of busy cluster types by name, and hasEntries the cluster
	// types whose clusters have entries.
	follows    map[string]Cluster
	hasEntries map[string]bool
}

// same reports whether both records have a folder with the same record.
func (c *recordChange) same(folder string) bool {
	a, b := c.sides[0].listed[folder], c.sides[1].listed[folder]
	return a != nil && b != nil && a.Record == b.Record
}

// differing returns the differing folders, with the folders of entries.
func (c *recordChange) differing() []string {
	all := maps.Clone(c.sides[0].listed)
	maps.Copy(all, c.sides[1].listed)
	maps.DeleteFunc(all, func(name string, _ *tree.ClusterTypeEntry) bool { return c.same(name) })
	return slices.Sorted(maps.Keys(all))
}

// readEntries reads the differing folders and all entries of clusters, and finds the busy
// cluster types.
func (c *recordChange) readEntries(differing []string) error {
	names := slices.Clone(differing)
	for n := range c.sides {
		for name := range c.sides[n].listed {
			if tree.IsShard(name) {
				names = append(names, name)
			}
		}
	}
	if err := c.prefetch(names); err != nil {
		return err
	}
	for _, name := range differing {
		if !tree.IsShard(name) {
			c.busy[model.TypeOfFolder(name)] = true
			continue
		}
		// A cluster has its entry in the same folder of entries on both sides.
		var follows [2]map[string]string
		for n := range c.sides {
			follows[n] = map[string]string{}
			if c.sides[n].listed[name] == nil {
				continue
			}
			shard, err := c.read(n, name)
			if err != nil {
				return err
			}
			for _, entry := range shard.entries {
				follows[n][entry.Name] = entry.Folder
			}
		}
		for n := range follows {
			for cluster, folder := range follows[n] {
				if follows[1-n][cluster] != folder {
					c.moved[folder], c.busy[model.TypeOfFolder(folder)] = true, true
				}
			}
		}
	}
	for n := range c.sides {
		s := &c.sides[n]
		for name := range s.listed {
			if !tree.IsShard(name) {
				continue
			}
			shard, err := c.read(n, name)
			if err != nil {
				return err
			}
			for _, entry := range shard.entries {
				if clusterType := model.TypeOfFolder(entry.Folder); c.busy[clusterType] {
					s.follows[entry.Name], s.hasEntries[clusterType] = entry, true
				}
			}
		}
	}
	return nil
}

// readClusters reads the clusters that the busy cluster types without entries list. A
// cluster with an entry follows the folder in that entry.
func (c *recordChange) readClusters() error {
	var folders [2][]string
	for n := range c.sides {
		s := &c.sides[n]
		for name := range s.listed {
			if clusterType := model.TypeOfFolder(name); !tree.IsShard(name) && c.busy[clusterType] &&
				!s.hasEntries[clusterType] {
				folders[n] = append(folders[n], name)
			}
		}
		slices.Sort(folders[n])
	}
	if err := c.prefetch(
		slices.Concat(folders[0], folders[1], slices.Collect(maps.Keys(c.moved)))); err != nil {
		return err
	}
	for n := range c.sides {
		for _, folder := range folders[n] {
			of, err := c.read(n, folder)
			if err != nil {
				return err
			}
			for _, name := range of.clusters {
				if _, follows := c.sides[n].follows[name]; !follows {
					c.sides[n].follows[name] = Cluster{Name: name, Folder: folder}
				}
			}
		}
	}
	return nil
}

// side returns one of the records in the form that Of needs.
func (c *recordChange) side(n int) *Side {
	s := &c.sides[n]
	out := &Side{Folders: map[string]int{}}
	for name, entry := range s.listed {
		if !tree.IsShard(name) && c.busy[model.TypeOfFolder(name)] {
			out.Folders[name] = entry.Assignments
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.follows)) {
		out.Clusters = append(out.Clusters, s.follows[name])
	}
	out.Assigned = func(folder string) ([]Assignment, error) {
		of, err := c.read(n, folder)
		if err != nil {
			return nil, err
		}
		return of.assignments, nil
	}
	return out
}

// prefetch announces the records of folders that are not known yet.
func (c *recordChange) prefetch(names []string) error {
	if c.Prefetch == nil {
		return nil
	}
	ids := map[tree.ID]bool{}
	for _, name := range names {
		for n := range c.sides {
			if entry := c.sides[n].listed[name]; entry != nil && c.known[entry.Record] == nil {
				ids[entry.Record] = true
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return c.Prefetch(slices.Sorted(maps.Keys(ids)))
}

// read returns the record of a folder.
func (c *recordChange) read(n int, folder string) (*recordedFolder, error) {
	s := &c.sides[n]
	id := s.listed[folder].Record
	if known := c.known[id]; known != nil {
		return known, nil
	}
	lines, err := s.record.Outlines(folder)
	if err != nil {
		return nil, fmt.Errorf("the record of %s: %w", folder, err)
	}
	rest, err := s.record.Part(folder, func(string, string, bool) bool { return false })
	if err != nil {
		return nil, fmt.Errorf("the record of %s: %w", folder, err)
	}
	out := &recordedFolder{clusters: rest.Clusters}
	for _, l := range lines {
		out.assignments = append(out.assignments, Assignment(l))
	}
	slices.SortFunc(out.assignments,
		func(a, b Assignment) int { return strings.Compare(a.DeploymentTarget, b.DeploymentTarget) })
	for i := range rest.Entries {
		out.entries = append(out.entries,
			Cluster{Name: rest.Entries[i].Cluster, Folder: rest.Entries[i].Folder, Entry: true})
	}
	c.known[id] = out
	return out, nil
}

// Counts count the effects of a change on clusters, in pairs of a deployment target and a
// cluster.
type Counts struct {
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
	// Emptied are the clusters that are left without assignments.
	Emptied int `json:"emptied"`
}

// Counts counts the pairs, and the emptied clusters.
func (e *Effect) Counts() Counts {
	var c Counts
	for i := range e.Pairs {
		switch p := &e.Pairs[i]; {
		case p.Added():
			c.Added += p.Way.Count()
		case p.Removed():
			c.Removed += p.Way.Count()
		default:
			c.Changed += p.Way.Count()
		}
	}
	for _, w := range e.Ways {
		if w.Emptied {
			c.Emptied += len(w.Clusters)
		}
	}
	return c
}

// RemovedFrom returns the number of clusters that lose a pair. Each pair of a cluster type
// that lists none counts as one.
func (e *Effect) RemovedFrom() int {
	ways := map[*Way]bool{}
	unlisted := 0
	for i := range e.Pairs {
		switch p := &e.Pairs[i]; {
		case !p.Removed():
		case p.Way.Clusters == nil:
			unlisted++
		default:
			ways[p.Way] = true
		}
	}
	for w := range ways {
		unlisted += len(w.Clusters)
	}
	return unlisted
}

// String returns the counts as text, removals first: "19 removed, 7 added, 0 changed".
func (c Counts) String() string {
	text := fmt.Sprintf("%d removed, %d added, %d changed", c.Removed, c.Added, c.Changed)
	switch {
	case c.Emptied == 1:
		text += "; 1 cluster left empty"
	case c.Emptied > 1:
		text += fmt.Sprintf("; %d clusters left empty", c.Emptied)
	}
	return text
}
