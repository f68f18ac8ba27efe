package compare

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Clusters say which clusters differences concern. Clusters have the ids
// <environment>/<name>.
type Clusters struct {
	// Concerned is how many there are of which something differs: what they pull, or the
	// folder that they follow. Classes is how many folders these follow.
	Concerned int `json:"concerned"`
	Classes   int `json:"classes"`
	// Moves are the clusters that come, go, or follow another folder.
	Moves []Move `json:"moves"`
	// Changed are those whose entries differ in more than the folder that they name.
	Changed   []string `json:"changed"`
	Unchanged int      `json:"unchanged"` // all others, concerned or not
}

// Move is a cluster that follows another folder of its environment than before.
type Move struct {
	Cluster string `json:"cluster"`
	From    string `json:"from,omitempty"` // "" for one that comes
	To      string `json:"to,omitempty"`   // "" for one that goes
}

// pulling is a cluster that pulls the folder of its cluster type.
func pulling(environment, cluster, folder string) Folder {
	return Folder{Environment: environment, Cluster: cluster, Follows: folder, Tree: tree.TreeID(nil), Files: func() ([]backends.File, error) { return nil, nil }}
}

// key is the folder's id among those of an output, of whatever kind.
func (f *Folder) key() string { return string(f.of()) + " " + f.ID() }

// moved says whether the pair is a cluster that follows another folder than before, as far
// as that is known.
func (p pair) moved() bool {
	return p.before.Cluster != "" && p.before.Follows != "" && p.after.Follows != "" && p.before.Follows != p.after.Follows
}

// isMove says whether a change is nothing but another name of the folder that is followed.
func (p pair) isMove(c Change) bool {
	return c.Kind == Changed && strings.ReplaceAll(string(c.From), p.before.Follows, p.after.Follows) == string(c.To)
}

// countClusters counts clusters, whose pairs are sorted, once all other folders are counted.
// of says which clusters folders that changed concern.
func (r *Report) countClusters(clusters []pair, of concerned) {
	if len(clusters) == 0 {
		return
	}
	r.Clusters = &Clusters{Moves: []Move{}, Changed: []string{}}
	at, differs := map[string]int{}, map[string]bool{}
	for n := range r.Counts {
		c := &r.Counts[n]
		folder := c.Environment + "/" + c.ClusterType
		at[folder] = n
		own := outcome(cmp.Or(c.Own, string(unchanged)))
		differs[folder] = c.Added+c.Changed+c.Removed > 0 || own != unchanged
		if c.Added+c.Removed > 0 || own == added || own == removed {
			of[folder] = nil
		}
	}
	followed := map[string]bool{}
	for _, p := range clusters {
		is := cmp.Or(p.after, p.before)
		follows := is.Environment + "/" + is.Follows
		if n, known := at[follows]; known && p.after != nil {
			r.Counts[n].Clusters++
		}
		switch {
		case p.before == nil:
			r.Clusters.Moves = append(r.Clusters.Moves, Move{Cluster: is.ID(), To: is.Follows})
		case p.after == nil:
			r.Clusters.Moves = append(r.Clusters.Moves, Move{Cluster: is.ID(), From: is.Follows})
		case p.moved():
			r.Clusters.Moves = append(r.Clusters.Moves, Move{is.ID(), p.before.Follows, is.Follows})
		case p.before.Tree == p.after.Tree:
			r.Clusters.Unchanged++
			if !differs[follows] || !of.has(follows, is.Cluster) {
				continue
			}
		}
		r.Clusters.Concerned++
		followed[follows] = true
	}
	r.Clusters.Classes = len(followed)
}

// setChanged sets which clusters' entries differ, once their files are compared.
func (r *Report) setChanged() {
	changed := map[string]bool{}
	for i := range r.Groups {
		for _, id := range r.Groups[i].Clusters {
			changed[id] = true
		}
	}
	if r.Clusters != nil {
		r.Clusters.Changed = append(r.Clusters.Changed, slices.Sorted(maps.Keys(changed))...)
	}
}

// Way are clusters of an environment that move alike.
type Way struct {
	Environment string
	From, To    string   // as of Move
	Clusters    []string // their ids
}

// Ways returns the moves, those that are alike together, in the order of their first ones.
func (c *Clusters) Ways() []Way {
	if c == nil {
		return nil
	}
	var out []Way
	type alike struct{ environment, from, to string }
	at := map[alike]int{}
	for _, m := range c.Moves {
		k := alike{environmentOf(m.Cluster), m.From, m.To}
		n, known := at[k]
		if !known {
			n = len(out)
			at[k], out = n, append(out, Way{Environment: k.environment, From: m.From, To: m.To})
		}
		out[n].Clusters = append(out[n].Clusters, m.Cluster)
	}
	return out
}

// moves writes which clusters come, go, or follow another folder.
func (t *textWriter) moves(c *Clusters) {
	for _, w := range ordered(t, c.Ways(), func(w Way) string { return w.Environment }) {
		sign, folders := byte('~'), printable(w.From)+" -> "+printable(w.To)
		switch {
		case w.From == "":
			sign, folders = '+', printable(w.To)
		case w.To == "":
			sign, folders = '-', printable(w.From)
		}
		which := "cluster " + printable(w.Clusters[0])
		if n := len(w.Clusters); n > 1 {
			which = counted(n, "cluster", "clusters")
		}
		t.line("", sign, which+": "+folders)
		t.some(w.Clusters)
	}
}
