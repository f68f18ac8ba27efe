package compose

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// group groups the assignments into tuples.
func (p *Plan) group() {
	p.TupleOf = make([]int32, len(p.assignments))
	most := len(p.assignments)
	digests := make([][sha256.Size]byte, 0, most)
	first, sizes := make([]int32, 0, most), make([]int32, 0, most) // by tuple
	numbers := make(map[uint64]int32, most)                        // of tuples, by what their digests begin with, or the next that is free
	for i := range p.assignments {
		digest := p.digest(i)
		n := int32(len(digests))
		for at := binary.BigEndian.Uint64(digest[:]); ; at++ {
			other, taken := numbers[at]
			if !taken {
				numbers[at] = n
				digests, first, sizes = append(digests, digest), append(first, int32(i)), append(sizes, 0)
				break
			}
			if digests[other] == digest {
				n = other
				break
			}
		}
		p.TupleOf[i] = n
		sizes[n]++
	}
	p.Tuples = make([]Tuple, len(digests))
	all := make([]int32, len(p.assignments))
	for n := range p.Tuples {
		p.Tuples[n] = Tuple{Digest: digests[n], Assignments: all[:0:sizes[n]], configs: p.configs[first[n]], schemas: p.schemas[first[n]]}
		all = all[sizes[n]:]
	}
	for i, n := range p.TupleOf {
		p.Tuples[n].Assignments = append(p.Tuples[n].Assignments, int32(i))
	}
	p.configs, p.schemas = nil, nil
}

// Configs returns the names of the configs that match an assignment, sorted.
func (p *Plan) Configs(assignment int) []string {
	matching := slices.Clone(p.Tuples[p.TupleOf[assignment]].configs)
	slices.Sort(matching)
	names := make([]string, 0, len(matching))
	for _, n := range matching {
		if c := &p.env.Configs[n]; c.UnknownOf == "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// ConfigSchemas returns the names of the config schemas that match an assignment, sorted.
func (p *Plan) ConfigSchemas(assignment int) []string {
	matching := p.Tuples[p.TupleOf[assignment]].schemas
	names := make([]string, len(matching))
	for i, n := range matching {
		names[i] = p.env.ConfigSchemas[n].Name
	}
	return names
}

// UnusedLists warns of list strategies for paths that no assignment of their
// config schema has a value at: most likely a misspelt path. used are the paths
// that composed by a strategy in any tuple, of which none may have failed.
func (p *Plan) UnusedLists(used map[string]bool) []diag.Diagnostic {
	if p.env.Incomplete {
		return nil
	}
	applied := map[int32]bool{}
	for i := range p.Tuples {
		for _, n := range p.Tuples[i].schemas {
			applied[n] = true
		}
	}
	var out []diag.Diagnostic
	for n := range p.env.ConfigSchemas {
		s := &p.env.ConfigSchemas[n]
		if !applied[int32(n)] {
			continue
		}
		for path := range s.Lists {
			if ref := listRef(s, path); !used[path] {
				out = append(out, diag.New(diag.SelectsNothing, fmt.Sprintf("config schema %s says how %s composes, and no assignment has it", s.Name, path)).
					At(ref, "").On(ref.String()))
			}
		}
	}
	return out
}

func listRef(s *model.ConfigSchema, path string) model.Ref {
	return model.Ref{Collection: "configSchemas", Name: s.Name, Path: "lists." + model.Label(path)}
}

// Prepared is what tuples need of functions of the assignment.
type Prepared struct{ outcomes outcomes }

// Prepare evaluates the configs of tuples that are functions of the assignment,
// all at once, which costs much less than one by one when they are composed.
func (p *Plan) Prepare(ctx context.Context, tuples []int32) (*Prepared, error) {
	var calls []call
	for _, n := range tuples {
		t := &p.Tuples[n]
		for _, c := range t.configs {
			if config := &p.env.Configs[c]; config.Facts != nil && !config.Invalid {
				calls = append(calls, p.configCall(config, t))
			}
		}
	}
	made, err := p.functions.apply(ctx, calls)
	return &Prepared{made}, err
}

func (p *Plan) configCall(config *model.Config, t *Tuple) call {
	ref := model.Ref{Collection: "configs", Name: config.Name}
	return newCall(function.Call{Entity: ref, Facts: p.facts(int(t.Assignments[0]), config.Facts, nil)})
}

// Composer composes tuples of a plan, one after the other.
type Composer struct {
	plan *Plan
	eval *expr.Evaluator
}

// NewEvaluator returns what evaluates the expressions of the plan's model.
func (p *Plan) NewEvaluator() *expr.Evaluator { return expr.New(p.elsewhere) }

// NewComposer returns a composer, which is for one goroutine.
func (p *Plan) NewComposer() *Composer { return &Composer{p, p.NewEvaluator()} }

// Compose composes a tuple, by its number in Plan.Tuples, for which with must
// have been prepared.
func (c *Composer) Compose(tuple int32, with *Prepared) *Graph {
	return c.plan.composeTuple(&c.plan.Tuples[tuple], with, c.eval)
}

func (p *Plan) composeTuple(t *Tuple, with *Prepared, eval *expr.Evaluator) *Graph {
	m := p.memo.merger(eval)
	defer p.memo.release(m)
	m.lists = p.strategies(t, m)
	for _, n := range t.schemas {
		if p.env.ConfigSchemas[n].Invalid {
			m.graph.Failed = true // how lists compose, or what must hold, is not known
		}
	}
	layers := m.layers[:0]
	for _, n := range t.configs {
		config := &p.env.Configs[n]
		l := layer{config, config.Values, config.Defaults, config.Overrides}
		if config.Facts != nil && !config.Invalid {
			o := with.outcomes.of(p.configCall(config, t))
			m.graph.ds = append(m.graph.ds, o.Diagnostics...)
			l.values, l.defaults, l.overrides = o.Values, o.Defaults, o.Overrides
			if diag.Errors(o.Diagnostics) {
				m.graph.Failed = true
			}
		}
		if config.Invalid {
			m.graph.Failed = true
		}
		layers = append(layers, l)
	}
	m.layers = layers
	if !m.graph.Failed {
		m.compose(layers)
	}
	if !m.graph.Failed {
		m.graph.Values, m.graph.Removed = m.graph.Values.WithoutNulls()
		m.contracted(p.contracts(t))
		m.undeliverable()
		m.plaintexts(layers)
	}
	return m.finish()
}

// strategies collects the list strategies of the tuple's config schemas.
func (p *Plan) strategies(t *Tuple, m *merger) map[string]listRule {
	rules := map[string]listRule{}
	for _, n := range t.schemas {
		s := &p.env.ConfigSchemas[n]
		for path, strategy := range s.Lists {
			ref := listRef(s, path)
			other, there := rules[path]
			if there && other.ListStrategy != strategy {
				m.fail(diag.New(diag.ListStrategies, "config schemas give "+path+" different list strategies").On(path).
					At(other.ref, other.String()).At(ref, strategy.String()).
					Hinting("give the path one strategy"))
				continue
			}
			rules[path] = listRule{strategy, ref}
		}
	}
	return rules
}

// contracts returns the tuple's contracts: the platform's by name, then those of
// the workload and the target.
func (p *Plan) contracts(t *Tuple) []*model.Contract {
	var out []*model.Contract
	for _, n := range t.schemas {
		if s := &p.env.ConfigSchemas[n]; s.Schema != nil {
			out = append(out, s.Schema)
		}
	}
	for _, contract := range p.ownContracts(int(t.Assignments[0])) {
		if contract != nil {
			out = append(out, contract)
		}
	}
	return out
}

func kindOf(ref model.Ref) string {
	if ref.Collection == "configs" {
		return "config"
	}
	return "config schema"
}
