package graph

import (
	"cmp"
	"slices"
)

// Sizes, in pixels.
const (
	cell       = 7  // the width of a letter of a label
	smallCell  = 6  // of a detail
	lineHeight = 15 // of a detail
	nodeHeight = 28 // without details
	nodePad    = 8  // left and right of a node's text
	markWidth  = 18 // of the text before the label
	groupPad   = 8  // between a group's frame and its nodes
	groupHead  = 26 // above them
	rowGap     = 8  // between nodes
	unitGap    = 16 // between groups
	innerGap   = 40 // between columns of a group
	columnGap  = 110
	laneHeight = 6    // of lines that pass through a column
	wrapGap    = 24   // between nodes beside each other
	tallest    = 1200 // of a column, before its groups have nodes beside each other
	maxWide    = 4    // nodes beside each other

	maxCells   = 32 // of a label
	maxDetails = 48 // cells of a detail
	sweeps     = 12
)

// box is a rectangle.
type box struct{ x, y, w, h int }

func (b box) middle() int { return b.y + b.h/2 }

// unit is the smallest part of a layout: a group with its nodes, a node without a group, or a
// lane, through which lines cross a column without nodes.
type unit struct {
	box
	group   int     // may be -1
	least   int     // how wide it is at least
	columns [][]int // nodes, from left to right
	beside  int     // how many nodes of its only column are beside each other
	ends    []ends  // of the edges that pass through a lane
}

// ends are the nodes that an edge is between.
type ends struct{ from, to int }

// layout has the positions of all parts. Edges go from left to right: a node is to the right
// of all nodes with an edge to it, except for edges that close a circle.
type layout struct {
	nodes   []box // by number
	groups  []box // by number; zero for groups without nodes
	width   int
	height  int
	lanes   map[ends][]*unit // by the units that the lines are between
	unitOf  []int            // by node
	units   []*unit
	columns [][]*unit
	before  [][]int // by node, the nodes with an edge to it
	after   [][]int
}

// layOut lays out a graph by its layers (Sugiyama, Tagawa and Toda, Methods for visual
// understanding of hierarchical system structures, 1981): of groups first, and within each of
// its nodes.
func layOut(g *Graph, edges []ends) *layout {
	l := &layout{nodes: make([]box, len(g.Nodes)), groups: make([]box, len(g.Groups)),
		unitOf: make([]int, len(g.Nodes)), lanes: map[ends][]*unit{}}
	l.before, l.after = make([][]int, len(g.Nodes)), make([][]int, len(g.Nodes))
	for _, e := range edges {
		l.before[e.to], l.after[e.from] = append(l.before[e.to], e.from), append(l.after[e.from], e.to)
	}
	least := l.makeUnits(g)
	l.fill(g, edges)
	l.arrange(edges, least)
	// Set the sizes of units and of their nodes, and the places of columns.
	x := 0
	for _, column := range l.columns {
		width, height := 0, 0
		for _, u := range column {
			l.sizeUnit(u)
			height += u.h + unitGap
		}
		for _, u := range column {
			if beside := min(height/tallest+1, maxWide); len(u.columns) == 1 && beside > 1 {
				u.beside = min(beside, len(u.columns[0]))
				l.sizeUnit(u)
			}
			width = max(width, u.w)
		}
		for _, u := range column {
			u.x = x
			l.widen(u, width)
		}
		x += width + columnGap
	}
	l.width = max(x-columnGap, 0)
	l.order()
	l.align()
	return l
}

// makeUnits makes the units, and returns their ranks.
func (l *layout) makeUnits(g *Graph) (ranks []int) {
	ofGroup := map[string]int{}
	for i, group := range g.Groups {
		ofGroup[group.ID] = len(l.units)
		l.units = append(l.units,
			&unit{group: i, least: cell*cells(cut(group.Label, maxCells)) + 2*groupPad})
		ranks = append(ranks, group.Rank)
	}
	for i, n := range g.Nodes {
		u, grouped := ofGroup[n.Group]
		if !grouped {
			u = len(l.units)
			l.units = append(l.units, &unit{group: -1})
			ranks = append(ranks, 0)
		}
		l.unitOf[i] = u
		w := markWidth + cell*cells(cut(n.Label, maxCells))
		for _, d := range details(n) {
			w = max(w, smallCell*cells(cut(d, maxDetails)))
		}
		l.nodes[i] = box{w: w + 2*nodePad, h: nodeHeight + lineHeight*len(details(n))}
	}
	return ranks
}

// fill puts the nodes into the columns of their units.
func (l *layout) fill(g *Graph, edges []ends) {
	inner := make([][]ends, len(l.units))
	for _, e := range edges {
		if u := l.unitOf[e.from]; u == l.unitOf[e.to] {
			inner[u] = append(inner[u], e)
		}
	}
	nodes := make([][]int, len(l.units))
	number := make([]int, len(g.Nodes)) // in its unit
	for i, u := range l.unitOf {
		number[i] = len(nodes[u])
		nodes[u] = append(nodes[u], i)
	}
	for u, of := range nodes {
		for i, e := range inner[u] {
			inner[u][i] = ends{number[e.from], number[e.to]}
		}
		for i, layer := range layers(make([]int, len(of)), inner[u]) {
			for len(l.units[u].columns) <= layer {
				l.units[u].columns = append(l.units[u].columns, nil)
			}
			l.units[u].columns[layer] = append(l.units[u].columns[layer], of[i])
		}
	}
}

// layers returns the layer of each node: the maximum number of edges on a path to it. The layer is
// not below the node's number in least. Edges that close a circle do not count.
func layers(least []int, edges []ends) []int {
	next := make([][]int, len(least))
	for _, e := range edges {
		next[e.from] = append(next[e.from], e.to)
	}
	const open, done = 1, 2
	state := make([]int, len(least))
	var order []int // each node after all nodes that it has edges to
	var visit func(n int)
	visit = func(n int) {
		state[n] = open
		next[n] = slices.DeleteFunc(next[n], func(to int) bool {
			if state[to] == 0 {
				visit(to)
			}
			return state[to] == open
		})
		state[n] = done
		order = append(order, n)
	}
	for n := range least {
		if state[n] == 0 {
			visit(n)
		}
	}
	for _, n := range slices.Backward(order) {
		for _, to := range next[n] {
			least[to] = max(least[to], least[n]+1)
		}
	}
	return least
}

// arrange puts the units into columns, with lanes for the lines that pass through others.
func (l *layout) arrange(edges []ends, ranks []int) {
	between := map[ends][]ends{}
	var outer []ends
	for _, e := range edges {
		of := ends{l.unitOf[e.from], l.unitOf[e.to]}
		if of.from == of.to {
			continue
		}
		if between[of] == nil {
			outer = append(outer, of)
		}
		between[of] = append(between[of], e)
	}
	layer := layers(ranks, outer)
	used := slices.Compact(slices.Sorted(slices.Values(layer)))
	for n := range layer {
		layer[n], _ = slices.BinarySearch(used, layer[n]) // no column is empty
	}
	l.columns = make([][]*unit, len(used))
	for n, u := range l.units {
		if len(u.columns) > 0 {
			l.columns[layer[n]] = append(l.columns[layer[n]], u)
		}
	}
	for _, of := range outer {
		first, last := min(layer[of.from], layer[of.to]), max(layer[of.from], layer[of.to])
		for c := first + 1; c < last; c++ {
			lane := &unit{box: box{h: laneHeight}, group: -1, ends: between[of]}
			l.lanes[of] = append(l.lanes[of], lane)
			l.columns[c] = append(l.columns[c], lane)
		}
		if layer[of.from] > layer[of.to] {
			slices.Reverse(l.lanes[of])
		}
	}
	l.columns = slices.DeleteFunc(l.columns, func(c []*unit) bool { return len(c) == 0 })
}

// sizeUnit sets the size of a unit for its nodes.
func (l *layout) sizeUnit(u *unit) {
	if len(u.columns) == 0 {
		return // a lane
	}
	u.box = box{}
	for _, column := range u.columns {
		width, height := 0, -rowGap
		for _, n := range column {
			width = max(width, l.nodes[n].w)
		}
		for row := range slices.Chunk(column, max(u.beside, 1)) {
			height += l.rowHeight(row) + rowGap
		}
		for _, n := range column {
			l.nodes[n].w = width
		}
		u.w, u.h = u.w+width+innerGap, max(u.h, height)
	}
	u.w -= innerGap
	if u.beside > 1 {
		u.w = u.beside*(u.w+wrapGap) - wrapGap
	}
	if u.group >= 0 {
		u.w, u.h = u.w+2*groupPad, u.h+groupHead+groupPad
		l.widen(u, max(u.w, u.least))
	}
}

func (l *layout) rowHeight(row []int) (height int) {
	for _, n := range row {
		height = max(height, l.nodes[n].h)
	}
	return height
}

// widen sets the width of a unit, and of its last nodes beside each other, to the width of
// its column.
func (l *layout) widen(u *unit, width int) {
	if len(u.columns) > 0 {
		last := u.columns[len(u.columns)-1]
		for _, n := range last {
			l.nodes[n].w += (width - u.w) / max(u.beside, 1)
		}
	}
	u.w = width
}

// order orders units and nodes so that lines are short and seldom cross: each moves to the
// mean position of its neighbours on one side, and then on the other.
func (l *layout) order() {
	l.stack()
	best, shortest := l.ordering(), l.length()
	for n := range sweeps {
		left := n%2 == 0
		columns := slices.Clone(l.columns)
		if !left {
			slices.Reverse(columns)
		}
		for _, column := range columns {
			for _, u := range column {
				for _, nodes := range u.columns {
					sortBy(nodes, func(n int) float64 { return l.mean(l.nodes[n], l.nodeEnds(n, left, !left)) })
				}
				l.placeNodes(u)
			}
			sortBy(column, func(u *unit) float64 { return l.mean(u.box, l.unitEnds(u, left, !left)) })
			l.stack()
		}
		if length := l.length(); length < shortest {
			best, shortest = l.ordering(), length
		}
	}
	l.columns = best.columns
	for u, columns := range best.nodes {
		u.columns = columns
	}
	l.stack()
}

// sortBy sorts by numbers. Elements with equal numbers keep their order.
func sortBy[T any](all []T, of func(T) float64) {
	type keyed struct {
		item T
		key  float64
	}
	keys := make([]keyed, len(all))
	for i, item := range all {
		keys[i] = keyed{item, of(item)}
	}
	slices.SortStableFunc(keys, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	for i := range keys {
		all[i] = keys[i].item
	}
}

// ordering is an order of everything.
type ordering struct {
	columns [][]*unit
	nodes   map[*unit][][]int
}

func (l *layout) ordering() ordering {
	s := ordering{nodes: map[*unit][][]int{}}
	for _, column := range l.columns {
		s.columns = append(s.columns, slices.Clone(column))
		for _, u := range column {
			for _, nodes := range u.columns {
				s.nodes[u] = append(s.nodes[u], slices.Clone(nodes))
			}
		}
	}
	return s
}

// nodeEnds returns the nodes with edges to a node, from it, or both.
func (l *layout) nodeEnds(n int, before, after bool) (out []int) {
	if before {
		out = append(out, l.before[n]...)
	}
	if after {
		out = append(out, l.after[n]...)
	}
	return out
}

// unitEnds returns the nodes elsewhere with edges to nodes of a unit, from them, or both.
func (l *layout) unitEnds(u *unit, before, after bool) (out []int) {
	for _, e := range u.ends {
		if before {
			out = append(out, e.from)
		}
		if after {
			out = append(out, e.to)
		}
	}
	for _, column := range u.columns {
		for _, n := range column {
			for _, other := range l.nodeEnds(n, before, after) {
				if l.units[l.unitOf[other]] != u {
					out = append(out, other)
				}
			}
		}
	}
	return out
}

// mean returns the mean position of nodes, or the box's position if there are no nodes.
func (l *layout) mean(of box, nodes []int) float64 {
	if len(nodes) == 0 {
		return float64(of.middle())
	}
	sum := 0
	for _, n := range nodes {
		sum += l.nodes[n].middle()
	}
	return float64(sum) / float64(len(nodes))
}

// length returns how far all lines go up or down.
func (l *layout) length() (sum int) {
	for from, all := range l.after {
		for _, to := range all {
			d := l.nodes[from].middle() - l.nodes[to].middle()
			sum += max(d, -d)
		}
	}
	return sum
}
