// Package effect computes the effect of a change of an environment's tree on its clusters.
//
// Its input is two Sides: the folders of a tree, the content of each, and the folder that
// each cluster follows. Its output is an Effect: the pairs of a deployment target and a
// cluster that are added, removed and changed. A class of clusters is only how their
// folders are stored. So if a cluster changes its class, the contents of both folders are
// compared. A cluster type that lists no clusters counts as one cluster.
//
// For example: a policy takes till from store st-07 of 20. Its class gets a folder
// store.no-till without till, and st-07 follows that instead of store. Nineteen clusters go
// from store to store, and one goes from store to store.no-till. The pair (till, st-07) is
// removed. No pair is added, although a folder with seven assignments is new.
//
// All counts of a change use these pairs: bounds and gates, summaries, plans, pages and the
// audit. The package reads no files; package compare finds the differing values and objects
// of changed pairs.
//
// In the hello-world example, suppose that dev gets another GREETING. The cluster type drone lists
// no clusters, so it has one Way from drone to drone, with a count of 1. Compare returns a Pair of
// this way for hello-world-functional-test: Before and After have different Trees, so it is
// changed. Counts of the Effect returns 5 changed pairs, one for each assignment of dev.
package effect

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Assignment is a deployment target in a folder.
type Assignment struct {
	DeploymentTarget string  // the full name
	Namespace        string  // "" if it is not known
	Tree             tree.ID // of its files
}

// Cluster is a listed cluster, and the folder that it follows; "" if that is unknown. Entry
// reports that it follows the folder through an entry of its own. Without the entry, it has
// nothing.
type Cluster struct {
	Name, Folder string
	Entry        bool
	// OnlyListed reports that the cluster has its folder's contents only while it is
	// listed, like the machines of an inventory.
	OnlyListed bool
}

// Side is an environment before or after a change.
type Side struct {
	// Folders has the number of assignments of each folder, of a cluster type or of a class
	// of one, by name.
	Folders  map[string]int
	Clusters []Cluster // sorted by name, without duplicates
	// Assigned returns the assignments of a folder, sorted by deployment target. It is
	// called only for folders of Folders.
	Assigned func(folder string) ([]Assignment, error)
}

// Way are the clusters that go from one folder to another; both are often the same.
type Way struct {
	From, To string // "" for clusters that come or go
	// Clusters are their names, sorted; nil if the cluster type lists no clusters.
	Clusters []string
	// Emptied reports that listed clusters stay, had assignments and have none left.
	Emptied bool
}

// Count returns the number of clusters that go the way. It returns 1 for a cluster type
// that lists none.
func (w *Way) Count() int { return max(1, len(w.Clusters)) }

// Moves reports whether listed clusters follow a different folder than before.
func (w *Way) Moves() bool { return w.Clusters != nil && w.From != w.To }

// Leaves reports whether the clusters of the way are no longer listed.
func (w *Way) Leaves() bool { return w.Clusters != nil && w.To == "" }

// ClusterType returns the cluster type of the way's end, or of its beginning if it has no
// end.
func (w *Way) ClusterType() string { return model.TypeOfFolder(cmp.Or(w.To, w.From)) }

// Pair is a deployment target on the clusters of a way. One side is nil if the pair is
// added or removed.
type Pair struct {
	Way           *Way
	Before, After *Assignment
}

// DeploymentTarget returns the full name of the deployment target.
func (p *Pair) DeploymentTarget() string { return cmp.Or(p.After, p.Before).DeploymentTarget }

// ClusterType returns the cluster type of the pair, before the change if the pair is
// removed.
func (p *Pair) ClusterType() string {
	if p.Removed() {
		return model.TypeOfFolder(p.Way.From)
	}
	return p.Way.ClusterType()
}

// Added reports whether the clusters have the pair only after the change.
func (p *Pair) Added() bool { return p.Before == nil }

// Removed reports whether the clusters have the pair only before the change.
func (p *Pair) Removed() bool { return p.After == nil }

// Changed reports whether the clusters have the pair on both sides, with different
// files.
func (p *Pair) Changed() bool { return p.Before != nil && p.After != nil }

// Renames reports whether the pair gets another namespace. The former namespace is removed,
// with its objects.
func (p *Pair) Renames() bool {
	return p.Changed() && p.Before.Namespace != p.After.Namespace && p.Before.Namespace != "" &&
		p.After.Namespace != ""
}

// Effect is the change of the clusters of an environment.
type Effect struct {
	// Pairs are the added, removed and changed pairs, sorted by cluster type and deployment
	// target, and then by way.
	Pairs []Pair
	// Before and After count all pairs of each side, each cluster for itself.
	Before, After int
	// Ways are all ways, sorted by the folders that they lead to and come from.
	Ways []*Way
	// Unchanged counts the pairs that stay as they are.
	Unchanged int
}

// Compare compares two sides. same reports that both have equal assignments in the folder with a
// name. Compare does not read such a folder unless clusters move to it or from it. same may be
// nil. The error is the first one of Assigned.
func Compare(before, after *Side, same func(folder string) bool) (*Effect, error) {
	e := &Effect{Ways: ways(before, after)}
	read := [2]map[string][]Assignment{{}, {}}
	assigned := func(side int, folder string) ([]Assignment, error) {
		of := [2]*Side{before, after}[side]
		if _, has := of.Folders[folder]; !has {
			return nil, nil
		}
		list, known := read[side][folder]
		if known {
			return list, nil
		}
		list, err := of.Assigned(folder)
		read[side][folder] = list
		return list, err
	}
	for _, w := range e.Ways {
		count := w.Count()
		had, has := before.Folders[w.From], after.Folders[w.To]
		e.Before, e.After = e.Before+had*count, e.After+has*count
		w.Emptied = w.Clusters != nil && w.To != "" && had > 0 && has == 0
		if w.From == w.To && same != nil && same(w.From) {
			e.Unchanged += had * count
			continue
		}
		was, err := assigned(0, w.From)
		if err != nil {
			return nil, err
		}
		is, err := assigned(1, w.To)
		if err != nil {
			return nil, err
		}
		for len(was)+len(is) > 0 {
			p := Pair{Way: w}
			switch {
			case len(is) == 0 || len(was) > 0 && was[0].DeploymentTarget < is[0].DeploymentTarget:
				p.Before, was = &was[0], was[1:]
			case len(was) == 0 || is[0].DeploymentTarget < was[0].DeploymentTarget:
				p.After, is = &is[0], is[1:]
			default:
				p.Before, p.After, was, is = &was[0], &is[0], was[1:], is[1:]
				if p.Before.Tree == p.After.Tree {
					e.Unchanged += count
					continue
				}
			}
			e.Pairs = append(e.Pairs, p)
		}
	}
	slices.SortStableFunc(e.Pairs, func(a, b Pair) int {
		return cmp.Or(strings.Compare(a.ClusterType(), b.ClusterType()),
			strings.Compare(a.DeploymentTarget(), b.DeploymentTarget()))
	})
	return e, nil
}

// ways returns the ways of all clusters, and of the cluster types that list none, sorted by
// the folders that they lead to and come from.
//
// If a cluster type lists its clusters on only one side, it has the same clusters on the
// other. They pulled the type's folder before they were listed, or still pull it. Clusters
// that pull entries are the exception.
func ways(before, after *Side) []*Way {
	sides := [2]*Side{before, after}
	var lists [2]map[string]bool // cluster types, and whether they list clusters
	for n, s := range sides {
		lists[n] = map[string]bool{}
		for i := range s.Clusters {
			lists[n][model.TypeOfFolder(s.Clusters[i].Folder)] = true
		}
	}
	// the folder of a cluster on the side that does not list it
	unlisted := func(side int, c Cluster) string {
		clusterType := model.TypeOfFolder(c.Folder)
		if c.OnlyListed || side == 1 && c.Entry {
			return ""
		}
		if _, has := sides[side].Folders[clusterType]; has && !lists[side][clusterType] {
			return clusterType
		}
		return ""
	}
	type ends struct{ from, to string }
	all := map[ends]*Way{}
	add := func(from, to, cluster string) {
		w := all[ends{from, to}]
		if w == nil {
			w = &Way{From: from, To: to}
			all[ends{from, to}] = w
		}
		w.Clusters = append(w.Clusters, cluster)
	}
	for a, b := before.Clusters, after.Clusters; len(a)+len(b) > 0; {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			add(a[0].Folder, unlisted(1, a[0]), a[0].Name)
			a = a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			add(unlisted(0, b[0]), b[0].Folder, b[0].Name)
			b = b[1:]
		default:
			add(a[0].Folder, b[0].Folder, a[0].Name)
			a, b = a[1:], b[1:]
		}
	}
	taken := map[string]bool{} // cluster types that clusters leave
	for of := range all {
		taken[model.TypeOfFolder(of.from)] = true
	}
	stay := staying(before, after, lists, taken)
	for n, s := range sides {
		for folder := range s.Folders {
			clusterType := model.TypeOfFolder(folder)
			if folder != clusterType || lists[0][clusterType] || lists[1][clusterType] &&
				(!stay[clusterType] || n == 1) {
				continue // a class is of listed clusters
			}
			w := &Way{From: folder, To: folder}
			if _, both := sides[1-n].Folders[folder]; !both {
				if n == 0 {
					w.To = ""
				} else {
					w.From = ""
				}
			}
			all[ends{w.From, w.To}] = w
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *Way) int {
		return cmp.Or(strings.Compare(a.To, b.To), strings.Compare(a.From, b.From))
	})
}

// staying returns the cluster types that list clusters only after the change and keep their
// unlisted clusters: every listed cluster came from another type. Machines and clusters with
// entries of their own run nothing unless they are listed, so their types do not keep any.
func staying(before, after *Side, lists [2]map[string]bool, taken map[string]bool) map[string]bool {
	stay := map[string]bool{}
	for folder := range before.Folders {
		clusterType := model.TypeOfFolder(folder)
		stay[clusterType] = !lists[0][clusterType] && lists[1][clusterType] && !taken[clusterType]
	}
	for i := range after.Clusters {
		if c := &after.Clusters[i]; c.OnlyListed || c.Entry {
			delete(stay, model.TypeOfFolder(c.Folder))
		}
	}
	return stay
}
