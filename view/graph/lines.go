package graph

// An end of a line is a node. If the line replaces an edge of each node of a group, it is
// the group.
type end struct {
	group  bool
	number int
}

// line is the picture of an edge, or of several that are drawn as one.
type line struct {
	from, to    end
	kind, label string
	highlighted bool
}

// lines returns the lines of a graph, the highlighted ones last. If a node has the same
// edges with all nodes of a group, one line ends at the group. A highlighted edge has its
// own line too.
func lines(g *Graph, edges []ends) (out []line, bundled bool) {
	var own []line
	groups := numbers(g.Groups, func(of Group) string { return of.ID })
	groupOf, sizes := make([]int, len(g.Nodes)), make([]int, len(g.Groups))
	for i, n := range g.Nodes {
		groupOf[i] = -1
		if of, grouped := groups[n.Group]; grouped {
			groupOf[i] = of
			sizes[of]++
		}
	}
	counted := map[line]string{} // labels with counts, which lines at groups do not show
	for i, e := range g.Edges {
		l := line{end{number: edges[i].from}, end{number: edges[i].to}, e.Kind, e.Label, false}
		out = append(out, l)
		counted[l] = e.text()
		if l.highlighted = e.Highlighted; l.highlighted {
			own = append(own, l)
		}
	}
	for _, side := range []func(*line) (this, other *end){
		func(l *line) (*end, *end) { return &l.to, &l.from },
		func(l *line) (*end, *end) { return &l.from, &l.to },
	} {
		// atGroup returns the line with the node at this side replaced by its group.
		atGroup := func(l line) (line, int) {
			this, other := side(&l)
			if this.group {
				return l, 0
			}
			of := groupOf[this.number]
			if of < 0 || sizes[of] < 2 || !other.group && groupOf[other.number] == of {
				return l, 0
			}
			*this = end{true, of}
			return l, sizes[of]
		}
		counts := map[line]int{}
		for _, l := range out {
			at, _ := atGroup(l)
			counts[at]++
		}
		var next []line
		for _, l := range out {
			at, size := atGroup(l)
			switch {
			case size == 0 || counts[at] < size && counts[at] > 0:
				next = append(next, l)
			case counts[at] > 0:
				next = append(next, at)
				counts[at], bundled = 0, true
			}
		}
		out = next
	}
	for i, l := range out {
		if label, is := counted[l]; is {
			out[i].label = label
		}
	}
	return append(out, own...), bundled
}

// numbers returns the places of things by their ids.
func numbers[T any](all []T, id func(T) string) map[string]int {
	out := make(map[string]int, len(all))
	for i, item := range all {
		out[id(item)] = i
	}
	return out
}
