// Package randplatform makes small random platforms and edits them at random, for properties that
// apply to every platform and every sequence of edits.
//
// A platform is a description: entities of collections, with the files that they are written to.
// An edit is therefore a change of the description, and never a change of text that might miss. A
// new platform compiles. Most edits leave it so, some break something on purpose, and later edits
// repair that. The same seed gives the same platform, byte for byte, on every machine. An edit
// depends only on the platform and its random numbers.
package randplatform

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Platform is the description of a platform. It is not safe for concurrent use.
type Platform struct {
	environments []string  // the folders that it may have files in, sorted
	entities     []*entity // in the order in which each file holds its own
	styles       map[string]style
	comments     map[string]string // path of a file -> a comment at its end
	data         map[string]*value // path of an embedded JSON file -> its content
	rows         map[string][]row  // path of an inventory's file -> what it holds; nil if there is no fleet
	pinned       []pinned
	broken       []breakage
	touched      bool
	last         Kind      // of edit
	names        int       // how many names were made, so that none is made twice
	before       *Platform // the last edit, which is not in its own history
}

// New returns the platform of a seed.
func New(seed uint64) *Platform {
	r := rand.New(rand.NewPCG(seed, 0))
	p := &Platform{styles: map[string]style{}, comments: map[string]string{}, data: map[string]*value{}}
	p.environments = []string{"dev", "prod", "stage"}[:few(r, 1, 3)]
	p.addBase(r)
	p.addServices(r)
	p.addReconcilers(r)
	p.addWorkloads(r)
	for _, e := range p.environments {
		for range few(r, 2, 6) {
			p.addClusterType(r, e)
		}
		p.addPolicies(r, e)
	}
	p.addSchemas(r)
	p.addCommonConfigs(r)
	for range few(r, 2, 20) {
		p.addConfig(r)
	}
	p.addLanguage(r)
	p.pinned = pinnedSources()
	p.addRendering(r)
	for _, e := range p.entities {
		p.spread(r, e)
	}
	return p
}

// Clone returns a copy that shares nothing with the platform.
func (p *Platform) Clone() *Platform {
	c := *p
	c.entities = make([]*entity, len(p.entities))
	for i, e := range p.entities {
		c.entities[i] = e.clone()
	}
	c.styles, c.comments = maps.Clone(p.styles), maps.Clone(p.comments)
	c.data = map[string]*value{}
	for path, v := range p.data {
		c.data[path] = v.clone()
	}
	c.rows = maps.Clone(p.rows)
	for path, rows := range p.rows {
		c.rows[path] = slices.Clone(rows)
		for i, w := range rows {
			c.rows[path][i].labels = maps.Clone(w.labels)
		}
	}
	c.pinned = slices.Clone(p.pinned)
	c.broken = slices.Clone(p.broken) // a breakage never changes
	return &c
}

// entity is one entity of a collection, or some of a collection's entities that
// are written together; or, without a collection, any other top-level field.
type entity struct {
	collection string
	key        string // as CUE writes it: quoted, a pattern, or a hidden name
	// scope is the environment whose files hold it, "" for the base and
	// helperPackage for the helper package.
	scope string
	file  string
	body  *value
	// items, if any, makes the entity a comprehension over them, with the
	// variable "item".
	items []string
	// The fields of away are written to another file.
	away     []string
	awayFile string
	comment  string
	// pinned keeps the entity in the base, because its embedded file is there.
	pinned bool
}

func (e *entity) clone() *entity {
	c := *e
	c.body, c.items, c.away = e.body.clone(), slices.Clone(e.items), slices.Clone(e.away)
	return &c
}

// title names the entity in the description of an edit.
func (e *entity) title() string {
	s := e.key
	if e.collection != "" {
		s = e.collection + "." + e.key
	}
	if e.scope != "" {
		s += " of " + e.scope
	}
	return s
}

// name is the key without quotes; "" if it is no plain name.
func (e *entity) name() string {
	if len(e.items) > 0 || len(e.key) < 2 || e.key[0] != '"' {
		return ""
	}
	return e.key[1 : len(e.key)-1]
}

// of returns the entities of a collection, in their order.
func (p *Platform) of(collection string) []*entity {
	var out []*entity
	for _, e := range p.entities {
		if e.collection == collection {
			out = append(out, e)
		}
	}
	return out
}

// namedOf returns the entities of a collection that have a plain name.
func (p *Platform) namedOf(collection string) []*entity {
	return slices.DeleteFunc(p.of(collection), func(e *entity) bool { return e.name() == "" })
}

func (p *Platform) add(e *entity) *entity {
	p.entities = append(p.entities, e)
	return e
}

func (p *Platform) remove(e *entity) {
	p.entities = slices.DeleteFunc(p.entities, func(o *entity) bool { return o == e })
}

// pick returns one of the choices.
func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// few is a number from least to most, rather a small one.
func few(r *rand.Rand, least, most int) int {
	n := most - least + 1
	return least + min(r.IntN(n), r.IntN(n))
}

// chance is true in n of 100 cases.
func chance(r *rand.Rand, n int) bool { return r.IntN(100) < n }

// sample returns some of the choices in their order, at least least.
func sample[T any](r *rand.Rand, least int, choices ...T) []T {
	order := r.Perm(len(choices))[:least+r.IntN(len(choices)-least+1)]
	slices.Sort(order)
	var out []T
	for _, i := range order {
		out = append(out, choices[i])
	}
	return out
}
