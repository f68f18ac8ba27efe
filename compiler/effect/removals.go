package effect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits bound the removals of one change from an environment, according to
// environments.X.removals. Numbers count pairs of a deployment target and a cluster, or
// clusters. Percentages are of the number before the change.
type Limits struct {
	Max string // a number or a percentage; "" for usualRemovals
	// Clusters are the clusters that may leave, by name. Their pairs are not counted.
	Clusters []string
	// Emptied is the number of listed clusters that may lose everything: a number, a
	// percentage, or "" for only the clusters of MayEmpty.
	Emptied  string
	MayEmpty []string
}

// leastRemovals is the number of assignments that may always be removed, from as many
// clusters, unless Max is zero. usualRemovals is the default of Max.
const (
	leastRemovals = 3
	usualRemovals = "25%"
)

// Removals count the removals of a change, and have the limits on them.
type Removals struct {
	// Removed counts the pairs that listed clusters, and types that list none, lose. It
	// also counts the pairs that get another namespace in place of one that is removed.
	// Recorded counts all pairs before the change, and Most is the largest number of them
	// that may be removed.
	Removed  int `json:"removed"`
	Recorded int `json:"recorded"`
	Most     int `json:"most"`
	// On is the number of clusters with removed pairs, where a type that lists none counts
	// once for each pair. Assignments is the number of deployment targets of cluster types
	// with removed pairs. If both are at most Least, Most does not count.
	On          int  `json:"on"`
	Assignments int  `json:"assignments"`
	Least       int  `json:"least"`
	Empty       bool `json:"empties"` // nothing is left in the environment
	// Emptied counts the clusters that stay and lose everything, without the clusters of
	// Limits.MayEmpty.
	Emptied    int `json:"emptied"`
	MaxEmptied int `json:"mostEmptied"`
	// Clusters counts the clusters that are no longer listed, without Limits.Clusters.
	Clusters         int `json:"clusters,omitempty"`
	RecordedClusters int `json:"recordedClusters,omitempty"`
	MaxClusters      int `json:"mostClusters,omitempty"`

	// EmptiedNames are the names of the emptied clusters that count, sorted.
	EmptiedNames []string `json:"-"`
}

// Excess returns why the removals have to be allowed; "" if they need not be.
func (r Removals) Excess() string {
	if r.Empty {
		return fmt.Sprintf("all %d assignments are removed, and nothing is left", r.Recorded)
	}
	var reasons []string
	if r.Clusters > r.MaxClusters {
		reasons = append(reasons, fmt.Sprintf("%d of %d clusters are removed (limit: %d)", r.Clusters,
			r.RecordedClusters, r.MaxClusters))
	}
	if r.Emptied > r.MaxEmptied {
		which := "1 cluster is left empty: " + r.EmptiedNames[0]
		if r.Emptied > 1 {
			which = fmt.Sprintf("%d clusters are left empty: %s", r.Emptied,
				strings.Join(r.EmptiedNames[:min(3, r.Emptied)], ", "))
		}
		if r.Emptied > 3 {
			which += fmt.Sprintf(" and %d more", r.Emptied-3)
		}
		reasons = append(reasons, fmt.Sprintf("%s (limit: %d)", which, r.MaxEmptied))
	}
	if r.Removed > r.Most && max(r.On, r.Assignments) > r.Least {
		where := ""
		if r.On != r.Removed {
			where = fmt.Sprintf(" from %d clusters", r.On)
		}
		reasons = append(reasons, fmt.Sprintf("%d of %d assignments are removed%s (limit: %d)", r.Removed,
			r.Recorded, where, r.Most))
	}
	return strings.Join(reasons, "; ")
}

// Removals counts the removals of the effect. loses reports whether a pair that gets
// another namespace loses the former one, with everything in it.
func (e *Effect) Removals(l Limits, loses func(*Pair) bool) Removals {
	r := Removals{Recorded: e.Before, Empty: e.After == 0 && e.Before > 0}
	on, assignments, unlisted := map[string]bool{}, map[string]bool{}, 0
	for i := range e.Pairs {
		p := &e.Pairs[i]
		if p.Way.Leaves() || !p.Removed() && !(p.Renames() && loses(p)) {
			continue // clusters that leave are counted below
		}
		r.Removed += p.Way.Count()
		if p.Way.Clusters == nil {
			unlisted++
		}
		for _, name := range p.Way.Clusters {
			on[name] = true
		}
		assignments[p.ClusterType()+"/"+p.DeploymentTarget()] = true
	}
	for _, w := range e.Ways {
		if w.From != "" {
			r.RecordedClusters += len(w.Clusters)
		}
		for _, name := range w.Clusters {
			if w.Leaves() && !slices.Contains(l.Clusters, name) {
				r.Clusters++
			}
			if w.Emptied && !slices.Contains(l.MayEmpty, name) {
				r.EmptiedNames = append(r.EmptiedNames, name)
			}
		}
	}
	slices.Sort(r.EmptiedNames)
	r.On, r.Assignments, r.Emptied = len(on)+unlisted, len(assignments), len(r.EmptiedNames)
	limit := cmp.Or(l.Max, usualRemovals)
	if r.Least = leastRemovals; limit == "0" || limit == "0%" {
		r.Least = 0
	}
	r.Most, r.MaxEmptied = most(limit, r.Recorded), most(cmp.Or(l.Emptied, "0"), r.RecordedClusters)
	if r.MaxClusters = max(most(limit, r.RecordedClusters), r.Least); r.Clusters == 0 {
		r.RecordedClusters, r.MaxClusters = 0, 0
	}
	return r
}

// most returns the largest number that a limit allows. The limit is a number, or a
// percentage of the number of, rounded down.
func most(limit string, of int) int {
	if percent, ok := strings.CutSuffix(limit, "%"); ok {
		share, _ := strconv.ParseFloat(percent, 64) // the schema has checked it
		return int(share * float64(of) / 100)
	}
	n, _ := strconv.Atoi(limit)
	return n
}
