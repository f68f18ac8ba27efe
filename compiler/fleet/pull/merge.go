package pull

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/fleet"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// Difference is the change that a pull makes in an inventory. Its JSON is a result of the
// command.
type Difference struct {
	Inventory string `json:"inventory"`
	File      string `json:"file"` // from the platform's root
	// Clusters differ, sorted by name.
	Clusters []Change `json:"clusters"`
}

// Change is the change that a pull makes to a cluster.
type Change struct {
	Cluster string  `json:"cluster"`
	Change  string  `json:"change"` // added, changed or removed
	Fields  []Field `json:"fields"` // of added and changed ones, sorted by name
}

// Field is a field of a cluster, such as address or labels.region.
type Field struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// document is the content of an inventory's file: the parts that a pull may change, and
// everything else.
type document interface {
	// rows are there in the file's order.
	rows() []row
	// add returns a new row.
	add() row
	// render returns the text with these rows.
	render([]row) ([]byte, error)
}

// row is a cluster of a document.
type row interface {
	// cell returns the text of a column, or "".
	cell(column string) string
	// set sets the text of a column. "" makes it empty, or removes it. It returns an error
	// if the row cannot have the text.
	set(column, text string) error
	// label and setLabel are the same for a label that no column is named for.
	label(name string) string
	setLabel(name, text string) error
	// lineNumber is the line in the file; 0 for a new one.
	lineNumber() int
}

// Merge compares clusters, which are sorted by name, with the text of an inventory's file,
// or nil. It returns the differences and the new text, which is nil if there are no
// differences.
//
// Merge removes the rows of other clusters. In new and remaining rows, it writes only the
// fields that a cluster of the source has: its type, its address, its description and its
// labels. It writes a label if the inventory has a column for it. If the inventory names no
// columns, it writes all labels except bookkeeping. If no cluster of the source has a
// field, the field stays unchanged, as do all other columns.
//
// If filter is not nil, Merge changes and removes only rows for which the filter holds. It
// writes the texts that the filter requires into new rows. If the filter does not hold for a
// row then, Merge returns an error.
func Merge(inv *model.Inventory, filter *fleet.Filter, file string, before []byte,
	clusters []Cluster) (*Difference, []byte, error) {
	if len(clusters) == 0 && !inv.AllowEmpty {
		return nil, nil, fmt.Errorf("there are no clusters, and nothing is taken from inventory %s: "+
			"where that is right, give it allowEmpty: true", inv.Name)
	}
	doc, err := open(inv, before)
	if err != nil {
		return nil, nil, errors.New(terminal.Line(file + " " + err.Error()))
	}
	s := divide(inv, filter, doc)
	s.fixLabels(clusters)
	there, err := byName(inv, s.own)
	if err != nil {
		return nil, nil, errors.New(terminal.Line(file + err.Error()))
	}
	d := &Difference{Inventory: inv.Name, File: file, Clusters: []Change{}}
	fields := fieldsFor(inv, clusters)
	rows := make([]row, 0, len(clusters)+len(s.others))
	for i := range clusters {
		c := &clusters[i]
		change := Change{Cluster: c.Name, Change: "changed", Fields: []Field{}}
		r := there[c.Name]
		if r == nil {
			change.Change, r = "added", doc.add()
			if err := r.set(inv.Columns.Name, c.Name); err != nil {
				return nil, nil, fmt.Errorf("%s: the name of a new row: %w", file, err)
			}
		}
		delete(there, c.Name)
		for _, f := range fields {
			changed, err := f.apply(r, c)
			if err != nil {
				return nil, nil,
					fmt.Errorf("%s:%d: %s of cluster %s: %w", file, r.lineNumber(), f.name, c.Name, err)
			}
			if changed != nil {
				change.Fields = append(change.Fields, *changed)
			}
		}
		if err := s.claim(r, &change); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(change.Fields) > 0 || change.Change == "added" {
			d.Clusters = append(d.Clusters, change)
		}
		rows = append(rows, r)
	}
	for name := range there {
		d.Clusters = append(d.Clusters, Change{Cluster: name, Change: "removed", Fields: []Field{}})
	}
	slices.SortFunc(d.Clusters, func(a, b Change) int { return strings.Compare(a.Cluster, b.Cluster) })
	if len(d.Clusters) == 0 {
		return d, nil, nil
	}
	after, err := doc.render(s.join(rows))
	return d, after, err
}

// byName returns rows by the names of their clusters. A row without a name, or with another
// row's name, is an error.
func byName(inv *model.Inventory, rows []row) (map[string]row, error) {
	there := map[string]row{}
	for _, r := range rows {
		name := r.cell(inv.Columns.Name)
		switch other := there[name]; {
		case !model.IsName(name):
			return nil, fmt.Errorf(":%d: a row has no name of a cluster in %s: correct it or take "+
				"it away first", r.lineNumber(), inv.Columns.Name)
		case other != nil:
			return nil, fmt.Errorf(":%d: cluster %s is in line %d already: leave one of them",
				r.lineNumber(), name,
				other.lineNumber())
		}
		there[name] = r
	}
	return there, nil
}

// field is a field that a pull writes.
type field struct {
	name string
	of   func(*Cluster) string
	cell func(row) string
	set  func(row, string) error
	// absent is the text that an empty cell means.
	absent string
}

// apply sets a row's field to the value of a cluster. It returns the change, or nil if
// nothing changes.
func (f *field) apply(r row, c *Cluster) (*Field, error) {
	before, after := f.cell(r), f.of(c)
	if before == after || cmp.Or(before, f.absent) == cmp.Or(after, f.absent) {
		return nil, nil
	}
	return &Field{f.name, before, after}, f.set(r, after)
}

// fieldsFor returns the fields that some of the clusters have and the inventory accepts,
// sorted by name.
func fieldsFor(inv *model.Inventory, clusters []Cluster) []field {
	all := []field{
		column("address", inv.Columns.Address, func(c *Cluster) string { return c.Address }),
		column("clusterType", inv.Columns.ClusterType, func(c *Cluster) string { return c.ClusterType }),
		column("description", inv.Columns.Description, func(c *Cluster) string { return c.Description }),
	}
	all[1].absent = inv.ClusterType
	names := map[string]bool{}
	for i := range clusters {
		for name := range clusters[i].Labels {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		value := func(c *Cluster) string { return c.Labels[name] }
		switch at, mapped := inv.Columns.Labels[name]; {
		case mapped:
			all = append(all, column("labels."+name, at, value))
		case inv.Columns.Labels == nil && !bookkeeping(name):
			all = append(all, field{"labels." + name, value,
				func(r row) string { return r.label(name) },
				func(r row, text string) error { return r.setLabel(name, text) }, ""})
		}
	}
	return slices.DeleteFunc(all, func(f field) bool {
		return !slices.ContainsFunc(clusters, func(c Cluster) bool { return f.of(&c) != "" })
	})
}

func column(name, at string, of func(*Cluster) string) field {
	return field{name, of,
		func(r row) string { return r.cell(at) },
		func(r row, text string) error { return r.set(at, text) }, ""}
}

// bookkeeping reports whether tools keep a label for themselves.
func bookkeeping(label string) bool {
	domain, _, _ := strings.Cut(label, "/")
	return slices.ContainsFunc(keepers,
		func(k string) bool { return domain == k || strings.HasSuffix(domain, "."+k) }) ||
		label == "clusterID" || label == "name" // of the import of Open Cluster Management
}

// keepers are domains of such labels.
var keepers = []string{
	"app.kubernetes.io", "argocd.argoproj.io", "cluster.x-k8s.io",
	"feature.open-cluster-management.io", "fleet.cattle.io",
	"helm.sh", "helm.toolkit.fluxcd.io", "kalypso.io", "kubectl.kubernetes.io",
	"kustomize.toolkit.fluxcd.io",
	"management.cattle.io", "objectset.rio.cattle.io", "velero.io",
}
