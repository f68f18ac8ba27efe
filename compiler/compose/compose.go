// Package compose resolves what the assignments of one environment are
// configured with: the namespace, the configuration graph by layered
// unification with provenance, and the namespace service and reconciler where
// they are functions of the assignment.
//
// Assignments with the same configs, contracts and facts form a tuple, which is
// composed once. Data unify in Go; CUE is asked only for what is open.
package compose

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// Functions evaluates what is a function of the assignment; *evaluate.Package does.
type Functions interface {
	Apply(context.Context, []evaluate.Call) ([]evaluate.Outcome, error)
}

// Composition is what one assignment is configured with.
type Composition struct {
	Namespace string
	// Graph is shared by all assignments of a tuple.
	Graph *Graph
	// NamespaceService and Reconciler are the fields of the two, evaluated for the
	// assignment. Reconciler holds those of the backend.
	NamespaceService, Reconciler model.Value
	// Failed says that an error concerns the assignment.
	Failed bool
}

// Result is an environment, composed.
type Result struct {
	// Compositions are in the order of the schedule's assignments.
	Compositions []Composition
	// Tuples is the number of distinct ones.
	Tuples int
	// Matches counts the assignments that each config matches, in the order of the
	// environment's configs.
	Matches []int
	// Shared are the reconciler's options that the assignments of a cluster type
	// share, by cluster type; one is absent where its reconciler has errors.
	Shared map[string]model.Value
}

// Compose composes all assignments of a schedule. The diagnostics are
// unresolved and name the assignments that they concern.
func Compose(ctx context.Context, env *model.Environment, s *schedule.Schedule, f Functions, satisfies selector.Satisfier) (*Result, []diag.Diagnostic, error) {
	c := &composer{ctx: ctx, env: env, assignments: s.Assignments, functions: f, memo: &memo{results: map[string]expr.Result{}}}
	c.out = make([]Composition, len(s.Assignments))
	c.facts = make([]assignmentFacts, len(s.Assignments))
	for i := range s.Assignments {
		c.facts[i] = factsOf(env.Name, &s.Assignments[i])
	}
	c.match(satisfies)
	for _, step := range []func() error{c.namespaces, c.applyConfigs, c.graphs, c.unusedLists, c.sharedSpecs, c.specs} {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	return &Result{c.out, len(c.tuples), c.matches, c.shared}, c.diagnostics(), nil
}

type composer struct {
	ctx         context.Context
	env         *model.Environment
	assignments []schedule.Assignment
	functions   Functions
	memo        *memo

	facts   []assignmentFacts
	configs [][]int32 // assignment -> the configs that match it, sorted by layer, then name
	schemas [][]int32 // assignment -> the config schemas that match it
	shared  map[string]model.Value
	matches []int // config -> how many assignments it matches
	out     []Composition
	tuples  []*tuple
	applied map[string]evaluate.Outcome // of config functions, by call key
	ds      []about
}

// about is a diagnostic with the assignments that it concerns, by number.
type about struct {
	diag.Diagnostic
	assignments []int
}

func (c *composer) report(d diag.Diagnostic, assignments ...int) {
	c.ds = append(c.ds, about{d, assignments})
	if d.Severity == diag.Error {
		for _, i := range assignments {
			c.out[i].Failed = true
		}
	}
}

// diagnostics gives every diagnostic the names of its assignments.
func (c *composer) diagnostics() []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, t := range c.tuples {
		for _, d := range t.graph.ds {
			c.ds = append(c.ds, about{d, t.assignments})
		}
	}
	for _, d := range c.ds {
		names := make([]string, len(d.assignments))
		for i, a := range d.assignments {
			names[i] = c.assignments[a].ID(c.env.Name)
		}
		d.Environment = c.env.Name
		out = append(out, d.Diagnostic.For(names...))
	}
	return out
}

// match finds the configs and config schemas of every assignment.
func (c *composer) match(satisfies selector.Satisfier) {
	index := selector.NewIndex(func(yield func(selector.Facts) bool) {
		for i := range c.facts {
			if !yield(c.facts[i].match) {
				return
			}
		}
	}, satisfies)
	c.configs = make([][]int32, len(c.assignments))
	c.matches = make([]int, len(c.env.Configs))
	for _, n := range c.inLayers() {
		config := &c.env.Configs[n]
		hits := c.hits(index, config.Match, config.MatchUnknown)
		c.matches[n] = len(hits)
		for _, i := range hits {
			c.configs[i] = append(c.configs[i], int32(n))
		}
		ref := model.Ref{Collection: "configs", Name: config.Name}
		c.unmatched(hits, config.MatchUnknown, ref)
		if config.Sick {
			c.broken(ref, hits)
		}
	}
	c.schemas = make([][]int32, len(c.assignments))
	for n := range c.env.ConfigSchemas {
		s := &c.env.ConfigSchemas[n]
		hits := c.hits(index, s.Match, s.MatchUnknown)
		for _, i := range hits {
			c.schemas[i] = append(c.schemas[i], int32(n))
		}
		ref := model.Ref{Collection: "configSchemas", Name: s.Name}
		c.unmatched(hits, s.MatchUnknown, ref)
		if s.Sick {
			c.broken(ref, hits)
		}
	}
}

// inLayers returns the numbers of the configs, sorted by layer, then name.
func (c *composer) inLayers() []int {
	order := make([]int, len(c.env.Configs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return c.env.Configs[a].Layer - c.env.Configs[b].Layer })
	return order
}

func (c *composer) hits(index *selector.Index, s model.Selector, unknown bool) []int {
	if unknown {
		s = model.Selector{Op: model.OpAll}
	}
	return index.Select(s)
}

func (c *composer) unmatched(hits []int, unknown bool, ref model.Ref) {
	if len(hits) == 0 && !unknown && !c.env.Uncertain {
		c.report(diag.New(diag.SelectsNothing, kindOf(ref)+" "+ref.Name+" matches no assignment").
			At(ref.At("match"), "").On(ref.At("match").String()))
	}
}

func (c *composer) broken(ref model.Ref, hits []int) {
	if len(hits) > 0 {
		c.report(diag.New(diag.BrokenConfig, kindOf(ref)+" "+ref.Name+" has errors, and these assignments need it").At(ref, "").On(ref.String()), hits...)
	}
}

// tuple is a set of assignments that are configured alike.
type tuple struct {
	configs, schemas []int32
	first            int // one of the assignments
	assignments      []int
	graph            *Graph
}

// graphs groups the assignments into tuples, and composes each.
func (c *composer) graphs() error {
	byKey := map[string]*tuple{}
	for i := range c.assignments {
		key := c.tupleKey(i)
		t := byKey[key]
		if t == nil {
			t = &tuple{configs: c.configs[i], schemas: c.schemas[i], first: i}
			byKey[key] = t
			c.tuples = append(c.tuples, t)
		}
		t.assignments = append(t.assignments, i)
	}
	group, ctx := errgroup.WithContext(c.ctx)
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() error {
			eval := expr.New()
			for n := w; n < len(c.tuples); n += workers {
				if err := ctx.Err(); err != nil {
					return err
				}
				c.tuples[n].graph = c.composeTuple(c.tuples[n], eval)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, t := range c.tuples {
		for _, i := range t.assignments {
			c.out[i].Graph = t.graph
			c.out[i].Failed = c.out[i].Failed || t.graph.Failed
		}
	}
	return nil
}

// unusedLists warns of list strategies for paths that no assignment of their
// config schema has a value at: most likely a misspelt path.
func (c *composer) unusedLists() error {
	used := map[string]bool{}
	applied := map[int32]bool{}
	for _, t := range c.tuples {
		if t.graph.Failed {
			return nil // what it lacks may be the reason
		}
		for _, path := range t.graph.lists {
			used[path] = true
		}
		for _, n := range t.schemas {
			applied[n] = true
		}
	}
	for n := range c.env.ConfigSchemas {
		s := &c.env.ConfigSchemas[n]
		if !applied[int32(n)] || c.env.Uncertain {
			continue
		}
		for path := range s.Lists {
			if ref := listRef(s, path); !used[path] {
				c.report(diag.New(diag.SelectsNothing, fmt.Sprintf("config schema %s says how %s composes, and no assignment has it", s.Name, path)).
					At(ref, "").On(ref.String()))
			}
		}
	}
	return nil
}

func listRef(s *model.ConfigSchema, path string) model.Ref {
	return model.Ref{Collection: "configSchemas", Name: s.Name, Path: "lists." + model.Label(path)}
}

// tupleKey identifies everything that the assignment's graph depends on.
func (c *composer) tupleKey(i int) string {
	var b strings.Builder
	number := func(n int32) {
		b.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	}
	for _, n := range c.configs[i] {
		number(n)
		if config := &c.env.Configs[n]; config.Facts != nil {
			b.WriteString(c.callKey(config.Name, config.Facts, i))
		}
	}
	b.WriteByte('|')
	for _, n := range c.schemas[i] {
		number(n)
	}
	b.WriteByte('|')
	for _, contract := range []*model.Contract{c.assignments[i].Workload.Requires, c.assignments[i].Target.Requires} {
		if contract != nil {
			b.WriteString(contract.Ref.String())
		}
		b.WriteByte('|')
	}
	return b.String()
}

func (c *composer) composeTuple(t *tuple, eval *expr.Evaluator) *Graph {
	m := &merger{graph: &Graph{}, eval: eval, memo: c.memo}
	m.lists = c.strategies(t, m)
	for _, n := range t.schemas {
		if c.env.ConfigSchemas[n].Sick {
			m.graph.Failed = true // how lists compose, or what must hold, is not known
		}
	}
	var layers []layer
	for _, n := range t.configs {
		config := &c.env.Configs[n]
		l := layer{config, config.Values, config.Defaults, config.Overrides}
		if config.Facts != nil && !config.Sick {
			o := c.applied[c.callKey(config.Name, config.Facts, t.first)]
			l.values, l.defaults, l.overrides = o.Values, o.Defaults, o.Overrides
			if diag.Errors(o.Diagnostics) {
				m.graph.Failed = true
			}
		}
		if config.Sick {
			m.graph.Failed = true
		}
		layers = append(layers, l)
	}
	if !m.graph.Failed {
		m.compose(layers)
	}
	if !m.graph.Failed {
		m.contracted(c.contracts(t))
		m.undeliverable()
		m.plaintexts(layers)
	}
	slices.SortStableFunc(m.graph.Leaves, func(a, b Leaf) int { return strings.Compare(a.Path, b.Path) })
	m.graph.Plain, m.graph.Secrets = splitSecrets(m.graph.Values)
	m.graph.Digest = model.DigestBytes(m.graph.Values.AppendJSON(nil))
	return m.graph
}

// strategies collects the list strategies of the tuple's config schemas.
func (c *composer) strategies(t *tuple, m *merger) map[string]listRule {
	rules := map[string]listRule{}
	for _, n := range t.schemas {
		s := &c.env.ConfigSchemas[n]
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
func (c *composer) contracts(t *tuple) []*model.Contract {
	var out []*model.Contract
	for _, n := range t.schemas {
		if s := &c.env.ConfigSchemas[n]; s.Schema != nil {
			out = append(out, s.Schema)
		}
	}
	a := &c.assignments[t.first]
	for _, contract := range []*model.Contract{a.Workload.Requires, a.Target.Requires} {
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
