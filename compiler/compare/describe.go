package compare

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
)

// describe adds the differing values and objects to changed entries, and joins entries with the
// same differences on other clusters.
func (r *Report) describe(c *comparison) {
	values, objects := map[int][]Value{}, map[int][]string{}
	for i := range r.Groups {
		g := &r.Groups[i]
		name := g.File
		if g.Object != nil {
			name = g.Object.Kind + " " + g.Object.Name
		}
		of, isValue := valueOfConfig(g)
		for _, n := range g.jobs {
			if variable, is := c.jobs[n].variables[g.Path]; is {
				if g.Detail = g.Detail || variable == ""; variable != "" {
					values[n] = append(values[n], Value{variable, innerJSON(g.From), innerJSON(g.To)})
				}
			} else if isValue {
				values[n] = append(values[n], of)
			} else if !slices.Contains(objects[n], name) {
				objects[n] = append(objects[n], name)
			}
		}
	}
	alike := map[string]int{}
	var all []Entry
	for _, e := range r.Changed {
		n := e.jobs[0]
		namespace := "<namespace>"
		if n >= 0 && c.jobs[n].found != nil && c.jobs[n].found.namespace != "" {
			namespace = c.jobs[n].found.namespace
		}
		names := strings.NewReplacer("<environment>", e.Environment, "<clusterType>", e.ClusterType,
			"<deploymentTarget>", e.DeploymentTarget, "<namespace>", namespace)
		e.Values = nil
		for _, v := range values[n] {
			for _, text := range []*json.RawMessage{&v.From, &v.To} {
				if *text != nil {
					*text = json.RawMessage(names.Replace(string(*text)))
				}
			}
			e.Values = append(e.Values, v)
		}
		for _, name := range objects[n] {
			e.Objects = append(e.Objects, names.Replace(name))
		}
		slices.SortFunc(e.Values, func(a, b Value) int { return strings.Compare(a.Path, b.Path) })
		slices.Sort(e.Objects)
		text, _ := json.Marshal([]any{e.ID(), e.Values, e.Objects, e.Namespaces}) // of JSON
		if at, known := alike[string(text)]; known {
			all[at].sets, all[at].Count = append(all[at].sets, e.sets...), all[at].Count+e.Count
			continue
		}
		alike[string(text)] = len(all)
		all = append(all, e)
	}
	r.Changed = append([]Entry{}, all...)
	for _, list := range [][]Entry{r.Removed, r.Added, r.Changed} {
		slices.SortStableFunc(list, func(a, b Entry) int {
			return cmp.Or(strings.Compare(a.Environment, b.Environment),
				strings.Compare(a.ClusterType, b.ClusterType), strings.Compare(a.DeploymentTarget,
					b.DeploymentTarget), strings.Compare(first(&a), first(&b)))
		})
	}
	for _, f := range []*Folders{&r.Assignments, &r.ClusterTypes} {
		for _, ids := range []*[]string{&f.Added, &f.Removed, &f.Changed} {
			slices.SortFunc(*ids,
				func(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) })
			*ids = slices.Compact(*ids)
		}
	}
}

// innerJSON returns the JSON inside a JSON string, or the string itself if its text is not
// JSON.
func innerJSON(text json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(text, &s) != nil || !json.Valid([]byte(s)) {
		return text
	}
	return json.RawMessage(s)
}

// first returns the name of the first cluster of an entry. It returns "" if no clusters are
// listed.
func first(e *Entry) string {
	least := ""
	for _, s := range e.sets {
		if len(s.names) > 0 && (least == "" || s.names[0] < least) {
			least = s.names[0]
		}
	}
	return least
}

// Names returns the names of the entry's clusters, sorted. It returns nil if the cluster
// type lists none.
func (e *Entry) Names() []string { return namesIn(e.sets) }

func namesIn(sets []*clusterSet) []string {
	if len(sets) == 1 {
		return sets[0].names
	}
	var all []string
	for _, s := range sets {
		all = append(all, s.names...)
	}
	slices.Sort(all)
	return all
}

// valueOfConfig returns the value of the platform config that a group is of.
func valueOfConfig(g *Group) (v Value, is bool) {
	if !strings.HasPrefix(path.Base(g.File), "platform-config.") || g.Kind == Text || g.Kind == Mode ||
		g.Path == "" {
		return v, false
	}
	at := strings.TrimPrefix(g.Path, "data.")
	if _, within, embedded := strings.Cut(at, "#"); embedded {
		at = within
	}
	return Value{at, g.From, g.To}, true
}

// signatureOf identifies a folder, whatever the deployment target, its workload and its
// namespace are called.
func signatureOf(f *Folder, files map[string]backends.File) digest {
	h := sha256.New()
	names := []name{{f.Assignment, 't'}}
	if f.Info != nil {
		names = append(names, name{f.Info.Namespace, 'n'}, name{f.Info.Workload, 'w'})
	}
	names = slices.DeleteFunc(names, func(n name) bool { return n.text == "" })
	slices.SortStableFunc(names, func(a, b name) int { return cmp.Compare(len(b.text), len(a.text)) })
	for _, p := range slices.Sorted(maps.Keys(files)) {
		text := markNames(string(files[p].Data), names, false)
		fmt.Fprintf(h, "%d:%s%v%d:%s", len(p), p, files[p].Executable, len(text), text)
	}
	return digest(h.Sum(nil))
}

// findRenames finds the added entries with the content of a removed one on the same
// clusters, and another name.
func (r *Report) findRenames(c *comparison) {
	type place struct {
		id        string
		clusters  string
		signature digest
	}
	at := func(e *Entry) (p place, known bool) {
		if len(e.jobs) == 0 || e.jobs[0] < 0 {
			return p, false
		}
		return place{e.Environment + "/" + e.ClusterType, strings.Join(e.Names(), " "),
			c.jobs[e.jobs[0]].signature}, true
	}
	gone := map[place]*Entry{}
	for i := range r.Removed {
		if p, known := at(&r.Removed[i]); known {
			gone[p] = &r.Removed[i]
		}
	}
	for i := range r.Added {
		if p, known := at(&r.Added[i]); known && gone[p] != nil && gone[p].RenamedTo == "" {
			gone[p].RenamedTo, r.Added[i].RenamedFrom = r.Added[i].DeploymentTarget, gone[p].DeploymentTarget
		}
	}
}

// refer sets the lists of clusters: names if there are few, and references to sets if there
// are many.
func (r *Report) refer() {
	list := func(sets []*clusterSet) []string {
		count := 0
		for _, s := range sets {
			count += len(s.names)
		}
		if count <= inlineClusters {
			return namesIn(sets)
		}
		var out []string
		for _, s := range sets {
			if s.ref == "" {
				if r.ClusterSets == nil {
					r.ClusterSets = map[string][]string{}
				}
				s.ref = fmt.Sprintf("#%d", len(r.ClusterSets)+1)
				r.ClusterSets[s.ref] = s.names
			}
			out = append(out, s.ref)
		}
		return out
	}
	for _, entries := range [][]Entry{r.Removed, r.Added, r.Changed} {
		for i := range entries {
			entries[i].Clusters = list(entries[i].sets)
		}
	}
	if r.Clusters != nil {
		for i := range r.Clusters.Moved {
			m := &r.Clusters.Moved[i]
			m.Clusters = list([]*clusterSet{m.set})
		}
	}
}
