package graph

import (
	"math"
	"slices"
)

// stack puts the units of each column one below the other, with all columns centred.
func (l *layout) stack() {
	for _, column := range l.columns {
		height := 0
		for i, u := range column {
			height += u.h + gapBelow(column, i)
		}
		y := -height / 2
		for i, u := range column {
			u.y = y
			l.placeNodes(u)
			y += u.h + gapBelow(column, i)
		}
	}
}

// gapBelow returns the space below a unit of a column.
func gapBelow(column []*unit, i int) int {
	switch {
	case i == len(column)-1:
		return 0
	case len(column[i].columns) == 0 && len(column[i+1].columns) == 0:
		return 1 // between lanes
	}
	return unitGap
}

// placeNodes sets the places of a unit's nodes, relative to the place of the unit.
func (l *layout) placeNodes(u *unit) {
	left, top := u.x, u.y
	if u.group >= 0 {
		left, top = left+groupPad, top+groupHead
	}
	for _, column := range u.columns {
		y, width := top, 0
		for row := range slices.Chunk(column, max(u.beside, 1)) {
			x := left
			for _, n := range row {
				l.nodes[n].x, l.nodes[n].y = x, y
				x += l.nodes[n].w + wrapGap
			}
			y, width = y+l.rowHeight(row)+rowGap, max(width, l.nodes[row[0]].w)
		}
		left += width + innerGap
	}
}

// align moves the units of each column, in their order, towards the other ends of their
// lines.
func (l *layout) align() {
	for range sweeps {
		for _, column := range l.columns {
			l.alignColumn(column)
		}
	}
	top, bottom := math.MaxInt, 0
	for _, u := range slices.Concat(l.columns...) {
		top = min(top, u.y)
	}
	for _, u := range slices.Concat(l.columns...) {
		u.y -= top
		bottom = max(bottom, u.y+u.h)
		l.placeNodes(u)
		if u.group >= 0 {
			l.groups[u.group] = u.box
		}
	}
	l.height = bottom
}

// alignColumn moves each unit as near as possible to its preferred place, in the sense of
// least squares, without overlaps. This is isotonic regression, by pooling adjacent
// violators.
func (l *layout) alignColumn(column []*unit) {
	type block struct {
		sum   float64
		units int
	}
	var blocks []block
	offset := 0
	for i, u := range column {
		wanted := float64(u.y) + l.mean(u.box, l.unitEnds(u, true, true)) - float64(u.middle())
		blocks = append(blocks, block{wanted - float64(offset), 1})
		offset += u.h + gapBelow(column, i)
		for n := len(blocks) - 1; n > 0 &&
			blocks[n-1].sum/float64(blocks[n-1].units) > blocks[n].sum/float64(blocks[n].units); n-- {
			blocks[n-1].sum += blocks[n].sum
			blocks[n-1].units += blocks[n].units
			blocks = blocks[:n]
		}
	}
	offset, n := 0, 0
	for _, b := range blocks {
		y := int(math.Round(b.sum / float64(b.units)))
		for last := n + b.units; n < last; n++ {
			u := column[n]
			u.y = y + offset
			offset += u.h + gapBelow(column, n)
			l.placeNodes(u)
		}
	}
}
