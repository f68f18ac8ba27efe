// Package compose computes the configuration of the assignments of one environment. It
// composes the namespace, and the configuration graph by layered unification with
// provenance. It also computes the namespace service and the reconciler, if they are
// functions of the assignment.
//
// Assignments with the same configs, contracts and facts form a tuple, which is composed once.
// Data unify in Go. CUE evaluates only open expressions. The code for both is in this package,
// side by side, because the results must be the same.
//
// For example, two configs of examples/hello-world match the assignment
// dev/drone/hello-world-functional-test and have a default for LOG_LEVEL. These are everywhere, in
// layer 0 with "info", and edge, in layer 10 with "warn". [Composer.Compose] returns the [Graph] of
// the assignment's tuple. One of its Leaves is
//
//	Leaf{Path: "LOG_LEVEL", Value: "warn", From: [default of edge], Replaced: [default of everywhere]}
package compose

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// Functions evaluates functions of the assignment; *evaluate.Package implements it.
type Functions interface {
	Apply(context.Context, []function.Call) ([]function.Outcome, error)
}

// Plan has the configs, contracts and facts of each assignment of one environment, before
// composition. NewPlan makes it. Several goroutines may use it.
type Plan struct {
	// Namespaces are by assignment, in the order of the schedule.
	Namespaces []string
	// Failed reports, by assignment, an error that does not depend on its configuration.
	Failed []bool
	// Tuples are the distinct tuples, in the order of their first assignments.
	Tuples []Tuple
	// TupleOf is the number of the tuple, by assignment.
	TupleOf []int32
	// Matches counts the assignments that each config matches, in the order of the
	// environment's configs.
	Matches []int
	// Empty are the configs and config schemas that match no assignment.
	Empty []Empty
	// Shared are the reconciler's options that the assignments of a cluster type share, by cluster
	// type. Cluster types whose reconciler has errors are missing.
	Shared map[string]model.Value

	env         *model.Environment
	assignments []schedule.Assignment
	specs       map[*model.ClusterType]specs
	functions   *functions
	memo        *memo
	elsewhere   *expr.Elsewhere
	// by the class's folder, sorted by name; nil if no config uses facts of clusters
	clusters   map[string][]*model.Cluster
	hidden     bool      // whether errors hide clusters
	configs    [][]int32 // assignment -> the configs that match it, sorted by layer, then name
	schemas    [][]int32 // assignment -> the config schemas that match it
	ds         []planDiagnostic
	vocabulary func() selector.Vocabulary // of matches
	// why there are no assignments, in the form that diagnostics follow from; "" if there are any
	nothing string

	configDigests, schemaDigests [][]byte
	scratch                      []byte
}

// Empty is a config or config schema that matches no assignment.
type Empty struct {
	Ref     model.Ref
	Allowed bool // by allowEmpty
	// Warning reports it: diag.SelectsNothing, unresolved.
	Warning diag.Diagnostic
}

// Tuple is a set of assignments with the same configuration.
type Tuple struct {
	// Digest identifies the complete input of the graph.
	Digest [sha256.Size]byte
	// Assignments by number, ascending.
	Assignments []int32
	// PerCluster means that configs use facts of single clusters. Clusters are then the listed
	// clusters of the class, sorted by name, and the tuple is composed for each of them.
	PerCluster bool
	Clusters   []*model.Cluster

	configs, schemas []int32
	// uncontracted means that the contracts apply to the values on each cluster, and not to the
	// values that all clusters have in common.
	uncontracted bool
}

// NewPlan plans the assignments of a schedule. The diagnostics are unresolved and name the
// assignments that they concern. elsewhere evaluates expressions that may take long; if it is nil,
// they are evaluated in this process.
func NewPlan(ctx context.Context, env *model.Environment, s *schedule.Schedule, f Functions,
	satisfies selector.Satisfier, elsewhere *expr.Elsewhere) (*Plan, []diag.Diagnostic, error) {
	p := &Plan{
		Namespaces:  make([]string, len(s.Assignments)),
		Failed:      make([]bool, len(s.Assignments)),
		env:         env,
		assignments: s.Assignments,
		nothing:     s.WithoutAssignments(),
		functions:   &functions{Functions: f, memory: outcomes{}},
		memo:        &memo{},
		specs:       make(map[*model.ClusterType]specs, len(env.ClusterTypes)),
		elsewhere:   elsewhere,

		configDigests: rawDigests(env.Configs, func(c *model.Config) model.Digest { return c.Digest }),
		schemaDigests: rawDigests(env.ConfigSchemas,
			func(s *model.ConfigSchema) model.Digest { return s.Digest }),
	}
	p.vocabulary = sync.OnceValue(p.vocabularyOf)
	// The clusters of each class matter only if configs use facts of single clusters.
	if slices.ContainsFunc(env.Configs, func(c model.Config) bool { return usesCluster(&c) }) {
		p.clusters, p.hidden = map[string][]*model.Cluster{}, env.HidesClusters()
		for i := range env.Clusters {
			c := &env.Clusters[i]
			p.clusters[c.Folder] = append(p.clusters[c.Folder], c)
		}
	}
	for i := range env.ClusterTypes {
		ct := &env.ClusterTypes[i]
		p.specs[ct] = specs{
			find(env.NamespaceServices, ct.NamespaceService,
				func(s *model.NamespaceService) string { return s.Name }),
			find(env.Reconcilers, ct.Reconciler, func(r *model.Reconciler) string { return r.Name }),
		}
	}
	p.match(satisfies)
	if err := p.namespaces(ctx); err != nil {
		return nil, nil, err
	}
	if err := p.sharedSpecs(ctx); err != nil {
		return nil, nil, err
	}
	p.group()
	var out []diag.Diagnostic
	for _, d := range p.ds {
		names := make([]string, len(d.assignments))
		for i, a := range d.assignments {
			names[i] = p.assignments[a].ID(p.env.Name)
		}
		d.Environment = p.env.Name
		out = append(out, d.Diagnostic.For(names...))
	}
	return p, out, nil
}

// planDiagnostic is a diagnostic with the assignments that it concerns, by number.
type planDiagnostic struct {
	diag.Diagnostic
	assignments []int
}

// report adds a diagnostic about assignments. An error makes them fail.
func (p *Plan) report(d diag.Diagnostic, assignments ...int) {
	p.ds = append(p.ds, planDiagnostic{d, assignments})
	if d.Severity == diag.Error {
		for _, i := range assignments {
			p.Failed[i] = true
		}
	}
}

// group groups the assignments into tuples.
func (p *Plan) group() {
	p.TupleOf = make([]int32, len(p.assignments))
	count := len(p.assignments)
	digests := make([][sha256.Size]byte, 0, count)
	first, sizes := make([]int32, 0, count), make([]int32, 0, count) // by tuple
	// of tuples, by the first bytes of their digests, or the next free number
	numbers := make(map[uint64]int32, count)
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
		p.Tuples[n] = Tuple{Digest: digests[n], Assignments: all[:0:sizes[n]],
			configs: p.configs[first[n]], schemas: p.schemas[first[n]]}
		if p.clusters != nil && slices.ContainsFunc(p.configs[first[n]],
			func(c int32) bool { return usesCluster(&p.env.Configs[c]) }) {
			t, ct := &p.Tuples[n], p.assignments[first[n]].ClusterType
			t.PerCluster, t.Clusters, t.uncontracted = true, p.clusters[ct.Name], p.uncontracted(ct)
		}
		all = all[sizes[n]:]
	}
	for i, n := range p.TupleOf {
		p.Tuples[n].Assignments = append(p.Tuples[n].Assignments, int32(i))
	}
	p.configs, p.schemas = nil, nil
}

// Configs returns the names of the configs that match an assignment, sorted.
func (p *Plan) Configs(assignment int) []string {
	matching := append(make([]int32, 0, 32), p.Tuples[p.TupleOf[assignment]].configs...)
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

// UnusedLists warns of list strategies for paths at which no assignment of their config schema has
// a value. Most likely such a path is misspelt. used are the paths that composed by a strategy in
// any tuple. No tuple may have failed.
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
				out = append(out, diag.New(diag.SelectsNothing,
					fmt.Sprintf("config schema %s says how %s composes, and no assignment has it", s.Name, path)).
					At(ref, "").On(ref.String()))
			}
		}
	}
	return out
}

// listRef returns the reference to a config schema's strategy for a path.
func listRef(s *model.ConfigSchema, path string) model.Ref {
	return model.Ref{Collection: "configSchemas", Name: s.Name, Path: "lists." + model.Label(path)}
}

// FunctionResults has the results of the functions that tuples use.
type FunctionResults struct{ outcomes outcomes }

// Prepare evaluates the configs of tuples that are functions of the assignment, all at once. That
// costs much less than one by one during the composition.
func (p *Plan) Prepare(ctx context.Context, tuples []int32) (*FunctionResults, error) {
	var calls []call
	for _, n := range tuples {
		calls = p.appendCalls(calls, &p.Tuples[n], nil)
	}
	made, err := p.functions.apply(ctx, calls)
	return &FunctionResults{made}, err
}

// PrepareOn is Prepare for a tuple on clusters.
func (p *Plan) PrepareOn(ctx context.Context, tuple int32,
	clusters []*model.Cluster) (*FunctionResults, error) {
	var calls []call
	for _, c := range clusters {
		calls = p.appendCalls(calls, &p.Tuples[tuple], c)
	}
	made, err := p.functions.apply(ctx, calls)
	return &FunctionResults{made}, err
}

// appendCalls appends the calls of a tuple's configs; cluster is nil for the values that all
// clusters have in common.
func (p *Plan) appendCalls(calls []call, t *Tuple, cluster *model.Cluster) []call {
	for _, n := range t.configs {
		config := &p.env.Configs[n]
		if config.Facts != nil && !config.Invalid && (cluster != nil || !usesCluster(config)) {
			calls = append(calls, p.configCall(config, t, cluster))
		}
	}
	return calls
}

// configCall returns the call of a config that is a function, for a tuple.
func (p *Plan) configCall(config *model.Config, t *Tuple, cluster *model.Cluster) call {
	ref := model.Ref{Collection: "configs", Name: config.Name}
	facts := p.facts(int(t.Assignments[0]), config.Facts, nil)
	if usesCluster(config) {
		facts = model.StructOf(append(slices.Clone(facts.Fields()),
			model.Field{Name: model.ClusterFact,
				Value: clusterFact(cluster, p.assignments[t.Assignments[0]].ClusterType)})...)
	}
	return newCall(function.Call{Entity: ref, Facts: facts})
}

// OfClusters returns the configs of a tuple that use facts of single clusters,
// sorted by layer, then name.
func (p *Plan) OfClusters(tuple int) []model.Ref { return p.ofClusters(&p.Tuples[tuple]) }

func (p *Plan) ofClusters(t *Tuple) []model.Ref {
	var out []model.Ref
	for _, n := range t.configs {
		if c := &p.env.Configs[n]; usesCluster(c) {
			out = append(out, model.Ref{Collection: "configs", Name: c.Name})
		}
	}
	return out
}

// uncontracted reports whether only single clusters of a class, with their own values, use the
// common values. If no clusters are listed, others may pull the folder unchanged.
func (p *Plan) uncontracted(ct *model.ClusterType) bool {
	return len(p.clusters[ct.Name]) > 0 || ct.Entries == model.ClusterEntries || p.hidden
}

// usesCluster reports whether a config has values for single clusters.
func usesCluster(c *model.Config) bool { return slices.Contains(c.Facts, model.ClusterFact) }

// Composer composes tuples of a plan, one after the other.
type Composer struct {
	plan *Plan
	eval *expr.Evaluator
}

// NewEvaluator returns an evaluator for the expressions of the plan's model.
func (p *Plan) NewEvaluator() *expr.Evaluator { return expr.New(p.elsewhere) }

// NewComposer returns a composer, which is for one goroutine.
func (p *Plan) NewComposer() *Composer { return &Composer{p, p.NewEvaluator()} }

// Compose composes a tuple, by its number in Plan.Tuples, for which with must have been prepared.
// For a tuple with Clusters it composes only the values that they have in common, without configs
// that use facts of a cluster. These values may break contracts.
func (c *Composer) Compose(tuple int32,
	with *FunctionResults) *Graph {
	return c.ComposeOn(tuple, nil, with)
}

// ComposeOn composes a tuple on one of its Clusters, for which with must have been prepared.
func (c *Composer) ComposeOn(tuple int32, cluster *model.Cluster, with *FunctionResults) *Graph {
	return c.plan.composeTuple(&c.plan.Tuples[tuple], cluster, with, c.eval)
}

func (p *Plan) composeTuple(t *Tuple, cluster *model.Cluster, with *FunctionResults,
	eval *expr.Evaluator) *Graph {
	m := p.memo.merger(eval)
	defer p.memo.release(m)
	m.lists = p.strategies(t, m)
	for _, n := range t.schemas {
		if p.env.ConfigSchemas[n].Invalid {
			m.graph.Failed = true // the list strategies or the contracts are not known
		}
	}
	layers := m.layers[:0]
	for _, n := range t.configs {
		config := &p.env.Configs[n]
		l := layer{config, config.Values, config.Defaults, config.Overrides}
		switch {
		case config.Facts == nil || config.Invalid:
		case cluster == nil && usesCluster(config):
			continue
		default:
			o := with.outcomes.of(p.configCall(config, t, cluster))
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
		said := len(m.graph.ds)
		if of := p.ofClusters(t); cluster == nil && len(of) > 0 {
			m.forClusters, m.clusterType = of[0].Name, p.assignments[t.Assignments[0]].ClusterType.TypeName()
		}
		m.contracted(p.contracts(t))
		if cluster == nil && t.uncontracted {
			m.graph.ds, m.graph.Failed = m.graph.ds[:said], false
		}
		m.undeliverable()
		m.plaintexts(layers)
		m.unfilled(layers)
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
				m.fail(diag.New(diag.ListStrategies,
					"config schemas give "+path+" different list strategies").On(path).
					At(other.ref, other.String()).At(ref, strategy.String()).
					Hinting("give the path one strategy"))
				continue
			}
			rules[path] = listRule{strategy, ref}
		}
	}
	return rules
}

// contracts returns the tuple's contracts: the platform's contracts by name, then the contracts of
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

// kindOf returns the kind of an entity for messages.
func kindOf(ref model.Ref) string {
	if ref.Collection == "configs" {
		return "config"
	}
	return "config schema"
}
