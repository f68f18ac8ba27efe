package schedule

import "slices"

// components returns the strongly connected components of a graph, each after the
// components to which it has edges. It uses Tarjan's algorithm (Depth-first search and
// linear graph algorithms, SIAM J. Comput. 1, 1972). Nodes are positions in edges; the
// nodes of a component are ascending.
func components(edges [][]int) [][]int {
	t := tarjan{edges: edges, index: make([]int, len(edges)), low: make([]int, len(edges)),
		onStack: make([]bool, len(edges))}
	for n := range edges {
		if t.index[n] == 0 {
			t.visit(n)
		}
	}
	return t.found
}

type tarjan struct {
	edges      [][]int
	index, low []int // from 1 in the order of visits; 0 before it
	visits     int
	stack      []int
	onStack    []bool
	found      [][]int
}

func (t *tarjan) visit(n int) {
	t.visits++
	t.index[n], t.low[n] = t.visits, t.visits
	t.stack = append(t.stack, n)
	t.onStack[n] = true
	for _, m := range t.edges[n] {
		if t.index[m] == 0 {
			t.visit(m)
			t.low[n] = min(t.low[n], t.low[m])
		} else if t.onStack[m] {
			t.low[n] = min(t.low[n], t.index[m])
		}
	}
	if t.low[n] != t.index[n] {
		return
	}
	var component []int
	for m := -1; m != n; {
		m = t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.onStack[m] = false
		component = append(component, m)
	}
	slices.Sort(component)
	t.found = append(t.found, component)
}
