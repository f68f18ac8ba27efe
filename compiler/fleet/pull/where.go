package pull

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/fleet"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// division is the division of a file's rows by where of the inventory: the environment's
// own rows, and the rows of other environments, which stay as they are.
type division struct {
	inv         *model.Inventory
	filter      *fleet.Filter // nil if all rows are the environment's own
	own, others []row
	names       map[string]row    // others by the names of their clusters
	fixed       map[string]string // the columns that are the same in all own rows
}

func divide(inv *model.Inventory, filter *fleet.Filter, doc document) *division {
	d := &division{inv: inv, filter: filter, own: doc.rows()}
	if filter == nil {
		return d
	}
	d.own, d.fixed, d.names = nil, filter.Fixed(), map[string]row{}
	for _, r := range doc.rows() {
		if filter.Holds(r.cell) {
			d.own = append(d.own, r)
		} else {
			d.others, d.names[r.cell(inv.Columns.Name)] = append(d.others, r), r
		}
	}
	return d
}

// fixLabels sets the labels in fixed columns of clusters that lack them, so that a pull does
// not clear these columns.
func (d *division) fixLabels(clusters []Cluster) {
	for column, text := range d.fixed {
		label, isLabel := strings.CutPrefix(column, "labels.")
		isLabel = isLabel && d.inv.Columns.Labels == nil
		for name, at := range d.inv.Columns.Labels {
			if at == column {
				label, isLabel = name, true
			}
		}
		for i := range clusters {
			if c := &clusters[i]; isLabel && c.Labels[label] == "" {
				labels := map[string]string{}
				maps.Copy(labels, c.Labels)
				labels[label], c.Labels = text, labels
			}
		}
	}
}

// claim makes the row of a cluster a row of the environment, and adds the new texts to the
// change. It returns an error if the row cannot be one.
func (d *division) claim(r row, change *Change) error {
	if d.filter == nil {
		return nil
	}
	if change.Change == "added" {
		if other := d.names[change.Cluster]; other != nil {
			return fmt.Errorf("cluster %s is in line %d, in a row that does not satisfy where of "+
				"inventory %s, %s: leave the cluster out with --selector, or correct the row",
				change.Cluster, other.lineNumber(), d.inv.Name, d.inv.Where)
		}
		for _, column := range slices.Sorted(maps.Keys(d.fixed)) {
			if text := d.fixed[column]; r.cell(column) == "" {
				if err := r.set(column, text); err != nil {
					return fmt.Errorf("%s of cluster %s: %w", column, change.Cluster, err)
				}
				change.Fields = append(change.Fields, Field{Name: column, After: text})
			}
		}
		slices.SortFunc(change.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	}
	if !d.filter.Holds(r.cell) {
		return fmt.Errorf("the row of cluster %s would not satisfy where of inventory %s, %s: leave "+
			"the cluster out with --selector, or first write a row for it that satisfies where",
			change.Cluster, d.inv.Name, d.inv.Where)
	}
	return nil
}

// join returns own rows with the rows of other environments, sorted by name. The order does not
// depend on the environment that is pulled.
func (d *division) join(own []row) []row {
	if len(d.others) == 0 {
		return own
	}
	all := append(own, d.others...)
	slices.SortStableFunc(all, func(a, b row) int {
		return cmp.Or(strings.Compare(a.cell(d.inv.Columns.Name), b.cell(d.inv.Columns.Name)),
			cmp.Compare(a.lineNumber(), b.lineNumber()))
	})
	return all
}
