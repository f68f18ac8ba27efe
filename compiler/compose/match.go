package compose

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// match finds the configs and config schemas of every assignment.
func (p *Plan) match(satisfies selector.Satisfier) {
	names := map[string]bool{}
	for i := range p.env.Configs {
		p.env.Configs[i].Match.AddKeys(names)
	}
	for i := range p.env.ConfigSchemas {
		p.env.ConfigSchemas[i].Match.AddKeys(names)
	}
	index := p.index(names, satisfies)
	p.Matches = make([]int, len(p.env.Configs))
	configs := matches{sizes: make([]int32, len(p.assignments))}
	order := make([]int, len(p.env.Configs)) // by layer, then name
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order,
		func(a, b int) int { return p.env.Configs[a].Layer - p.env.Configs[b].Layer })
	for _, n := range order {
		config := &p.env.Configs[n]
		ref := model.Ref{Collection: "configs", Name: config.Name}
		hits := p.hits(index, config.Match, config.MatchUnknown, config.Clusters, ref)
		p.Matches[n] = len(hits)
		configs.add(n, hits)
		if len(hits) == 0 && !config.MatchUnknown {
			p.unmatched(index, ref, &config.Match, config.Clusters, config.AllowEmpty)
		}
		switch {
		case config.UnknownOf != "":
			// The assignments may need unknown configs of a registration.
			if len(hits) > 0 {
				ref := model.Ref{Collection: "registrations", Name: config.UnknownOf}
				p.report(diag.New(diag.BrokenConfig, "the configs of registration "+config.UnknownOf+
					" are not known, and these assignments may need them").
					At(ref.At("git"), "").On(ref.String()).Following(ref.String()), numbers(hits)...)
			}
		case config.Invalid:
			p.broken(ref, hits)
		}
	}
	p.configs = configs.byAssignment()
	schemas := matches{sizes: make([]int32, len(p.assignments))}
	for n := range p.env.ConfigSchemas {
		s := &p.env.ConfigSchemas[n]
		ref := model.Ref{Collection: "configSchemas", Name: s.Name}
		hits := p.hits(index, s.Match, s.MatchUnknown, s.Clusters, ref)
		schemas.add(n, hits)
		if len(hits) == 0 && !s.MatchUnknown {
			p.unmatched(index, ref, &s.Match, s.Clusters, s.AllowEmpty)
		}
		if s.Invalid {
			p.broken(ref, hits)
		}
	}
	p.schemas = schemas.byAssignment()
}

// matches are the assignments that each entity matches.
type matches struct {
	entities []int32   // by number, in the order in which they were added
	hits     [][]int32 // of the entity at the same index
	sizes    []int32   // by assignment, how many entities match it
}

// add adds an entity with the assignments that it matches.
func (m *matches) add(entity int, hits []int32) {
	m.entities, m.hits = append(m.entities, int32(entity)), append(m.hits, hits)
	for _, i := range hits {
		m.sizes[i]++
	}
}

// byAssignment returns the entities that match each assignment, in their order.
func (m *matches) byAssignment() [][]int32 {
	total := 0
	for _, hits := range m.hits {
		total += len(hits)
	}
	all, out := make([]int32, total), make([][]int32, len(m.sizes))
	for i, size := range m.sizes {
		out[i], all = all[:0:size], all[size:]
	}
	for n, hits := range m.hits {
		for _, i := range hits {
			out[i] = append(out[i], m.entities[n])
		}
	}
	return out
}

// Select returns the numbers of the assignments that each selector selects, ascending.
func (p *Plan) Select(selectors []model.Selector, satisfies selector.Satisfier) [][]int {
	names := map[string]bool{}
	for i := range selectors {
		selectors[i].AddKeys(names)
	}
	index := p.index(names, satisfies)
	out := make([][]int, len(selectors))
	for i, s := range selectors {
		out[i] = index.Select(s)
	}
	return out
}

// index indexes the assignments by the given names of facts.
func (p *Plan) index(names map[string]bool, satisfies selector.Satisfier) *selector.Index {
	asked := &selectedNames{slices.Sorted(maps.Keys(names)), map[*model.ClusterType][]numberedFact{},
		map[*model.DeploymentTarget][]numberedFact{}, map[*model.DeploymentTarget][]numberedFact{}}
	return selector.NewIndexOf(asked.names, func(yield func([]selector.Fact) bool) {
		facts := make([]selector.Fact, len(asked.names))
		for i := range p.assignments {
			// Set facts to the facts of an assignment, but only those that selectors request.
			a := &p.assignments[i]
			clear(facts)
			implied, there := asked.implied[a.Target]
			if !there {
				implied = remembered(asked, asked.implied, a.Target, p.implied(a))
			}
			for _, l := range implied {
				facts[l.number] = l.fact
			}
			for _, l := range asked.clusterType(a.ClusterType) {
				facts[l.number] = l.fact
			}
			for _, l := range remembered(asked, asked.targets, a.Target, a.Target.Labels) {
				name := asked.names[l.number]
				if other, both := a.ClusterType.Labels[name]; both && other != a.Target.Labels[name] {
					facts[l.number] = selector.Values(other, a.Target.Labels[name])
					continue
				}
				facts[l.number] = l.fact
			}
			if !yield(facts) {
				return
			}
		}
	}, satisfies)
}

// hits returns the assignments that the match and the clusters of an entity select.
func (p *Plan) hits(index *selector.Index, s model.Selector, unknown bool, clusters *model.Selector,
	of model.Ref) []int32 {
	if unknown {
		s = model.Selector{Op: model.OpAll}
	}
	hits := index.Selected(s)
	if clusters == nil {
		return hits
	}
	name := model.SelectorOf(of)
	return slices.DeleteFunc(slices.Clone(hits),
		func(i int32) bool { return !p.assignments[i].ClusterType.Selects(clusters, name) })
}

// unmatched reports a config or config schema that matches no assignment.
func (p *Plan) unmatched(index *selector.Index, ref model.Ref, match, clusters *model.Selector,
	allowed bool) {
	what, of := ref.At("match"), kindOf(ref)+" "+ref.Name
	d := diag.New(diag.SelectsNothing, of+" matches no assignment")
	byCluster := clusters != nil && len(index.Selected(*match)) > 0
	if byCluster {
		what, d.Message = ref.At("clusters"), "clusters of "+of+" selects nothing"
	}
	d = d.At(what, "").On(what.String())
	d.Environment = p.env.Name
	switch {
	case allowed || p.env.Incomplete:
	case byCluster:
		d = d.Hinting("no cluster that has what it matches satisfies it")
	default:
		d = p.vocabulary().Explain(d, "assignment", match).Following(p.nothing)
	}
	p.Empty = append(p.Empty, Empty{ref, allowed, d})
	if !allowed && !p.env.Incomplete {
		p.report(d)
	}
}

// broken reports the assignments that need a config or config schema with errors.
func (p *Plan) broken(ref model.Ref, hits []int32) {
	if len(hits) > 0 {
		p.report(diag.New(diag.BrokenConfig, kindOf(ref)+" "+ref.Name+" has errors, and these "+
			"assignments need it").At(ref, "").On(ref.String()).
			Following(ref.String()), numbers(hits)...)
	}
}

// numbers returns the numbers of assignments in the form for reports.
func numbers(hits []int32) []int {
	out := make([]int, len(hits))
	for i, n := range hits {
		out[i] = int(n)
	}
	return out
}

// digest identifies the complete input of the assignment's graph, and everything that
// diagnostics say about it.
func (p *Plan) digest(i int) [sha256.Size]byte {
	b := p.scratch[:0]
	text := func(s string) {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	for _, n := range p.configs[i] {
		config := &p.env.Configs[n]
		b = append(b, p.configDigests[n]...)
		if config.Facts != nil {
			b = p.facts(i, config.Facts, nil).AppendBinary(b)
			if usesCluster(config) {
				text(p.assignments[i].ClusterType.Name)
				text(strconv.FormatBool(p.uncontracted(p.assignments[i].ClusterType)))
			}
		}
	}
	text("|")
	for _, n := range p.schemas[i] {
		b = append(b, p.schemaDigests[n]...)
	}
	for _, contract := range p.ownContracts(i) {
		text("")
		if contract != nil {
			text(string(contract.Digest))
			text(contract.Ref.String())
		}
	}
	p.scratch = b
	return sha256.Sum256(b)
}

// rawDigests returns the digests of entities as bytes, which are half as long as their text.
func rawDigests[E any](entities []E, digest func(*E) model.Digest) [][]byte {
	out := make([][]byte, len(entities))
	for i := range entities {
		text := digest(&entities[i])
		sum, err := hex.DecodeString(string(text))
		if err != nil || len(sum) != sha256.Size {
			sum = make([]byte, sha256.Size)
			copy(sum, text) // an invalid entity has no digest
		}
		out[i] = sum
	}
	return out
}

// ownContracts returns the contracts of the assignment's workload and target; nil
// if there is no contract.
func (p *Plan) ownContracts(i int) [2]*model.Contract {
	return [2]*model.Contract{p.assignments[i].Workload.Requires, p.assignments[i].Target.Requires}
}
