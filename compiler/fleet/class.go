package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// clusterSelector is the selector of clusters of a policy, of its except, of a config or of
// a config schema.
type clusterSelector struct {
	name     string    // in the form of model.SelectorOf
	at       model.Ref // its place in the platform
	selector *model.Selector
	types    map[string]bool // the cluster types whose clusters it may distinguish
}

// classify puts each cluster into its class. It replaces each cluster type with entries for
// its clusters by one for each class that has clusters. A class is the set of selectors
// that hold for its clusters, so it does not depend on other clusters. If a cluster type
// has one folder for all clusters, and they are of several classes, it is an error, and is
// in Split.
func (r *reader) classify() {
	types := newTypes(r.env, r.satisfies)
	selectors := types.selectors()
	class := r.classes(selectors)
	used := map[string]map[int]bool{} // classes, by cluster type
	for n := range r.fleet.Clusters {
		of := r.fleet.Clusters[n].ClusterType
		if used[of] == nil {
			used[of] = map[int]bool{}
		}
		used[of][class.of[n]] = true
	}
	folders := map[string]map[int]string{}
	for i := range r.env.ClusterTypes {
		folders[r.env.ClusterTypes[i].Name] = r.foldersOf(&r.env.ClusterTypes[i],
			used[r.env.ClusterTypes[i].Name], class, selectors)
	}
	slices.SortFunc(r.fleet.ClusterTypes,
		func(a, b model.ClusterType) int { return strings.Compare(a.Name, b.Name) })
	for n := range r.fleet.Clusters {
		c := &r.fleet.Clusters[n]
		c.Folder = folders[c.ClusterType][class.of[n]]
	}
}

// foldersOf adds the classes of a cluster type to the fleet, and returns the name of the
// folder of each.
func (r *reader) foldersOf(ct *model.ClusterType, used map[int]bool, class *classes,
	selectors []clusterSelector) map[int]string {
	all := make([]int, 0, len(used))
	for k := range used {
		all = append(all, k)
	}
	slices.Sort(all)
	names := map[int]string{}
	if ct.Entries != model.ClusterEntries {
		if len(all) > 1 {
			r.fleet.Split = append(r.fleet.Split, ct.Name)
			r.diagnostics = append(r.diagnostics, r.split(ct, all, class, selectors))
		}
		whole := *ct
		if len(all) == 1 {
			whole.SelectedBy = class.names(all[0], selectors)
		}
		r.fleet.ClusterTypes = append(r.fleet.ClusterTypes, whole)
		for _, k := range all {
			names[k] = ct.Name
		}
		return names
	}
	if len(all) == 0 {
		all = []int{0}
	}
	for _, k := range all {
		of := *ct
		of.SelectedBy = class.names(k, selectors)
		if of.Class = model.ClassOf(of.SelectedBy); of.Class != "" {
			of.Name += "." + of.Class
		}
		names[k] = of.Name
		r.fleet.ClusterTypes = append(r.fleet.ClusterTypes, of)
	}
	return names
}

// classes are the sets of selectors that hold for clusters, by number; 0 is the empty set.
type classes struct {
	of []int // by the cluster's number
	// sets are the classes: each another one with one more selector, by its number.
	sets []struct{ before, selector int }
}

// classes finds the selectors that hold for each cluster, selector by selector. Each
// selector splits every class into the clusters for which it holds, and the others. Of
// clusters that selectors cannot distinguish, only one is checked.
func (r *reader) classes(selectors []clusterSelector) *classes {
	c := &classes{of: make([]int, len(r.fleet.Clusters)),
		sets: make([]struct{ before, selector int }, 1)}
	if len(selectors) == 0 {
		return c
	}
	asked := map[string]bool{}
	for i := range selectors {
		selectors[i].selector.AddKeys(asked)
	}
	alike := alikeOf(r.fleet.Clusters, asked)
	index := selector.NewIndex(r.factsOfClusters(alike.first, asked), r.satisfies)
	class := make([]int, len(alike.first))
	for s := range selectors {
		next := map[int]int{} // the class with the selector, by that without it
		for _, n := range index.Select(*selectors[s].selector) {
			if !selectors[s].types[r.fleet.Clusters[alike.first[n]].ClusterType] {
				continue
			}
			k, known := next[class[n]]
			if !known {
				k = len(c.sets)
				c.sets = append(c.sets, struct{ before, selector int }{class[n], s})
				next[class[n]] = k
			}
			class[n] = k
		}
	}
	for n, of := range alike.of {
		c.of[n] = class[of]
	}
	return c
}

// alike groups clusters with the same cluster type and the same values of some labels.
type alike struct {
	of    []int32 // by the cluster's number
	first []int   // the number of the first cluster of each group
}

// alikeOf groups the clusters that selectors with the asked keys cannot distinguish. If they ask
// for names, each cluster is a group.
func alikeOf(clusters []model.Cluster, asked map[string]bool) *alike {
	a, known := &alike{of: make([]int32, len(clusters))}, map[string]int32{}
	labels, key := slices.Sorted(maps.Keys(asked)), []byte(nil)
	for n := range clusters {
		key = appendPart(key[:0], clusters[n].ClusterType)
		for _, name := range labels {
			value, there := clusters[n].Labels[name]
			key = strconv.AppendBool(appendPart(key, value), there)
		}
		of, there := known[string(key)]
		if !there || asked["name"] {
			of = int32(len(a.first))
			a.first, known[string(key)] = append(a.first, n), of
		}
		a.of[n] = of
	}
	return a
}

// names returns the names of the selectors of a class, sorted, as selectors are.
func (c *classes) names(class int, selectors []clusterSelector) []string {
	var out []string
	for ; class != 0; class = c.sets[class].before {
		out = append(out, selectors[c.sets[class].selector].name)
	}
	slices.Reverse(out)
	return out
}

// factsOfClusters yields the facts of clusters, by their numbers, that selectors use. It
// yields the same maps each time. A cluster's own labels override the labels of its cluster
// type.
func (r *reader) factsOfClusters(clusters []int,
	asked map[string]bool) func(yield func(selector.Facts) bool) {
	types := map[string]map[string]string{}
	for i := range r.env.ClusterTypes {
		types[r.env.ClusterTypes[i].Name] = r.env.ClusterTypes[i].Labels
	}
	return func(yield func(selector.Facts) bool) {
		labels := selector.Facts{}
		facts := selector.Facts{"labels": selector.Struct(labels)}
		for _, n := range clusters {
			c := &r.fleet.Clusters[n]
			clear(labels)
			for _, of := range []map[string]string{types[c.ClusterType], c.Labels} {
				for k, v := range of {
					if asked[k] {
						labels[k] = selector.Values(v)
					}
				}
			}
			if asked["name"] {
				facts["name"] = selector.Values(c.Name)
			}
			if !yield(facts) {
				return
			}
		}
	}
}

// types finds the cluster types whose clusters a selector of clusters may distinguish.
// These are the cluster types to which the selector's entity can apply.
type types struct {
	env       *model.Environment
	satisfies selector.Satisfier
	index     *selector.Index
}

func newTypes(env *model.Environment, satisfies selector.Satisfier) *types {
	return &types{env, satisfies, selector.NewIndex(func(yield func(selector.Facts) bool) {
		for i := range env.ClusterTypes {
			if ct := &env.ClusterTypes[i]; !yield(selector.Facts{"name": selector.Values(ct.Name),
				"labels": selector.Labels(ct.Labels)}) {
				return
			}
		}
	}, satisfies)}
}

// selectors returns the selectors of clusters of the environment, sorted by name.
func (t *types) selectors() []clusterSelector {
	var out []clusterSelector
	for _, s := range t.env.ClusterSelectors() {
		of := clusterSelector{name: model.SelectorOf(s.Of), at: s.Of.At("clusters"), selector: s.Selector}
		if s.Match != nil {
			of.types = t.matchedBy(*s.Match)
		} else {
			of.types = t.selectedBy(*s.ClusterTypes)
		}
		out = append(out, of)
	}
	slices.SortFunc(out, func(a, b clusterSelector) int { return strings.Compare(a.name, b.name) })
	return out
}

func (t *types) selectedBy(s model.Selector) map[string]bool {
	out := map[string]bool{}
	for _, n := range t.index.Select(s) {
		out[t.env.ClusterTypes[n].Name] = true
	}
	return out
}

// matchedBy returns the cluster types for which a match can hold.
func (t *types) matchedBy(match model.Selector) map[string]bool {
	out := map[string]bool{}
	for i := range t.env.ClusterTypes {
		if name := t.env.ClusterTypes[i].Name; selector.MayHold(match, "clusterType", name, t.satisfies) {
			out[name] = true
		}
	}
	return out
}

// split reports a cluster type whose clusters are of several classes and have one folder.
func (r *reader) split(ct *model.ClusterType, all []int, class *classes,
	selectors []clusterSelector) diag.Diagnostic {
	sizes := map[int]int{}
	for n := range r.fleet.Clusters {
		if r.fleet.Clusters[n].ClusterType == ct.Name {
			sizes[class.of[n]]++
		}
	}
	// A selector distinguishes the clusters if it does not hold for all of them.
	holds, total := map[string]int{}, 0
	for _, k := range all {
		total += sizes[k]
		for _, name := range class.names(k, selectors) {
			holds[name] += sizes[k]
		}
	}
	d := diag.New(diag.SplitClusterType,
		fmt.Sprintf("the %d clusters of cluster type %s are of %d classes, and pull one folder", total,
			ct.Name, len(all))).
		At(ct.Ref(), "").On(ct.Ref().At("entries").String())
	for i := range selectors {
		if n := holds[selectors[i].name]; n > 0 && n < total && len(d.Sites) < 6 {
			d = d.At(selectors[i].at, fmt.Sprintf("holds for %d of them", n))
		}
	}
	return d.Hinting(
		`let each cluster pull an entry of its own: entries: "cluster" on the cluster type; then print what each of them needs with kalypso bootstrap cluster, and apply it there; where its reconciler can have no entries, give clusters that differ a cluster type of their own`)
}
