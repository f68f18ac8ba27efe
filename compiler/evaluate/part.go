package evaluate

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// part is what the entities of one part of a package are.
type Result struct {
	// Clean says that all that is wrong in the reduced package is wrong in single
	// entities. Of a part that is not clean nothing else is known: what is wrong is
	// said of the whole package.
	Clean bool
	// Model has the part's entities, and nothing of the environment that they do
	// not say.
	Model model.Environment
	// Entities are all of the part, sorted.
	Entities []model.Ref
	// Uses are the environments that deployment targets name.
	Uses []Use
	// Stages are the environments, of the base.
	Stages []model.Stage
	// Told is what is wrong, and Sick the entities that have errors.
	Reported []reported
	Invalid  map[model.Ref]bool
	// Incomplete says that an error hides which assignments there are.
	Incomplete bool
}

// told is a diagnostic about an entity; zero for what is no entity's.
type reported struct {
	About      model.Ref
	Diagnostic diag.Diagnostic
}

// use is where something is referred to by its name.
type Use struct {
	Ref  model.Ref
	Name string
	// Elsewhere says that it need not be one of this platform.
	Elsewhere bool
}

// resume returns the entities of the result with their findings, for what needs all of
// them at once.
func (r *Result) resume(positions *model.Positions) *entities {
	x := &entities{findings: newFindings(), all: r.Entities, uses: r.Uses}
	x.positions, x.invalid, x.incomplete = positions, r.Invalid, r.Incomplete
	for _, d := range r.Reported {
		x.ds, x.about = append(x.ds, d.Diagnostic), append(x.about, d.About)
	}
	return x
}

// split takes what was evaluated at once apart.
func (d *partition) split(all *Result, batch []int) map[int]*Result {
	out := map[int]*Result{}
	for _, n := range batch {
		out[n] = &Result{Clean: true, Invalid: map[model.Ref]bool{}}
	}
	to := func(collection, name string) *model.Environment {
		return &out[d.unitOf(model.Ref{Collection: collection, Name: name})].Model
	}
	from := &all.Model
	if p, ok := out[d.unitOf(model.Ref{Collection: "environments", Name: from.Name})]; ok {
		declare(&p.Model, from)
	}
	for _, e := range from.ClusterTypes {
		m := to("clusterTypes", e.Name)
		m.ClusterTypes = append(m.ClusterTypes, e)
	}
	for _, e := range from.Clusters {
		m := to("clusters", e.Name)
		m.Clusters = append(m.Clusters, e)
	}
	for _, e := range from.Workloads {
		m := to("workloads", e.Name)
		m.Workloads = append(m.Workloads, e)
	}
	for _, e := range from.Registrations {
		m := to("registrations", e.Name)
		m.Registrations = append(m.Registrations, e)
	}
	for _, e := range from.SchedulingPolicies {
		m := to("schedulingPolicies", e.Name)
		m.SchedulingPolicies = append(m.SchedulingPolicies, e)
	}
	for _, e := range from.Configs {
		m := to("configs", e.Name)
		m.Configs = append(m.Configs, e)
	}
	for _, e := range from.ConfigSchemas {
		m := to("configSchemas", e.Name)
		m.ConfigSchemas = append(m.ConfigSchemas, e)
	}
	for _, e := range from.NamespaceServices {
		m := to("namespaceServices", e.Name)
		m.NamespaceServices = append(m.NamespaceServices, e)
	}
	for _, e := range from.Reconcilers {
		m := to("reconcilers", e.Name)
		m.Reconcilers = append(m.Reconcilers, e)
	}
	for _, ref := range all.Entities {
		p := out[d.unitOf(ref)]
		p.Entities = append(p.Entities, ref)
	}
	for _, u := range all.Uses {
		p := out[d.unitOf(u.Ref)]
		p.Uses = append(p.Uses, u)
	}
	for _, s := range all.Stages {
		p := out[d.unitOf(model.Ref{Collection: "environments", Name: s.Name})]
		p.Stages = append(p.Stages, s)
	}
	for _, t := range all.Reported {
		p := out[d.unitOf(t.About)]
		p.Reported = append(p.Reported, t)
	}
	for ref := range all.Invalid {
		out[d.unitOf(ref)].Invalid[ref] = true
	}
	return out
}

// hasFunctions says whether some entity is a function of the assignment.
func (r *Result) hasFunctions() bool {
	return slices.ContainsFunc(r.Model.Configs, func(c model.Config) bool { return c.Facts != nil }) ||
		slices.ContainsFunc(r.Model.NamespaceServices, func(s model.NamespaceService) bool { return s.Facts != nil }) ||
		slices.ContainsFunc(r.Model.Reconcilers, func(r model.Reconciler) bool { return r.Facts != nil })
}

// declare takes over what the environment says of itself.
func declare(m, from *model.Environment) {
	m.Description, m.After, m.GitOps, m.MaxRemovals, m.Rings = from.Description, from.After, from.GitOps, from.MaxRemovals, from.Rings
}

// repeats says whether two parts may tell the same mistake at the same place: of
// those the whole tells the first.
func repeats(parts []*Result) bool {
	type mistake struct {
		code    diag.Code
		message string
		at      string // "" where the place is a reference
	}
	in := map[mistake]int{}
	vague, several := map[mistake]bool{}, map[mistake]bool{}
	for n, p := range parts {
		for _, t := range p.Reported {
			what := mistake{code: t.Diagnostic.Code, message: t.Diagnostic.Message}
			exact := what
			for _, s := range t.Diagnostic.Sites {
				exact.at += fmt.Sprint(s.Position, " ")
				vague[what] = vague[what] || s.Position.IsZero()
			}
			if other, there := in[exact]; there && other != n {
				return true
			}
			if other, there := in[what]; there && other != n {
				several[what] = true
			}
			in[exact], in[what] = n, n
		}
	}
	for what := range several {
		if vague[what] {
			return true
		}
	}
	return false
}

// merge puts the parts of a package together.
func merge(name string, parts []*Result) *Result {
	out := &Result{Clean: true, Model: model.Environment{Name: name, NamespaceServices: []model.NamespaceService{}}, Stages: []model.Stage{}, Invalid: map[model.Ref]bool{}}
	m := &out.Model
	for _, p := range parts {
		of := &p.Model
		if of.Description != "" || of.After != nil || of.GitOps != nil || of.MaxRemovals != "" || of.Rings != nil {
			declare(m, of)
		}
		m.ClusterTypes = append(m.ClusterTypes, of.ClusterTypes...)
		m.Clusters = append(m.Clusters, of.Clusters...)
		m.Workloads = append(m.Workloads, of.Workloads...)
		m.Registrations = append(m.Registrations, of.Registrations...)
		m.SchedulingPolicies = append(m.SchedulingPolicies, of.SchedulingPolicies...)
		m.Configs = append(m.Configs, of.Configs...)
		m.ConfigSchemas = append(m.ConfigSchemas, of.ConfigSchemas...)
		m.NamespaceServices = append(m.NamespaceServices, of.NamespaceServices...)
		m.Reconcilers = append(m.Reconcilers, of.Reconcilers...)
		out.Entities = append(out.Entities, p.Entities...)
		out.Uses = append(out.Uses, p.Uses...)
		out.Stages = append(out.Stages, p.Stages...)
		out.Reported = append(out.Reported, p.Reported...)
		maps.Copy(out.Invalid, p.Invalid)
	}
	byName(m.ClusterTypes, func(e *model.ClusterType) string { return e.Name })
	byName(m.Clusters, func(e *model.Cluster) string { return e.Name })
	byName(m.Workloads, func(e *model.Workload) string { return e.Name })
	byName(m.Registrations, func(e *model.Registration) string { return e.Name })
	byName(m.SchedulingPolicies, func(e *model.SchedulingPolicy) string { return e.Name })
	byName(m.Configs, func(e *model.Config) string { return e.Name })
	byName(m.ConfigSchemas, func(e *model.ConfigSchema) string { return e.Name })
	byName(m.NamespaceServices, func(e *model.NamespaceService) string { return e.Name })
	byName(m.Reconcilers, func(e *model.Reconciler) string { return e.Name })
	byName(out.Stages, func(e *model.Stage) string { return e.Name })
	slices.SortFunc(out.Entities, compareEntities)
	slices.SortStableFunc(out.Uses, func(a, b Use) int { return compareEntities(a.Ref, b.Ref) })
	return out
}

func byName[T any](entities []T, name func(*T) string) {
	slices.SortFunc(entities, func(a, b T) int { return compareNames(name(&a), name(&b)) })
}

func compareEntities(a, b model.Ref) int {
	return cmp.Or(strings.Compare(a.Collection, b.Collection), strings.Compare(a.Name, b.Name))
}

// digest gives every entity of a part the digest of what it says; key is that of
// the part's sources, for what is a function of the assignment.
func (p *Result) digest(key Key) {
	m := &p.Model
	function := func(ref model.Ref) model.Digest {
		return model.DigestBytes(append(key[:], ref.String()...))
	}
	for i := range m.ClusterTypes {
		e := &m.ClusterTypes[i]
		e.Digest = digestOf(*e)
	}
	for i := range m.Clusters {
		e := &m.Clusters[i]
		e.Digest = digestOf(*e)
	}
	for i := range m.Workloads {
		e := &m.Workloads[i]
		digestContract(e.Requires)
		for j := range e.Targets {
			t := &e.Targets[j]
			digestContract(t.Requires)
			t.Digest = digestOf(*t)
		}
		e.Digest = digestOf(*e)
	}
	for i := range m.Registrations {
		e := &m.Registrations[i]
		e.Digest = digestOf(*e)
	}
	for i := range m.SchedulingPolicies {
		e := &m.SchedulingPolicies[i]
		e.Digest = digestOf(*e)
	}
	for i := range m.Configs {
		e := &m.Configs[i]
		without := *e
		without.Match, without.AllowEmpty = model.Selector{}, false
		if e.Digest = digestOf(without); e.Facts != nil {
			e.Digest = function(model.Ref{Collection: "configs", Name: e.Name})
		}
	}
	for i := range m.ConfigSchemas {
		e := &m.ConfigSchemas[i]
		digestContract(e.Schema)
		without := *e
		without.Match, without.AllowEmpty = model.Selector{}, false
		e.Digest = digestOf(without)
	}
	for i := range m.NamespaceServices {
		e := &m.NamespaceServices[i]
		if e.Digest = digestOf(*e); e.Facts != nil {
			e.Digest = function(model.Ref{Collection: "namespaceServices", Name: e.Name})
		}
	}
	for i := range m.Reconcilers {
		e := &m.Reconcilers[i]
		if e.Digest = digestOf(*e); e.Facts != nil {
			e.Digest = function(model.Ref{Collection: "reconcilers", Name: e.Name})
		}
	}
}

func digestContract(c *model.Contract) {
	if c != nil {
		without := *c
		without.Ref = model.Ref{}
		c.Digest = digestOf(without)
	}
}

// digestOf returns the digest of an entity whose own Digest is still empty.
func digestOf(entity any) model.Digest { return model.DigestBytes(model.Encode(entity)) }

// Key identifies something that has been evaluated by all that can change it.
type Key [sha256.Size]byte
