// Package compose resolves what the assignments of one environment are
// configured with: the namespace, the configuration graph by layered
// unification with provenance, and the namespace service and reconciler where
// they are functions of the assignment.
//
// Assignments with the same configs, contracts and facts form a tuple, which is
// composed once. Data unify in Go; CUE is asked only for what is open. Both ways are here,
// one beside the other, since they have to give the same.
package compose

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/function"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/selector"
)

// Functions evaluates what is a function of the assignment; *evaluate.Package does.
type Functions interface {
	Apply(context.Context, []function.Call) ([]function.Outcome, error)
}

// Plan says what each assignment of one environment is configured by, before
// anything is composed. It is made by NewPlan, and may be used by several
// goroutines.
type Plan struct {
	// Namespaces are by assignment, in the order of the schedule.
	Namespaces []string
	// Failed says by assignment that an error concerns it whatever it composes to.
	Failed []bool
	// Tuples are the distinct ones, in the order of their first assignments.
	Tuples []Tuple
	// TupleOf is by assignment the number of its tuple.
	TupleOf []int32
	// Matches counts the assignments that each config matches, in the order of the
	// environment's configs.
	Matches []int
	// Empty are the configs and config schemas that match no assignment.
	Empty []Empty
	// Shared are the reconciler's options that the assignments of a cluster type
	// share, by cluster type; one is absent where its reconciler has errors.
	Shared map[string]model.Value

	env         *model.Environment
	assignments []schedule.Assignment
	specs       map[*model.ClusterType]specs
	functions   *functions
	memo        *memo
	elsewhere   *expr.Elsewhere
	// by the class's folder, sorted by name; nil where no config uses facts of them
	clusters   map[string][]*model.Cluster
	hidden     bool      // whether errors hide some
	configs    [][]int32 // assignment -> the configs that match it, sorted by layer, then name
	schemas    [][]int32 // assignment -> the config schemas that match it
	ds         []about
	vocabulary func() selector.Vocabulary // of matches
	// why there are no assignments, as diagnostics follow from it; "" where there are some
	nothing string

	configDigests, schemaDigests [][]byte
	scratch                      []byte
}

// Empty is a config or config schema that matches no assignment.
type Empty struct {
	Ref     model.Ref
	Allowed bool // by allowEmpty
	// Warning says so: diag.SelectsNothing, unresolved.
	Warning diag.Diagnostic
}

// Tuple is a set of assignments that are configured alike.
type Tuple struct {
	// Digest identifies all that the graph is composed of.
	Digest [sha256.Size]byte
	// Assignments by number, ascending.
	Assignments []int32
	// PerCluster says that configs use facts of single clusters. Then Clusters are those of the
	// class that are listed, sorted by name, and it is composed for each of them.
	PerCluster bool
	Clusters   []*model.Cluster

	configs, schemas []int32
	// uncontracted says that the contracts hold for the values on each cluster, and not for
	// what all clusters have in common.
	uncontracted bool
}

// NewPlan plans the assignments of a schedule. The diagnostics are unresolved
// and name the assignments that they concern. elsewhere evaluates expressions that
// may take long; nil for where they are met.
func NewPlan(ctx context.Context, env *model.Environment, s *schedule.Schedule, f Functions,
	satisfies selector.Satisfier, elsewhere *expr.Elsewhere) (*Plan, []diag.Diagnostic, error) {
	p := &Plan{
		Namespaces:  make([]string, len(s.Assignments)),
		Failed:      make([]bool, len(s.Assignments)),
		env:         env,
		assignments: s.Assignments,
		nothing:     s.WithoutAssignments(),
		functions:   newFunctions(f),
		memo:        &memo{},
		elsewhere:   elsewhere,

		configDigests: rawDigests(env.Configs, func(c *model.Config) model.Digest { return c.Digest }),
		schemaDigests: rawDigests(env.ConfigSchemas, func(s *model.ConfigSchema) model.Digest { return s.Digest }),
	}
	p.vocabulary = sync.OnceValue(p.vocabularyOf)
	p.findClusters()
	p.findSpecs()
	p.match(satisfies)
	if err := p.namespaces(ctx); err != nil {
		return nil, nil, err
	}
	if err := p.sharedSpecs(ctx); err != nil {
		return nil, nil, err
	}
	p.group()
	return p, p.diagnostics(), nil
}

// findClusters finds the clusters of each class, where configs use facts of single clusters.
func (p *Plan) findClusters() {
	if !slices.ContainsFunc(p.env.Configs, func(c model.Config) bool { return usesCluster(&c) }) {
		return
	}
	p.clusters, p.hidden = map[string][]*model.Cluster{}, p.env.HidesClusters()
	for i := range p.env.Clusters {
		c := &p.env.Clusters[i]
		p.clusters[c.Folder] = append(p.clusters[c.Folder], c)
	}
}

// about is a diagnostic with the assignments that it concerns, by number.
type about struct {
	diag.Diagnostic
	assignments []int
}

func (p *Plan) report(d diag.Diagnostic, assignments ...int) {
	p.ds = append(p.ds, about{d, assignments})
	if d.Severity == diag.Error {
		for _, i := range assignments {
			p.Failed[i] = true
		}
	}
}

// diagnostics gives every diagnostic the names of its assignments.
func (p *Plan) diagnostics() []diag.Diagnostic {
	var out []diag.Diagnostic
	for _, d := range p.ds {
		names := make([]string, len(d.assignments))
		for i, a := range d.assignments {
			names[i] = p.assignments[a].ID(p.env.Name)
		}
		d.Environment = p.env.Name
		out = append(out, d.Diagnostic.For(names...))
	}
	return out
}
