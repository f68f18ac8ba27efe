package state

import (
	"cmp"
	"slices"
	"strings"
)

// Filter selects the assignments on clusters that match all of its fields. "" and nil match any
// value.
type Filter struct {
	Environments                                                           Environments
	Ring, ClusterType, Cluster, Workload, Workspace, Target, Version, Base string
	// Class is the folder that clusters have: <clusterType>.<class>, or the cluster type for the
	// clusters without a class.
	Class  string
	States []State
}

// Dimension is a property by which counts are grouped.
type Dimension string

// The dimensions.
const (
	ByEnvironment Dimension = "environment"
	ByRing        Dimension = "ring"
	ByClusterType Dimension = "clusterType"
	ByCluster     Dimension = "cluster"
	ByWorkload    Dimension = "workload"
	ByWorkspace   Dimension = "workspace"
	ByTarget      Dimension = "deploymentTarget"
	ByVersion     Dimension = "version"
	ByBase        Dimension = "base"
)

// Dimensions returns all dimensions.
func Dimensions() []Dimension {
	return []Dimension{ByEnvironment, ByRing, ByClusterType, ByCluster, ByWorkload, ByWorkspace,
		ByTarget, ByVersion, ByBase}
}

// Group is the tally of the assignments with the same values.
type Group struct {
	Values []string // of each dimension
	Tally  Tally
}

// Count counts assignments on clusters by at most three dimensions. Groups are in the order of
// environments, then by value. Count ignores the states of the filter.
func (f *Fleet) Count(filter Filter, by ...Dimension) []Group {
	f.mu.RLock()
	defer f.mu.RUnlock()
	groups := map[[3]string]*Tally{}
	order := map[string]int{}
	for i, name := range f.names {
		order[name] = i
		e := f.environments[name]
		if e == nil || !filter.Environments.Has(name) {
			continue
		}
		if filter.Cluster != "" || slices.Contains(by, ByCluster) {
			e.countClusters(filter, by, groups)
			continue
		}
		for _, fo := range e.folders {
			if !filter.folder(fo) {
				continue
			}
			for t := range fo.Targets {
				if !filter.target(&fo.Targets[t]) {
					continue
				}
				k := fo.key(name, "", t, by)
				if groups[k] == nil {
					groups[k] = &Tally{}
				}
				groups[k].Add(&fo.tallies[t])
			}
		}
	}
	out := make([]Group, 0, len(groups))
	for k, tally := range groups {
		out = append(out, Group{slices.Clone(k[:len(by)]), *tally})
	}
	slices.SortFunc(out, func(a, b Group) int {
		for i := range a.Values {
			c := strings.Compare(a.Values[i], b.Values[i])
			if by[i] == ByEnvironment {
				c = cmp.Compare(order[a.Values[i]], order[b.Values[i]])
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	return out
}

// countClusters counts cluster by cluster, which takes longer than adding up the tallies.
func (e *environment) countClusters(filter Filter, by []Dimension, groups map[[3]string]*Tally) {
	clusters := e.clusters
	if filter.Cluster != "" {
		c := e.byClust[filter.Cluster]
		if c == nil {
			return
		}
		clusters = []*cluster{c}
	}
	var last [3]string
	var tally *Tally
	for _, c := range clusters {
		if !filter.folder(c.folder) {
			continue
		}
		for t := range c.pairs {
			if !filter.target(&c.folder.Targets[t]) {
				continue
			}
			// Mostly, the group is the same as for the assignment before.
			if k := c.folder.key(e.wanted.Environment, c.name, t, by); tally == nil || k != last {
				if last, tally = k, groups[k]; tally == nil {
					tally = &Tally{}
					groups[k] = tally
				}
			}
			tally[c.pairs[t].state]++
		}
	}
}

func (f Filter) folder(fo *folder) bool {
	return (f.Ring == "" || f.Ring == fo.Ring) && (f.ClusterType == "" ||
		f.ClusterType == fo.ClusterType) && (f.Class == "" || f.Class == fo.Name) &&
		(f.Base == "" || f.Base == fo.Base)
}

func (f Filter) target(t *Target) bool {
	return (f.Workload == "" || f.Workload == t.Workload) &&
		(f.Workspace == "" || f.Workspace == t.Workspace) &&
		(f.Target == "" || f.Target == t.Name) && (f.Version == "" || f.Version == t.Version)
}

func (fo *folder) key(environment, cluster string, target int, by []Dimension) (k [3]string) {
	t := &fo.Targets[target]
	for i, d := range by {
		switch d {
		case ByEnvironment:
			k[i] = environment
		case ByRing:
			k[i] = fo.Ring
		case ByClusterType:
			k[i] = fo.ClusterType
		case ByCluster:
			k[i] = cluster
		case ByWorkload:
			k[i] = t.Workload
		case ByWorkspace:
			k[i] = t.Workspace
		case ByTarget:
			k[i] = t.Name
		case ByVersion:
			k[i] = t.Version
		case ByBase:
			k[i] = fo.Base
		}
	}
	return k
}

// List calls f with the assignments on clusters that a filter selects, after a position, sorted
// by environment, cluster and deployment target, until f returns false. The zero Position is
// before all. f is called with the Fleet locked.
func (f *Fleet) List(filter Filter, after Position, yield func(Row) bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.list(filter, after, yield)
}

// Len returns how many assignments on clusters List lists. If the platform does not list the
// clusters of a type, Len is more than the total of Count.
func (f *Fleet) Len(filter Filter) (n int) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	states := filter.states()
	for name, e := range f.environments {
		if !filter.Environments.Has(name) {
			continue
		}
		for _, fo := range e.folders {
			for i := range fo.Targets {
				if filter.folder(fo) && filter.target(&fo.Targets[i]) {
					n += fo.len(i, filter.Cluster, states)
				}
			}
		}
	}
	return n
}

// len counts the clusters, all or one, on which a target is in one of some states.
func (fo *folder) len(target int, cluster string, states uint16) (n int) {
	if fo.Listed && cluster == "" {
		for s, count := range fo.tallies[target] {
			n += count * int(states>>s&1)
		}
		return n
	}
	for _, c := range fo.clusters {
		if cluster == "" || c.name == cluster {
			n += int(states >> c.pairs[target].state & 1)
		}
	}
	return n
}

// states returns a bit for each selected state.
func (filter *Filter) states() (out uint16) {
	if len(filter.States) == 0 {
		return 1<<numStates - 1
	}
	for _, s := range filter.States {
		out |= 1 << s
	}
	return out
}

// Rollout is List for one environment. It returns the commit of the GitOps branch that wants the
// listed assignments, or "" if there is no commit.
func (f *Fleet) Rollout(filter Filter, after Position, yield func(Row) bool) (commit string) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.list(filter, after, yield)
	if len(filter.Environments) != 1 {
		return ""
	}
	if e := f.environments[filter.Environments[0]]; e != nil && len(e.wanted.Commits) > 0 {
		commit = e.wanted.Commits[0].ID
	}
	return commit
}

func (f *Fleet) list(filter Filter, after Position, yield func(Row) bool) {
	states := filter.states()
	from := max(slices.Index(f.names, after.Environment), 0)
	for _, name := range f.names[min(from, len(f.names)):] {
		e := f.environments[name]
		if e == nil || !filter.Environments.Has(name) {
			continue
		}
		begin := 0
		if name == after.Environment {
			begin, _ = slices.BinarySearchFunc(e.clusters, after.Cluster,
				func(c *cluster, name string) int { return strings.Compare(c.name, name) })
		}
		clusters := e.clusters[begin:]
		if filter.Cluster != "" {
			clusters = nil
			if c := e.byClust[filter.Cluster]; c != nil {
				clusters = []*cluster{c}
			}
		}
		for _, c := range clusters {
			if c.states&states == 0 || !filter.folder(c.folder) {
				continue
			}
			for i := range c.pairs {
				if states>>c.pairs[i].state&1 == 0 || !filter.target(&c.folder.Targets[i]) {
					continue
				}
				at := Position{name, c.name, c.folder.Targets[i].Name}
				if name == after.Environment && at.compare(after) <= 0 {
					continue
				}
				if !yield(e.row(c, i, &c.pairs[i])) {
					return
				}
			}
		}
	}
}

// Folders counts the assignments in each folder of an environment, by the folder's name.
func (f *Fleet) Folders(environment string) map[string]Tally {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := map[string]Tally{}
	if e := f.environments[environment]; e != nil {
		for _, fo := range e.folders {
			var sum Tally
			for i := range fo.tallies {
				sum.Add(&fo.tallies[i])
			}
			out[fo.Name] = sum
		}
	}
	return out
}

// Environments returns the wanted state of each environment, in the order of promotion. It does not
// copy the folders and clusters, and the caller must not change it.
func (f *Fleet) Environments() []*DesiredState {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var out []*DesiredState
	for _, name := range f.names {
		if e := f.environments[name]; e != nil {
			out = append(out, e.wanted)
		}
	}
	return out
}

// Part has the values that assignments counted together share.
type Part struct{ Environment, Ring, ClusterType, Workload, Version, Base string }

// SelectedBy reports whether a filter selects all of a part, by the fields that a part has.
func (p *Part) SelectedBy(f Filter) bool {
	return f.Environments.Has(p.Environment) && (f.Ring == "" || f.Ring == p.Ring) &&
		(f.ClusterType == "" || f.ClusterType == p.ClusterType) &&
		(f.Workload == "" || f.Workload == p.Workload) && (f.Version == "" || f.Version == p.Version) &&
		(f.Base == "" || f.Base == p.Base)
}

// Parts counts all assignments on clusters, by part.
func (f *Fleet) Parts() map[Part]Tally {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := map[Part]Tally{}
	for name, e := range f.environments {
		for _, fo := range e.folders {
			for i := range fo.Targets {
				p := Part{name, fo.Ring, fo.ClusterType, fo.Targets[i].Workload, fo.Targets[i].Version, fo.Base}
				t := out[p]
				t.Add(&fo.tallies[i])
				out[p] = t
			}
		}
	}
	return out
}
