package compare

import (
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/effect"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// report makes the report of the environments, once all jobs have run.
func (c *comparison) report(g groups) *Report {
	r := newReport()
	for _, e := range c.environments {
		c.add(r, e)
	}
	r.Groups = g.list(c, func(j *job) []string { return j.found.clustersOf(j.pair.Way) })
	r.describe(c)
	r.findRenames(c)
	r.refer()
	return r
}

// clustersOf returns the names of a way's clusters on which a changed pair really differs. If files
// have parts for single clusters, these are the clusters with a differing part. It returns nil if
// it does not differ, or if no clusters are listed.
func (c *changes) clustersOf(w *effect.Way) []string {
	if c.of == nil {
		return w.Clusters
	}
	var out []string
	for _, name := range w.Clusters {
		if c.of[name] {
			out = append(out, name)
		}
	}
	return out
}

// result is the difference of an environment, while it is counted.
type result struct {
	*environmentEffect
	report    *Report
	comparing *comparison
	sets      map[*effect.Way]*clusterSet
	// ends are the added and removed entries by cluster type, deployment target and kind.
	ends    map[string]*Entry
	changed []*Entry
	counts  map[string]*Counts // by cluster type
	// touched has the clusters of changed pairs, and added the clusters of added pairs, by
	// cluster type and deployment target.
	touched, added map[string][]*clusterSet
	concerned      map[string]bool       // names of clusters
	taken          map[valueAt]valuePart // the parts of single clusters' values that folders use
}

// result returns the result of an environment before anything is counted.
func (c *comparison) result(r *Report, e *environmentEffect) *result {
	return &result{
		environmentEffect: e, report: r, comparing: c,
		sets: map[*effect.Way]*clusterSet{}, ends: map[string]*Entry{}, counts: map[string]*Counts{},
		touched: map[string][]*clusterSet{}, added: map[string][]*clusterSet{},
		concerned: map[string]bool{}, taken: map[valueAt]valuePart{},
	}
}

// add adds an environment to the report: pairs, values of single clusters, cluster types'
// own files, and clusters.
func (c *comparison) add(r *Report, e *environmentEffect) {
	out := c.result(r, e)
	for i := range e.Pairs {
		out.pair(&e.Pairs[i], e.jobs[i])
	}
	for _, n := range e.own {
		j := &c.jobs[n]
		out.ownFiles(j)
		var names []string
		for _, f := range e.after.clusters {
			if f.Follows == j.after.ClusterType && j.found.of[f.Cluster] {
				names = append(names, f.Cluster)
			}
		}
		out.attribute(n, j.after.ClusterType, names)
	}
	for _, n := range e.entries {
		if j := &c.jobs[n]; len(j.attributed) > 0 {
			out.attribute(n, j.after.Follows, []string{j.after.Cluster})
			out.concerned[j.after.Cluster] = true
		}
	}
	out.list()
	out.clusterTypes()
	out.clusters()
}

// OfEffect returns the report on an effect without reading files. It has the removed and
// added pairs, the pairs whose namespace is replaced, as Changed, and the emptied clusters.
// It omits other changed pairs, since only files show the values of single clusters, and
// cluster types.
func OfEffect(environment string, e *effect.Effect) *Report {
	r := newReport()
	if e == nil {
		return r
	}
	out := (&comparison{}).result(r,
		&environmentEffect{name: environment, before: &side{}, after: &side{}, Effect: e})
	for i := range e.Pairs {
		if p := &e.Pairs[i]; !p.Changed() || p.Renames() {
			out.pair(p, -1)
		}
	}
	out.list()
	if slices.ContainsFunc(e.Ways, func(w *effect.Way) bool { return w.Clusters != nil }) {
		r.Clusters = &Clusters{Emptied: []string{}, Unlisted: []string{}, Listed: []string{},
			Moved: []Move{}}
		out.listClusters()
	}
	r.describe(&comparison{})
	r.refer()
	return r
}

// set returns the clusters of a way, the same for all of its pairs.
func (out *result) set(w *effect.Way) *clusterSet {
	if out.sets[w] == nil {
		out.sets[w] = &clusterSet{names: w.Clusters}
	}
	return out.sets[w]
}

// count returns the counts of a cluster type.
func (out *result) count(clusterType string) *Counts {
	if out.counts[clusterType] == nil {
		out.counts[clusterType] = &Counts{Environment: out.name, ClusterType: clusterType}
	}
	return out.counts[clusterType]
}

// pair counts a pair of the effect. Its job has the number n, or n is -1.
func (out *result) pair(p *effect.Pair, n int) {
	var j *job
	if n >= 0 {
		j = &out.comparing.jobs[n]
	}
	set := out.set(p.Way)
	if p.Changed() && j != nil && j.found.of != nil && p.Way.Clusters != nil {
		if set = (&clusterSet{names: j.found.clustersOf(p.Way)}); len(set.names) == 0 {
			return
		}
	}
	number := max(1, len(set.names))
	entry := &Entry{Environment: out.name, ClusterType: p.ClusterType(),
		DeploymentTarget: p.DeploymentTarget()}
	counts := out.count(entry.ClusterType)
	key := entry.ClusterType + "/" + entry.DeploymentTarget
	switch {
	case p.Changed():
		out.changed, out.touched[key] = append(out.changed, entry), append(out.touched[key], set)
		counts.Changed += number
	case p.Added():
		entry, out.added[key] = ends(out.ends, "+"+key, entry), append(out.added[key], set)
		counts.Added += number
	default:
		entry = ends(out.ends, "-"+key, entry)
		counts.Removed += number
	}
	entry.kind, entry.Count, entry.sets, entry.jobs = kindOf(p), entry.Count+number,
		append(entry.sets, set), append(entry.jobs, n)
	for _, name := range set.names {
		out.concerned[name] = true
	}
	if j == nil { // its files are not read
		if p.Renames() {
			entry.Namespaces = []string{p.Before.Namespace}
		}
		return
	}
	if _, known := out.report.objects[out.name]; !known {
		out.report.objects[out.name] = newObjects()
	}
	for _, to := range []Objects{out.report.Objects, out.report.objects[out.name]} {
		for _, of := range []struct{ to, from map[string]int }{{to.Created, j.objects.created},
			{to.Updated, j.objects.updated}, {to.Deleted, j.objects.deleted}} {
			for kind, count := range of.from {
				of.to[kind] += count * number
			}
		}
		if more := max(0, j.objects.claims-j.objects.deleted["PersistentVolumeClaim"]); more > 0 {
			to.Deleted["PersistentVolumeClaim"] += more * number
		}
	}
	union := func(list *[]string, more []string) {
		*list = slices.Compact(slices.Sorted(slices.Values(slices.Concat(*list, more))))
	}
	union(&entry.Namespaces, j.objects.namespaces)
	union(&entry.CustomResourceDefinitions, j.objects.definitions)
	entry.PersistentVolumeClaims = max(entry.PersistentVolumeClaims, j.objects.claims)
	entry.CustomResources = max(entry.CustomResources, j.objects.custom)
}

func kindOf(p *effect.Pair) Kind {
	switch {
	case p.Added():
		return Added
	case p.Removed():
		return Removed
	}
	return Changed
}

// ends returns the entry with a key. If the map has no such entry, ends adds the given
// entry.
func ends(in map[string]*Entry, key string, entry *Entry) *Entry {
	if in[key] == nil {
		in[key] = entry
	}
	return in[key]
}

// attribute counts the pairs of the named clusters that change because job n has other
// values for them. It counts only pairs in a folder that are not counted yet.
func (out *result) attribute(n int, folder string, names []string) {
	j := &out.comparing.jobs[n]
	if len(names) == 0 || len(j.attributed) == 0 {
		return
	}
	clusterType := model.TypeOfFolder(folder)
	for _, f := range out.after.assigned[folder] {
		if !j.takes(f, out.taken) {
			continue
		}
		key := clusterType + "/" + f.Assignment
		in := func(sets []*clusterSet, name string) bool {
			return slices.ContainsFunc(sets,
				func(s *clusterSet) bool { _, has := slices.BinarySearch(s.names, name); return has })
		}
		var rest, counted []string
		for _, name := range names {
			switch {
			case in(out.touched[key], name):
				counted = append(counted, name)
			case !in(out.added[key], name):
				rest = append(rest, name)
			}
		}
		if len(counted) > 0 { // they have other values too
			out.add(clusterType, f.Assignment, n, &clusterSet{names: counted}, 0)
		}
		if len(rest) == 0 {
			continue
		}
		set := &clusterSet{names: rest}
		out.touched[key] = append(out.touched[key], set)
		out.add(clusterType, f.Assignment, n, set, len(rest))
		out.count(clusterType).Changed += len(rest)
		for _, name := range rest {
			out.concerned[name] = true
		}
	}
}

// add adds an entry of clusters that have other values because of job n. The entry counts
// count of these clusters.
func (out *result) add(clusterType, target string, n int, set *clusterSet, count int) {
	out.changed = append(out.changed, &Entry{Environment: out.name, ClusterType: clusterType,
		DeploymentTarget: target, Count: count, kind: Changed, sets: []*clusterSet{set}, jobs: []int{n}})
}

// ownFiles notes the clusters that a cluster type's own files concern, unless the files differ
// only in details: text for people, or objects that apply an assignment.
func (out *result) ownFiles(j *job) {
	if j.found.detail {
		return
	}
	for _, f := range out.after.clusters {
		if f.Follows == j.after.ClusterType && (j.found.of == nil || j.found.of[f.Cluster]) {
			out.concerned[f.Cluster] = true
		}
	}
}

// list adds each entry to the report's list of its kind.
func (out *result) list() {
	r := out.report
	for _, e := range slices.Concat(slices.Collect(maps.Values(out.ends)), out.changed) {
		list, ids, total := &r.Changed, &r.Assignments.Changed, &r.Total.Changed
		switch e.kind {
		case Added:
			list, ids, total = &r.Added, &r.Assignments.Added, &r.Total.Added
		case Removed:
			list, ids, total = &r.Removed, &r.Assignments.Removed, &r.Total.Removed
		}
		*list, *ids, *total = append(*list, *e), append(*ids, e.ID()), *total+e.Count
	}
}

// clusterTypes counts the cluster types of the environment, and the differences of their
// own files.
func (out *result) clusterTypes() {
	for _, w := range out.Ways {
		c := out.count(w.ClusterType())
		c.Unchanged += out.after.number(w.To) * w.Count()
		c.Lists = c.Lists || w.Clusters != nil
	}
	types := [2]map[string]bool{{}, {}}
	for n, s := range []*side{out.before, out.after} {
		for _, f := range s.own {
			types[n][model.TypeOfFolder(f.ClusterType)] = true
			out.count(model.TypeOfFolder(f.ClusterType))
		}
	}
	differs, serious := map[string]bool{}, map[string]bool{}
	for _, n := range out.own {
		name := model.TypeOfFolder(out.comparing.jobs[n].after.ClusterType)
		differs[name], serious[name] = true, serious[name] || !out.comparing.jobs[n].found.detail
	}
	for _, f := range out.after.clusters {
		if f.Follows != "" {
			out.count(model.TypeOfFolder(f.Follows)).Clusters++
		}
	}
	r := out.report
	for _, name := range slices.Sorted(maps.Keys(out.counts)) {
		c := out.counts[name]
		c.Unchanged -= c.Added + c.Changed
		r.Assignments.Unchanged += c.Unchanged
		id := out.name + "/" + name
		switch had, has := types[0][name], types[1][name]; {
		case had && !has:
			c.Own, r.ClusterTypes.Removed = string(removed), append(r.ClusterTypes.Removed, id)
		case !had && has:
			c.Own, r.ClusterTypes.Added = string(added), append(r.ClusterTypes.Added, id)
		case differs[name]:
			c.Own, c.detail, r.ClusterTypes.Changed = string(changed), !serious[name],
				append(r.ClusterTypes.Changed, id)
		case has:
			c.Own = string(unchanged)
			r.ClusterTypes.Unchanged++
		}
		r.Counts = append(r.Counts, *c)
	}
}

// number returns the number of assignments of a folder.
func (s *side) number(folder string) int { return s.same[folder] + len(s.assigned[folder]) }

// clusters counts the listed clusters of the environment.
func (out *result) clusters() {
	if len(out.before.clusters)+len(out.after.clusters) == 0 {
		return
	}
	if out.report.Clusters == nil {
		out.report.Clusters = &Clusters{Emptied: []string{}, Unlisted: []string{}, Listed: []string{},
			Moved: []Move{}}
	}
	all := out.listClusters()
	c := out.report.Clusters
	c.Concerned += len(out.concerned)
	out.report.concerned[out.name] = len(out.concerned)
	c.Unchanged += all - len(out.concerned)
}

// listClusters lists the emptied, new, unlisted and moved clusters. It returns the number of
// all clusters.
func (out *result) listClusters() (all int) {
	c := out.report.Clusters
	ids := func(list *[]string, w *effect.Way) {
		for _, name := range w.Clusters {
			*list = append(*list, out.name+"/"+name)
		}
	}
	for _, w := range out.Ways {
		all += len(w.Clusters)
		if w.Emptied {
			ids(&c.Emptied, w)
		}
		if !w.Moves() {
			continue
		}
		switch {
		case w.From == "":
			ids(&c.Listed, w)
		case w.To == "":
			ids(&c.Unlisted, w)
		}
		if w.From == "" || w.To == "" {
			for _, name := range w.Clusters {
				out.concerned[name] = true
			}
		}
		c.Moved = append(c.Moved,
			Move{Environment: out.name, From: w.From, To: w.To, Count: len(w.Clusters), set: out.set(w)})
	}
	for _, list := range [][]string{c.Emptied, c.Listed, c.Unlisted} {
		slices.Sort(list)
	}
	return all
}
