// Package fleet reads the clusters of a platform: its own clusters, and the rows of its
// inventories. Each cluster has one cluster type and is in one class of it.
//
// Its input is the model of an environment and the folder of the platform. Its output is
// all clusters, sorted by name, the cluster types with their classes, and diagnostics. An
// error in a row is an error of only its cluster. If the name of the cluster is not known,
// or a file cannot be read to its end, the fleet is incomplete. Then nothing may be removed
// from a cluster that is not in it.
//
// Rows are data: no row is evaluated, and CUE checks a constraint only once for each
// distinct value. Time and memory are linear in the files.
//
// The hello-world example lists no clusters, so this example is from examples/retail. The inventory
// lab has the file environments/dev/lab.csv, with this row:
//
//	lab-east,Room 2,east,market,true,,,,2024-03-01
//
// Read returns a Fleet with the [model.Cluster] lab-east. Its Description is "Room 2". Its Labels
// are region=east, format=market and self-checkout=true. Its ClusterType is market, because this
// cluster type selects clusters by the label format.
package fleet

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/archive"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Fleet are the clusters of an environment.
type Fleet struct {
	// Clusters are sorted by name, and each has its cluster type, and the folder that it
	// follows.
	Clusters []model.Cluster
	// ClusterTypes are the cluster types of the environment, sorted by name. A cluster type
	// with entries for its clusters occurs once for each class.
	ClusterTypes []model.ClusterType
	// Split are the cluster types whose clusters are of several classes and have one folder,
	// which is an error.
	Split []string
	// Invalid are the entities with errors, as far as their names are
	// known.
	Invalid []model.Ref
	// Incomplete reports that errors hide some clusters.
	Incomplete bool
	// Base and Environment identify the content of the inventories' files at the
	// platform's root and in the environment's folder; zero without inventories.
	Base, Environment [sha256.Size]byte
}

// PinLookup returns the files that kalypso.lock pins for a source, and the pinned revision, or
// diagnostics without a site.
type PinLookup func(model.Manifests) (tree *archive.Tree, revision string, ds []diag.Diagnostic)

// Read reads the inventories of an environment, and joins their rows with the clusters
// that the platform declares. The diagnostics have positions or references.
func Read(files *source.Files, pinned PinLookup, env *model.Environment,
	satisfies selector.Satisfier) (*Fleet, []diag.Diagnostic) {
	r := &reader{files: files, pinned: pinned, env: env, satisfies: satisfies, fleet: &Fleet{},
		untyped: map[string]bool{}}
	var all []*inventory
	for i := range env.Inventories {
		all = append(all, r.inventory(&env.Inventories[i]))
	}
	if r.hides("inventories") {
		r.fleet.Incomplete = true // their contents are not known
	}
	r.join(all)
	for _, inv := range all {
		inv.rows = nil // the fleet has copies
	}
	r.assignTypes()
	r.classify()
	r.fleet.Base, r.fleet.Environment = digests(all, path.Join(source.Environments, env.Name)+"/")
	return r.fleet, r.diagnostics
}

// reader reads the inventories of one environment.
type reader struct {
	files       *source.Files
	pinned      PinLookup
	env         *model.Environment
	satisfies   selector.Satisfier
	fleet       *Fleet
	diagnostics []diag.Diagnostic
	untyped     map[string]bool // inventories whose file has no column of cluster types
}

// row is a cluster that is a row of a file.
type row struct {
	model.Cluster
	at model.Position
}

// hides reports whether an entity of a collection has errors, so that it is not in the
// model.
func (r *reader) hides(collection string) bool {
	for of := range r.env.Invalid {
		if of.Collection == collection {
			return true
		}
	}
	return false
}

func ref(name string) model.Ref { return model.Ref{Collection: "clusters", Name: name} }

// join combines the rows and the platform's own clusters, sorted by name. Clusters with the
// same name are all errors, because it is unknown which one is right.
func (r *reader) join(all []*inventory) {
	rows := rowsOf(all)
	r.locate(rows)
	r.fleet.Clusters = make([]model.Cluster, 0, len(r.env.Clusters)+len(rows))
	own := r.env.Clusters
	twice := &few{}
	for i := 0; i < len(rows) || len(own) > 0; {
		if i == len(rows) || len(own) > 0 && own[0].Name < rows[i].Name {
			r.fleet.Clusters, own = append(r.fleet.Clusters, own[0]), own[1:]
			continue
		}
		name, next := rows[i].Name, i+1
		for next < len(rows) && rows[next].Name == name {
			next++
		}
		declared := r.env.Invalid[ref(name)]
		if len(own) > 0 && own[0].Name == name {
			declared, own = true, own[1:]
		}
		if next == i+1 && !declared {
			r.fleet.Clusters = append(r.fleet.Clusters, rows[i].Cluster)
		} else {
			r.invalid(name)
			twice.add(func() diag.Diagnostic { return r.twice(rows[i:next], declared) })
		}
		i = next
	}
	r.diagnostics = append(r.diagnostics, twice.diagnostics("names")...)
}

// rowsOf returns the rows of all inventories, sorted by name.
func rowsOf(all []*inventory) []row {
	var rows []row
	for _, inv := range all {
		if rows == nil {
			rows = inv.rows
		} else {
			rows = append(rows, inv.rows...)
		}
	}
	byName := func(a, b row) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(rows, byName) {
		slices.SortStableFunc(rows, byName)
	}
	return rows
}

// locate records a function that finds the positions of rows.
func (r *reader) locate(rows []row) {
	if r.env.Positions == nil || len(rows) == 0 {
		return
	}
	type place struct {
		name string
		at   model.Position
	}
	places := make([]place, len(rows))
	for i := range rows {
		places[i] = place{rows[i].Name, rows[i].at}
	}
	r.env.Positions.Elsewhere("clusters", func(name string) (out []model.Position) {
		i, found := slices.BinarySearchFunc(places, name,
			func(p place, name string) int { return strings.Compare(p.name, name) })
		for ; found && i < len(places) && places[i].name == name; i++ {
			out = append(out, places[i].at)
		}
		return out
	})
}

func (r *reader) twice(rows []row, declared bool) diag.Diagnostic {
	name := rows[0].Name
	d := diag.New(diag.DuplicateCluster, fmt.Sprintf("cluster %s is there %d times", name, len(rows)))
	if declared {
		d = diag.New(diag.DuplicateCluster,
			fmt.Sprintf("cluster %s is a row of inventory %s, and declared in CUE", name, rows[0].Inventory))
	}
	for _, row := range rows[:min(len(rows), 5)] {
		d = d.In(row.at, "inventory "+row.Inventory)
	}
	if declared {
		// Its own positions are in the table, before the positions of rows.
		d = d.At(ref(name), "")
	}
	return d.On(ref(name).String()).Hinting("leave one of them, or give them different names")
}

// invalid records that a cluster has an error.
func (r *reader) invalid(name string) { r.fleet.Invalid = append(r.fleet.Invalid, ref(name)) }

// assignTypes sets the cluster type of each cluster that names none: the type whose
// clusters select it. It omits clusters of unknown types, and clusters that no type or
// several types select.
func (r *reader) assignTypes() {
	all := r.fleet.Clusters
	types := r.typesByLabels()
	known := map[string]bool{}
	for i := range r.env.ClusterTypes {
		known[r.env.ClusterTypes[i].Name] = true
	}
	unknown, none, several := &few{}, &few{}, &few{}
	hidden := r.hides("clusterTypes") // a hidden cluster type may select a cluster
	kept := all[:0]
	for n := range all {
		c := &all[n]
		if c.ClusterType == "" {
			switch found := types(n); len(found) {
			case 1:
				c.ClusterType = found[0]
			case 0:
				r.invalid(c.Name)
				if hidden {
					continue
				}
				none.add(func() diag.Diagnostic { return r.noType(c) })
				continue
			default:
				r.invalid(c.Name)
				several.add(func() diag.Diagnostic { return r.severalTypes(c.Name, found) })
				continue
			}
		} else if c.Inventory != "" && !known[c.ClusterType] {
			r.invalid(c.Name)
			if !r.env.Invalid[model.Ref{Collection: "clusterTypes", Name: c.ClusterType}] &&
				!r.env.Invalid[model.Ref{Collection: "inventories", Name: c.Inventory}] {
				unknown.add(func() diag.Diagnostic { return r.unknownType(c, known) })
			}
			continue
		}
		kept = append(kept, *c)
	}
	r.fleet.Clusters = kept
	r.diagnostics = append(r.diagnostics, slices.Concat(unknown.diagnostics("cluster types"),
		none.diagnostics("clusters"), several.diagnostics("clusters"))...)
}

// typesByLabels returns a function that finds the cluster types whose clusters select a cluster
// that names none, sorted, by the cluster's number.
func (r *reader) typesByLabels() func(n int) []string {
	asked := map[string]bool{}
	for i := range r.env.ClusterTypes {
		if s := r.env.ClusterTypes[i].Clusters; s != nil {
			s.AddKeys(asked)
		}
	}
	alike := alikeOf(r.fleet.Clusters, asked)
	index := selector.NewIndex(r.factsOfClusters(alike.first, asked), r.satisfies)
	types := make([][]string, len(alike.first))
	for i := range r.env.ClusterTypes {
		if ct := &r.env.ClusterTypes[i]; ct.Clusters != nil {
			for _, n := range index.Select(*ct.Clusters) {
				types[n] = append(types[n], ct.Name)
			}
		}
	}
	return func(n int) []string { return types[alike.of[n]] }
}

func (r *reader) unknownType(c *model.Cluster, known map[string]bool) diag.Diagnostic {
	names := slices.Sorted(maps.Keys(known))
	return diag.New(diag.UnknownReference, fmt.Sprintf("there is no cluster type %s", c.ClusterType)).
		At(ref(c.Name),
			"").On(ref(c.Name).At("clusterType").String()).Hinting(spelling.DidYouMean(c.ClusterType, names))
}

func (r *reader) noType(c *model.Cluster) diag.Diagnostic {
	hint := "give it a cluster type, give its inventory one, or let clusters of a cluster type " +
		"select its labels"
	if r.untyped[c.Inventory] {
		hint = fmt.Sprintf("the file has no column for it: say which one has cluster types, "+
			"inventories: %s: columns: clusterType, give the inventory a clusterType for all, or let "+
			"clusters of a cluster type select their labels", model.Label(c.Inventory))
	}
	return diag.New(diag.ClusterWithoutType,
		fmt.Sprintf("cluster %s is of no cluster type: it names none, and no cluster type selects it "+
			"with clusters", c.Name)).
		At(ref(c.Name), "").On(ref(c.Name).String()).Hinting(hint)
}

func (r *reader) severalTypes(name string, types []string) diag.Diagnostic {
	d := diag.New(diag.ClusterWithoutType,
		fmt.Sprintf("cluster %s is selected by several cluster types: %s", name,
			strings.Join(types, ", "))).
		At(ref(name), "").On(ref(name).String())
	for _, t := range types {
		d = d.At(model.Ref{Collection: "clusterTypes", Name: t, Path: "clusters"}, "cluster type "+t)
	}
	return d.Hinting("let only one of them select it, or name its cluster type in the row")
}

// most is the number of diagnostics of one kind before the others are only counted.
const most = 10

// few keeps the first diagnostics of a kind, and counts the others: a million rows may all
// be wrong in the same way.
type few struct {
	first []diag.Diagnostic
	more  int
}

func (f *few) add(d func() diag.Diagnostic) {
	if len(f.first) == most {
		f.more++
		return
	}
	f.first = append(f.first, d())
}

// diagnostics returns the diagnostics that were kept; the last one has the number of
// the others.
func (f *few) diagnostics(what string) []diag.Diagnostic {
	if f.more > 0 {
		last := &f.first[len(f.first)-1]
		last.Message += fmt.Sprintf(", and the same is wrong with %d more %s", f.more, what)
	}
	return f.first
}
