package randplatform

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// row is a cluster in a file of an inventory.
type row struct {
	name, clusterType string
	labels            map[string]string
}

var (
	racks = []string{"r1", "r2", "r3"}
	// clusterLabels are the columns of inventories. A cluster type has the label size, too.
	clusterLabels = []string{"pci", "rack", "size"}
)

// NewFleet returns the platform of a seed with inventories of the base and of its
// environments, cluster types whose clusters have entries, and selectors of clusters.
// Its edits are also of these.
func NewFleet(seed uint64) *Platform {
	p, r := New(seed), rand.New(rand.NewPCG(seed, 2))
	p.rows = map[string][]row{}
	p.top(r, "", "inventories", raw("schema.#Inventories"))
	p.addInventory(r, "")
	for _, e := range p.environments {
		if chance(r, 70) {
			p.addInventory(r, e)
		}
	}
	for range 2 + r.IntN(4) {
		changeClusterSelector(p, r)
	}
	return p
}

// addInventory adds an inventory to a scope, with one or two cluster types and their rows.
func (p *Platform) addInventory(r *rand.Rand, scope string) {
	var types []string
	for range few(r, 1, 2) {
		name, reconciler := p.newName("fleet"), pick(r, "flux", "flux", "argocd")
		p.entity(r, scope, "clusterTypes", name, obj("labels", obj("region", pick(r, regions...), "size", pick(r, sizes...)),
			"reconciler", reconciler, "entries", "cluster"))
		types = append(types, name)
		if reconciler == "flux" && chance(r, 50) {
			p.entity(r, scope, "configs", "of-"+name,
				obj("match", obj("clusterType", name), "#assignment", raw("schema.#Assignment"),
					"values", obj("SITE", raw(`"\(#assignment.cluster.name) in \(#assignment.cluster.labels.rack)"`))))
		}
	}
	name := p.newName("stores")
	p.entity(r, scope, "inventories", name, obj("file", name+".csv", "clusterType", types[0]))
	file := name + ".csv"
	if scope != "" {
		file = "environments/" + scope + "/" + file
	}
	for range 2 + r.IntN(7) {
		p.rows[file] = append(p.rows[file], p.newRow(r, types...))
	}
}

// newRow returns a row of one of the cluster types. It need not name the first type.
func (p *Platform) newRow(r *rand.Rand, types ...string) row {
	w := row{name: p.newName("store"), labels: map[string]string{}}
	if t := pick(r, types...); t != types[0] || chance(r, 30) {
		w.clusterType = t
	}
	for _, label := range clusterLabels {
		w.labels[label] = newClusterLabel(r, label)
	}
	return w
}

// newClusterLabel returns a value of a label; "" if the cluster does not have the label.
func newClusterLabel(r *rand.Rand, label string) string {
	switch {
	case label == "rack":
		return pick(r, racks...)
	case chance(r, 60):
		return ""
	case label == "size":
		return pick(r, sizes...)
	}
	return "true"
}

// csv writes rows as the file of an inventory.
func csv(rows []row) string {
	var b strings.Builder
	b.WriteString("name,clusterType")
	for _, label := range clusterLabels {
		b.WriteString(",labels." + label)
	}
	b.WriteString("\n")
	for _, w := range rows {
		b.WriteString(w.name + "," + w.clusterType)
		for _, label := range clusterLabels {
			b.WriteString("," + w.labels[label])
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (p *Platform) clusterSelector(r *rand.Rand) *value {
	switch r.IntN(9) {
	case 0:
		return obj("labels", obj("pci", "true"))
	case 1:
		return obj("labels", obj("pci?", raw("_|_")))
	case 2:
		return obj("labels", obj("rack", pick(r, racks...)))
	case 3:
		return obj("labels", obj("rack", raw("%q | %q", pick(r, racks...), pick(r, racks...))))
	case 4:
		return obj("labels", obj("size", pick(r, sizes...)))
	case 5:
		return obj("labels", obj("rack", raw("!=%q", pick(r, racks...)), "pci?", "true"))
	case 6:
		return obj("labels", obj("rack", raw(`=~"[%d%d]$"`, 1+r.IntN(3), 1+r.IntN(3))))
	case 7:
		return obj()
	}
	if file := p.inventoryFile(r); len(p.rows[file]) > 0 {
		return obj("name", pick(r, p.rows[file]...).name)
	}
	return obj("labels", obj("region", pick(r, regions...)))
}

func (p *Platform) inventoryFile(r *rand.Rand) string {
	return pick(r, slices.Sorted(maps.Keys(p.rows))...)
}

// fleetEdits are edits of rows and of selectors of clusters.
var fleetEdits = []func(p *Platform, r *rand.Rand) string{
	addRow, removeRow, removeRow, changeRowLabel, changeRowLabel, changeRowType,
	changeClusterSelector, changeClusterSelector, changeClusterSelector, addClusterPolicy, dropClusterSelector,
}

// EditRow makes one random edit of the rows of a fleet, and describes it in one line. After most
// of them CUE has nothing to evaluate.
func (p *Platform) EditRow(r *rand.Rand) (what string) {
	before := p.Clone()
	before.before = nil
	for what == "" {
		what = pick(r, addRow, removeRow, changeRowLabel, changeRowLabel, changeRowLabel, changeRowType)(p, r)
	}
	p.touched, p.last, p.before = false, Meaning, before
	return what
}

func addRow(p *Platform, r *rand.Rand) string {
	file := p.inventoryFile(r)
	w := p.newRow(r, "")
	p.rows[file] = append(p.rows[file], w)
	return "add row " + w.name + " to " + file
}

// removeRow takes a row away, and lets its entry go by name, or not.
func removeRow(p *Platform, r *rand.Rand) string {
	file := p.inventoryFile(r)
	rows := p.rows[file]
	if len(rows) < 2 {
		return ""
	}
	i := r.IntN(len(rows))
	name := rows[i].name
	p.rows[file] = slices.Delete(slices.Clone(rows), i, i+1)
	if chance(r, 50) {
		return "remove row " + name + " of " + file
	}
	for _, e := range p.of("environments") {
		removed := obj("clusters", arr(name))
		if was := e.body.get("removals", "clusters"); was != nil {
			removed.get("clusters").elems = append(was.elems, str(name))
		}
		e.body.set("removals", removed)
	}
	return "remove row " + name + " of " + file + " by name"
}

func changeRowLabel(p *Platform, r *rand.Rand) string {
	file := p.inventoryFile(r)
	rows := p.rows[file]
	if len(rows) == 0 {
		return ""
	}
	w, label := &rows[r.IntN(len(rows))], pick(r, clusterLabels...)
	was := w.labels[label]
	now := newClusterLabel(r, label)
	if now == was {
		return ""
	}
	w.labels[label] = now
	return fmt.Sprintf("label %s of row %s is %q", label, w.name, now)
}

func changeRowType(p *Platform, r *rand.Rand) string {
	file := p.inventoryFile(r)
	rows := p.rows[file]
	types := slices.DeleteFunc(p.namedOf("clusterTypes"), func(e *entity) bool { return e.body.get("entries") == nil })
	if len(rows) == 0 || len(types) == 0 {
		return ""
	}
	w := &rows[r.IntN(len(rows))]
	w.clusterType = pick(r, types...).name()
	return "row " + w.name + " is of cluster type " + w.clusterType
}

// selecting returns a random entity that may have a selector of clusters.
func (p *Platform) selecting(r *rand.Rand) (*entity, bool) {
	return p.oneOf(r, pick(r, "schedulingPolicies", "schedulingPolicies", "configs", "configs", "configSchemas"))
}

// changeClusterSelector gives an entity a selector of clusters, or another one.
func changeClusterSelector(p *Platform, r *rand.Rand) string {
	e, ok := p.selecting(r)
	if !ok {
		return ""
	}
	s := p.clusterSelector(r)
	if except := e.body.get("except"); except != nil && except.kind == structure && chance(r, 50) {
		except.set("clusters", s)
	} else if e.collection == "schedulingPolicies" && chance(r, 30) {
		e.body.set("except", obj("clusters", s))
	} else {
		e.body.set("clusters", s)
	}
	return "clusters of " + e.title() + ": " + valueText(e.body)
}

func dropClusterSelector(p *Platform, r *rand.Rand) string {
	e, ok := p.selecting(r)
	if !ok || e.body.get("clusters") == nil {
		return ""
	}
	e.body.drop("clusters")
	return "drop clusters of " + e.title()
}

// addClusterPolicy adds a policy with a selector of clusters: one that denies, one that pins, or
// a plain one.
func addClusterPolicy(p *Platform, r *rand.Rand) string {
	e := p.addPolicy(r, pick(r, p.environments...))
	e.body.set("clusters", p.clusterSelector(r))
	switch r.IntN(3) {
	case 0:
		e.body.set("deny", raw("true"))
		e.body.set("deploymentTargets", obj("labels", obj("tier", raw(`!="core"`))))
	case 1:
		e.body.set("pin", obj("version", "7.0.0"))
	}
	return "add " + e.title() + ": " + valueText(e.body)
}
