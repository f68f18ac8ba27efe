package incremental

import (
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/evaluate/shape"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// partition is the division of a package into units. The shared unit consists only of the
// shared files, and every other unit of its own files and the shared ones. An entity is the
// same in such a reduced package as in the whole, because the files that are left out do not
// affect it. They only declare other entities, and nothing refers to a collection.
type partition struct {
	// obstacle is the reason why the package is evaluated in one piece; "" if it is not.
	obstacle string
	shared   []int // the files, by their numbers
	// units do not declare any common entities.
	units []unit
	// twice are the entities that both shared files and units declare. made are the entities of
	// units that shared files may also make. The shared unit depends on both, because it leaves
	// these entities to the others.
	twice, made []model.Ref
	owner       map[model.Ref]int // the unit of each entity that a unit declares
	bytes       int               // of the shared files
}

// unit is a set of leaf files that declare common entities.
type unit struct {
	files    []int
	entities []model.Ref
	bytes    int
}

// sharedUnit is the number of the unit with all entities of no other unit.
const sharedUnit = -1

// newPartition divides a package by the profiles of its files.
func newPartition(s *source.Sources, profiles []profile) partition {
	d := partition{owner: map[model.Ref]int{}}
	if s.Imported {
		d.obstacle = "it imports itself"
		return d
	}
	for i, p := range profiles {
		if p.Whole != "" {
			d.obstacle = fmt.Sprintf("%s: %s", s.Files[i].Name, p.Whole)
			return d
		}
	}
	group := groups(profiles)
	number := map[int]int{} // of the unit of each group
	for i, p := range profiles {
		if !p.Leaf {
			d.shared = append(d.shared, i)
			d.bytes += len(s.Files[i].Data)
			continue
		}
		n, seen := number[group[i]]
		if !seen {
			n = len(d.units)
			number[group[i]] = n
			d.units = append(d.units, unit{})
		}
		c := &d.units[n]
		c.files = append(c.files, i)
		c.bytes += len(s.Files[i].Data)
		for _, ref := range p.Entities {
			if _, owned := d.owner[ref]; !owned {
				d.owner[ref] = n
				c.entities = append(c.entities, ref)
			}
		}
	}
	if len(d.units) == 0 {
		d.obstacle = "no file declares entities only"
		return d
	}
	return d.withTwice(s, profiles)
}

// groups returns a group number for each file. Leaf files that declare a common entity,
// directly or through other files, have the same number.
func groups(profiles []profile) []int {
	first := map[model.Ref]int{} // the first leaf file that declares an entity
	group := make([]int, len(profiles))
	var find func(i int) int
	find = func(i int) int {
		if group[i] != i {
			group[i] = find(group[i])
		}
		return group[i]
	}
	for i, p := range profiles {
		group[i] = i
		if !p.Leaf {
			continue
		}
		for _, ref := range p.Entities {
			if other, declared := first[ref]; declared {
				group[find(i)] = find(other)
			} else {
				first[ref] = i
			}
		}
	}
	for i := range group {
		group[i] = find(i)
	}
	return group
}

// withTwice finds the entities that both shared files and units declare. It sets an obstacle
// if a shared file may refer to such an entity by its name, from the same struct. The file would
// then see different values in different units. It also sets one if no shared file declares the
// collection of a unit's entity with the schema's type. The collection may then be anything.
func (d partition) withTwice(s *source.Sources, profiles []profile) partition {
	for _, i := range d.shared {
		for _, ref := range profiles[i].Entities {
			if _, owned := d.owner[ref]; owned {
				d.twice = append(d.twice, ref)
			}
		}
	}
	slices.SortFunc(d.twice, compareRefs)
	d.twice = slices.Compact(d.twice)
	d.findMade(profiles)
	for _, c := range d.units {
		for _, ref := range c.entities {
			declared := slices.ContainsFunc(d.shared,
				func(i int) bool { return slices.Contains(profiles[i].Declares, ref.Collection) })
			if !declared {
				d.obstacle = ref.Collection + " is not declared as a collection of the schema"
				return d
			}
		}
	}
	for _, i := range d.shared {
		for _, ref := range d.twice {
			if slices.Contains(profiles[i].Uses, ref.Name) {
				d.obstacle = fmt.Sprintf("%s: it may refer to %s, of which another file says more",
					s.Files[i].Name, ref)
			}
		}
	}
	return d
}

// findMade finds the entities of units that may exist without these units. They are entities of
// collections in which shared files make entities, and the schema's own namespace service.
func (d *partition) findMade(profiles []profile) {
	makes := map[string]bool{}
	for _, i := range d.shared {
		for _, collection := range profiles[i].Makes {
			makes[collection] = true
		}
	}
	standard := model.Ref{Collection: "namespaceServices", Name: shape.DefaultNamespaceService}
	for ref := range d.owner {
		if makes[ref.Collection] || ref == standard {
			d.made = append(d.made, ref)
		}
	}
	slices.SortFunc(d.made, compareRefs)
}

// unitOf returns the number of the unit that an entity belongs to.
func (d *partition) unitOf(ref model.Ref) int {
	if n, owned := d.owner[ref.Entity()]; owned {
		return n
	}
	return sharedUnit
}

// batchEntities is the least number of entities to evaluate at once, because CUE evaluates the
// shared files and their imports again for each batch.
const batchEntities = 300

// maxBatches is the approximate maximal number of batches. For each batch, CUE reads all files
// of the folder, including files that the batch does not need.
const maxBatches = 16

// batches groups the units to evaluate at once. Each batch has at least the given number of
// entities; if the number is 1, each batch is a single unit. The shared unit costs nothing in
// addition to any other.
func (d *partition) batches(units []int, least int) [][]int {
	var out [][]int
	var batch []int
	entities, bytes := 0, 0
	for _, n := range units {
		if n != sharedUnit {
			entities += len(d.units[n].entities)
		}
	}
	if least > 1 {
		least = max(least, entities/maxBatches)
	}
	entities = 0
	for _, n := range units {
		batch = append(batch, n)
		if n != sharedUnit {
			entities += len(d.units[n].entities)
			bytes += d.units[n].bytes
		}
		if least <= 1 || entities >= least && bytes >= d.bytes {
			out, batch, entities, bytes = append(out, batch), nil, 0, 0
		}
	}
	switch {
	case len(batch) == 0:
	case len(out) > 0 && least > 1 && entities < least/2:
		out[len(out)-1] = append(out[len(out)-1], batch...)
	default:
		out = append(out, batch)
	}
	return out
}

// leftOut returns the files that a batch does not need.
func (d *partition) leftOut(batch []int) []int {
	var out []int
	needed := map[int]bool{}
	for _, n := range batch {
		needed[n] = true
	}
	for n, c := range d.units {
		if !needed[n] {
			out = append(out, c.files...)
		}
	}
	return out
}

// all returns the numbers of the units.
func (d *partition) all() []int {
	out := make([]int, len(d.units))
	for n := range out {
		out[n] = n
	}
	return out
}
