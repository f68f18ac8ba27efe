package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// lostType are the recorded clusters of a cluster type that errors hide, and that have no entries.
type lostType struct {
	clusters []string // sorted
	// facts are what the record says of the cluster type's clusters, and held says that the
	// cluster type stays as it is, because it says nothing.
	facts []tree.ClusterFacts
	held  bool
}

// lostClusters finds the clusters that the record lists and that errors hide, by cluster
// type. What a cluster type has for all of its clusters, an inventory or a list of
// destinations, would take away from them what they run. So they stay among its clusters as
// the record has them; where it does not say how they were, the cluster type stays as it is.
// The diagnostics of the errors are reported already; those of here say what they hold up.
func lostClusters(s *scope, out *reports) (map[string]*lostType, error) {
	if s.beside == nil && s.record != nil {
		s.beside = s.record.ClusterType
	}
	if s.beside == nil || !s.in.Model.HidesClusters() {
		return nil, nil
	}
	all := map[string]*lostType{}
	for n := range s.in.spans {
		ct := &s.in.Model.ClusterTypes[n]
		if !s.builds(ct.Name) || ct.Entries == model.ClusterEntries { // their entries stay
			continue
		}
		r, err := s.beside(ct.Name)
		if err != nil {
			return nil, err
		}
		if r == nil {
			continue
		}
		l := &lostType{facts: r.Facts}
		for _, name := range r.Clusters {
			if s.lost(ct.Name, name) {
				l.clusters = append(l.clusters, name)
			}
		}
		if len(l.clusters) == 0 {
			continue
		}
		all[ct.Name] = l
		if l.held = l.facts == nil; l.held {
			s.in.hold(n)
			out.add(s.lostOf(n, l.clusters))
			continue
		}
		s.addLost(ct, r, l.clusters)
		out.add(s.hides(ct, l.clusters,
			fmt.Sprintf("errors hide %%s of cluster type %s: the cluster type goes on with what is "+
				"recorded of that", ct.Name)))
		out.add(s.takesNew(n, r, l.clusters)...)
	}
	return all, nil
}

const clusters = "clusters"

// lost says whether errors may be why a recorded cluster is none of its type any more.
func (s *scope) lost(clusterType, cluster string) bool {
	if s.in.Model.Invalid[model.Ref{Collection: clusters, Name: cluster}] {
		return true
	}
	return (s.in.Model.Incomplete || s.in.Model.ClustersIncomplete) && s.in.Model.Cluster(cluster) == nil
}

// addLost adds clusters to those of a cluster type, as the record has them.
func (s *scope) addLost(ct *model.ClusterType, r *tree.ClusterTypeRecord, names []string) {
	all := slices.Clone(s.in.clusters[ct.Name])
	for _, name := range names {
		f := r.FactsOf(name)
		c := model.Cluster{Name: name, ClusterType: ct.TypeName(), Folder: ct.Name, Address: f.Address,
			Labels: f.Labels, Values: f.Values, Composed: f.Composed}
		text, _ := f.Encode() // as it was read
		c.Digest = model.DigestBytes(append([]byte("recorded "), text...))
		if n, there := slices.BinarySearchFunc(all, name,
			func(c model.Cluster, name string) int { return strings.Compare(c.Name, name) }); !there {
			all = slices.Insert(all, n, c)
		}
	}
	s.in.clusters[ct.Name] = all
}

// takesNew fails the assignments of a cluster type that take values from each cluster which
// they did not take by the record, and leaves these out: nothing is known of them on lost clusters.
func (s *scope) takesNew(n int, r *tree.ClusterTypeRecord, lost []string) (ds []diag.Diagnostic) {
	ct := &s.in.Model.ClusterTypes[n]
	before := map[string]map[string]bool{} // names of values by deployment target
	for i := range r.Facts {
		for target, values := range r.Facts[i].Composed {
			if before[target] == nil {
				before[target] = map[string]bool{}
			}
			for _, f := range values.Fields() {
				before[target][f.Name] = true
			}
		}
	}
	added := map[string]string{} // the first new value of a deployment target
	all := s.in.clusters[ct.Name]
	for i := range all {
		for target, values := range all[i].Composed {
			is := func(f model.Field) bool { return !before[target][f.Name] }
			n := slices.IndexFunc(values.Fields(), is)
			if n < 0 {
				continue
			}
			if name, found := added[target]; !found || values.Fields()[n].Name < name {
				added[target] = values.Fields()[n].Name
			}
			all[i].Composed = maps.Clone(all[i].Composed)
			all[i].Composed[target] = model.StructOf(slices.DeleteFunc(slices.Clone(values.Fields()), is)...)
			all[i].Digest = model.DigestBytes([]byte(string(all[i].Digest) + " without what is new in " + target))
		}
	}
	for _, target := range slices.Sorted(maps.Keys(added)) {
		i, assigned := s.in.Schedule.Index(ct.Name, target)
		if !assigned {
			continue
		}
		s.in.Plan.Failed[i] = true
		ds = append(ds, s.hides(ct, lost,
			fmt.Sprintf("errors hide %%s of cluster type %s, and %s takes a new value from each cluster: %s",
				ct.Name, target, added[target])).For(s.in.id(i)))
	}
	return ds
}

func (s *scope) lostOf(n int, names []string) diag.Diagnostic {
	ct := &s.in.Model.ClusterTypes[n]
	d := s.hides(ct, names, fmt.Sprintf("errors hide %%s of cluster type %s, which stays as it is, "+
		"because its record does not say what of single clusters is in its files", ct.Name))
	for i := s.in.spans[n].first; i < s.in.spans[n].next; i++ {
		d.Assignments = append(d.Assignments, s.in.id(i))
	}
	slices.Sort(d.Assignments)
	return d
}

// hides reports lost clusters; message has a place for them.
func (s *scope) hides(ct *model.ClusterType, names []string, message string) diag.Diagnostic {
	which, hint := "cluster "+names[0], "correct the errors of "+names[0]+", or remove it from the platform"
	if len(names) > 1 {
		which, hint = fmt.Sprintf("clusters %s and %d more", names[0], len(names)-1),
			"correct the errors of these clusters, or remove them from the platform"
	}
	d := diag.New(diag.LostCluster, fmt.Sprintf(message, which))
	for _, name := range names[:min(len(names), 3)] {
		d = d.At(model.Ref{Collection: clusters, Name: name}, "")
	}
	return d.On(ct.Ref().String()).Hinting(hint)
}

// holdsLost says whether a cluster type stays as it is because of clusters that errors hide.
func (s *scope) holdsLost(clusterType string) bool {
	l := s.lostClusters[clusterType]
	return l != nil && l.held
}

// facts returns what of the clusters of a type is in its files, as the record has it; nil where
// no cluster is listed, or where they have entries, which are recorded themselves.
func (s *scope) facts(ct *model.ClusterType) []tree.ClusterFacts {
	of, l := s.in.clusters[ct.Name], s.lostClusters[ct.Name]
	if l != nil && l.held {
		return l.facts
	}
	if len(of) == 0 || ct.Entries == model.ClusterEntries {
		return nil
	}
	out := make([]tree.ClusterFacts, 0, 1)
	b := s.in.backend(ct)
	if b == nil {
		return out
	}
	for i := range of {
		c := &of[i]
		f := tree.ClusterFacts{Cluster: c.Name, Values: c.Values, Composed: c.Composed, Kept: l.has(c.Name)}
		if b.Traits().Machines { // its inventory has more of them
			f.Address, f.Labels = c.Address, c.Labels
		}
		if !f.IsEmpty() {
			out = append(out, f)
		}
	}
	return out
}

// has says whether a cluster is lost; nil has none.
func (l *lostType) has(cluster string) bool {
	if l == nil {
		return false
	}
	_, found := slices.BinarySearch(l.clusters, cluster)
	return found
}
