package model

import (
	"sort"
)

// Collection is one of the language's collections of entities, as a slice of an
// Environment. Its methods are what is done alike to all of them.
type Collection interface {
	// Name returns the field of the language, such as "clusterTypes".
	Name() string
	// Distribute appends each entity of an environment to that of another, which
	// to returns for it.
	Distribute(from *Environment, to func(Ref) *Environment)
	// Sort sorts the entities of an environment by their names.
	Sort(*Environment)
	// Identify gives each entity its digest. What is a function of the assignment
	// gets what function returns for it.
	Identify(m *Environment, function func(Ref) Digest)
}

// Collections are all but the environments, in the order of the schema's documentation.
var Collections = []Collection{
	collection[ClusterType, *ClusterType]{"clusterTypes", func(m *Environment) *[]ClusterType { return &m.ClusterTypes }},
	collection[Cluster, *Cluster]{"clusters", func(m *Environment) *[]Cluster { return &m.Clusters }},
	collection[Inventory, *Inventory]{"inventories", func(m *Environment) *[]Inventory { return &m.Inventories }},
	collection[Workspace, *Workspace]{"workspaces", func(m *Environment) *[]Workspace { return &m.Workspaces }},
	collection[Workload, *Workload]{"workloads", func(m *Environment) *[]Workload { return &m.Workloads }},
	collection[Registration, *Registration]{"registrations",
		func(m *Environment) *[]Registration { return &m.Registrations }},
	collection[SchedulingPolicy, *SchedulingPolicy]{"schedulingPolicies",
		func(m *Environment) *[]SchedulingPolicy { return &m.SchedulingPolicies }},
	collection[Config, *Config]{"configs", func(m *Environment) *[]Config { return &m.Configs }},
	collection[ConfigSchema, *ConfigSchema]{"configSchemas",
		func(m *Environment) *[]ConfigSchema { return &m.ConfigSchemas }},
	collection[NamespaceService, *NamespaceService]{"namespaceServices",
		func(m *Environment) *[]NamespaceService { return &m.NamespaceServices }},
	collection[Reconciler, *Reconciler]{"reconcilers", func(m *Environment) *[]Reconciler { return &m.Reconcilers }},
	collection[Test, *Test]{"tests", func(m *Environment) *[]Test { return &m.Tests }},
}

// CollectionNames are the names of all collections, environments first.
var CollectionNames = func() []string {
	names := []string{"environments"}
	for _, c := range Collections {
		names = append(names, c.Name())
	}
	return names
}()

// entity is a pointer to an entity of type T.
type entity[T any] interface {
	*T
	key() string
	// identify sets the entity's digest, which is empty.
	identify(function func() Digest)
}

type collection[T any, P entity[T]] struct {
	name string
	of   func(*Environment) *[]T
}

// Name returns the name of the collection, such as "workloads".
func (c collection[T, P]) Name() string { return c.name }

// Distribute appends each entity of an environment to the environment that to names for it,
// in their order.
func (c collection[T, P]) Distribute(from *Environment, to func(Ref) *Environment) {
	for _, e := range *c.of(from) {
		into := c.of(to(Ref{Collection: c.name, Name: P(&e).key()}))
		*into = append(*into, e)
	}
}

// Sort sorts the entities of an environment by their keys.
func (c collection[T, P]) Sort(m *Environment) {
	all := *c.of(m) // which are large: they are compared where they are
	sort.Slice(all, func(i, j int) bool { return P(&all[i]).key() < P(&all[j]).key() })
}

// Identify sets the digests of the entities of an environment, which are empty; function
// returns that of an entity which is a function of the assignment.
func (c collection[T, P]) Identify(m *Environment, function func(Ref) Digest) {
	all := *c.of(m)
	for i := range all {
		e := P(&all[i])
		e.identify(func() Digest { return function(Ref{Collection: c.name, Name: e.key()}) })
	}
}

func (c *ClusterType) key() string      { return c.Name }
func (c *Cluster) key() string          { return c.Name }
func (i *Inventory) key() string        { return i.Name }
func (w *Workspace) key() string        { return w.Name }
func (w *Workload) key() string         { return w.Name }
func (r *Registration) key() string     { return r.Name }
func (p *SchedulingPolicy) key() string { return p.Name }
func (c *Config) key() string           { return c.Name }
func (s *ConfigSchema) key() string     { return s.Name }
func (s *NamespaceService) key() string { return s.Name }
func (r *Reconciler) key() string       { return r.Name }
func (t *Test) key() string             { return t.Name }

func (c *ClusterType) identify(func() Digest)      { c.Digest = digestOf(*c) }
func (c *Cluster) identify(func() Digest)          { c.Digest = digestOf(*c) }
func (i *Inventory) identify(func() Digest)        { i.Digest = digestOf(*i) }
func (r *Registration) identify(func() Digest)     { r.Digest = digestOf(*r) }
func (p *SchedulingPolicy) identify(func() Digest) { p.Digest = digestOf(*p) }
func (t *Test) identify(func() Digest)             {} // nothing is made of it

func (w *Workload) identify(func() Digest) {
	w.Requires.identify()
	for i := range w.Targets {
		t := &w.Targets[i]
		t.Requires.identify()
		t.Digest = digestOf(*t)
	}
	w.Digest = digestOf(*w)
}

func (c *Config) identify(function func() Digest) {
	if c.Facts != nil {
		c.Digest = function()
		return
	}
	without := *c
	without.Match, without.Clusters, without.AllowEmpty = Selector{}, nil, false
	c.Digest = digestOf(without)
}

func (s *ConfigSchema) identify(func() Digest) {
	s.Schema.identify()
	without := *s
	without.Match, without.Clusters, without.AllowEmpty = Selector{}, nil, false
	s.Digest = digestOf(without)
}

func (s *NamespaceService) identify(function func() Digest) {
	if s.Facts != nil {
		s.Digest = function()
		return
	}
	s.Digest = digestOf(*s)
}

func (r *Reconciler) identify(function func() Digest) {
	if r.Facts != nil {
		r.Digest = function()
		return
	}
	r.Digest = digestOf(*r)
}

func (c *Contract) identify() {
	if c != nil {
		without := *c
		without.Ref = Ref{}
		c.Digest = digestOf(without)
	}
}

// digestOf returns the digest of an entity whose own Digest is still empty.
func digestOf(entity any) Digest { return DigestBytes(Encode(entity)) }
