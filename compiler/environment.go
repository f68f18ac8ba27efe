package compiler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// Environment is one compiled environment.
type Environment struct {
	Name   string
	Source tree.Source
	// Model is nil where nothing of the environment can be read. Then Schedule,
	// Plan and Tree are nil, and its output stays as it is.
	Model    *model.Environment
	Schedule *schedule.Schedule
	// Plan says what the assignments of the schedule are configured by.
	Plan *compose.Plan
	// Tree is the output; nil where it must stay as it is.
	Tree *tree.Tree
	// Removals are those of the build, whether they are allowed or not.
	Removals Removals
	// Summary counts what the build gave.
	Summary Summary

	platform string          // its module path
	ctx      context.Context // of the build, for contents that are made when they are asked for
	request  *Request
	commits  map[string]tree.Source // that environments are compiled from, where these are known
	meter    *meter
	library  *dependency.Library
	clusters map[string][]model.Cluster // by cluster type, sorted by name
	spans    []span                     // by cluster type of the model
	tuples   []*tuple                   // by tuple of the plan
	rows     []row                      // by assignment
	record   *tree.Record
	retained *retained
	targets  sync.Map        // targetID -> cache.Key
	charts   sync.Map        // *model.DeploymentTarget -> *compose.Graph
	same     map[string]bool // cluster types that a comparison knows to be equal
	// rings are those of the request, by cluster type; one that is in several or none
	// is absent.
	rings map[string]string

	displaced bool // another environment's tree is kept where its own is

	diagnostics []diag.Diagnostic
}

// Failed says whether an error concerns the assignment with this number, so that
// it is not built.
func (e *Environment) Failed(assignment int) bool { return e.rows[assignment].failed }

// OCI returns where the environment's gitops keeps its tree; nil where that is no
// OCI registry, or not known.
func (e *Environment) OCI() *tree.OCI {
	if e.Model == nil || e.Model.GitOps == nil || e.Model.GitOps.OCI == "" {
		return nil
	}
	g := e.Model.GitOps
	return &tree.OCI{Repository: g.OCI, Tag: g.Tag, Path: g.Path}
}

// plan takes the environment through the pipeline up to what its assignments are
// configured by. lost says that what it has may be in a folder that is no
// environment's.
func (e *Environment) plan(ctx context.Context, p *source.Platform, stages []model.Stage, lost bool) error {
	start := time.Now()
	pkg, ds, err := evaluate.Environment(ctx, p, e.Name, stages,
		evaluate.Options{Cache: e.meter.packages(), Registry: registry{e.library}, Workers: e.request.Workers})
	e.meter.took(cache.Model, start)
	if err != nil {
		return err
	}
	e.meter.count(cache.Model, pkg.Stats.Evaluated, pkg.Stats.Units-pkg.Stats.Evaluated)
	e.Model, e.diagnostics = pkg.Model, ds
	e.Source = e.sourceOf(pkg)
	if e.Model == nil {
		return nil
	}
	e.Model.Incomplete = e.Model.Incomplete || lost
	elsewhere := expr.In(e.request.Workers)
	satisfies := newSatisfier(elsewhere)
	e.rings, ds = schedule.Rings(e.Name, e.request.Rings, e.Model.ClusterTypes, satisfies)
	e.report(ds...)
	e.Schedule, ds = schedule.Assign(e.Model, satisfies)
	e.report(ds...)
	if e.request.Ring == "" {
		e.report(e.checkRings(stages, satisfies)...)
	}
	if e.Plan, ds, err = compose.NewPlan(ctx, e.Model, e.Schedule, functions{e, pkg}, satisfies, elsewhere); err != nil {
		return err
	}
	e.report(ds...)
	e.warnOfNoContent()
	e.clusters = map[string][]model.Cluster{}
	for _, c := range e.Model.Clusters {
		e.clusters[c.ClusterType] = append(e.clusters[c.ClusterType], c)
	}
	e.checkClusterValues()
	e.spans = spansOf(e.Model, e.Schedule)
	e.rows = make([]row, len(e.Schedule.Assignments))
	e.newTuples()
	return nil
}

// sourceOf returns what the environment is compiled from: the commits that the
// request names, or else digests of the files.
func (e *Environment) sourceOf(pkg *evaluate.Package) tree.Source {
	if e.request.Source != nil {
		return *e.request.Source
	}
	if of, known := e.commits[e.Name]; known {
		return of
	}
	s := tree.Source{Base: tree.Revision(pkg.Base), Environment: tree.Revision(pkg.Own)}
	if locked := e.library.Digest(); locked != "" {
		s.Base = tree.Revision(model.DigestBytes([]byte(string(pkg.Base) + string(locked))))
	}
	return s
}

// finish takes a planned environment through the rest of the pipeline.
func (e *Environment) finish(ctx context.Context) error {
	if e.Model == nil {
		return nil
	}
	err := e.retain()
	if err == nil {
		if err := e.build(ctx); err != nil {
			return err
		}
		err = e.assemble(ctx)
	}
	var broken *tree.RecordError
	if errors.As(err, &broken) {
		// What there is to keep is not known: the output stays as it is.
		e.report(broken.Diagnostic())
		e.Tree, e.Summary = nil, Summary{}
	} else if err != nil {
		return err
	}
	diag.Resolve(e.diagnostics, e.Model.Positions)
	return ctx.Err()
}

// builds says whether a cluster type is a part of this build.
func (e *Environment) builds(clusterType string) bool {
	return e.request.Shard.Has(clusterType) && !e.same[clusterType] && e.inRing(clusterType)
}

// inRing says whether a cluster type is of the ring that is built. One that the
// platform does not have any more is of the ring that built it.
func (e *Environment) inRing(clusterType string) bool {
	if e.request.Ring == "" {
		return true
	}
	if slices.ContainsFunc(e.Model.ClusterTypes, func(ct model.ClusterType) bool { return ct.Name == clusterType }) {
		return e.rings[clusterType] == e.request.Ring
	}
	ring := e.record.RingOf(clusterType)
	return ring == "" || ring == e.request.Ring
}

// previous reads the record of the output that exists. One of something else does
// not count: writing over it is refused.
func (e *Environment) previous() error {
	if e.request.Previous == nil || e.Model == nil {
		return nil
	}
	record, err := e.request.Previous(e.Name)
	if err != nil {
		return err
	}
	if record != nil && record.Platform == e.platform && record.Environment == e.Name {
		e.record = record
	}
	return nil
}

func (e *Environment) report(ds ...diag.Diagnostic) {
	for i := range ds {
		ds[i].Environment = e.Name
	}
	e.diagnostics = append(e.diagnostics, ds...)
}

func (e *Environment) warnOfNoContent() {
	if len(e.Model.ClusterTypes) == 0 && !e.Model.Incomplete {
		ref := model.Ref{Collection: "environments", Name: e.Name}
		e.report(diag.New(diag.NoContent, "environment "+e.Name+" has no cluster types").At(ref, "").On(ref.String()).
			Hinting("declare clusterTypes in environments/" + e.Name))
	}
}

// checkClusterValues reports values of single clusters that reach nothing.
func (e *Environment) checkClusterValues() {
	for i := range e.Model.ClusterTypes {
		r := e.reconciler(&e.Model.ClusterTypes[i])
		if r == nil || allBackends[r.Backend].Traits().PerCluster {
			continue
		}
		for _, c := range e.clusters[e.Model.ClusterTypes[i].Name] {
			if c.Values != nil {
				ref := model.Ref{Collection: "clusters", Name: c.Name, Path: "values"}
				e.report(diag.New(diag.ClusterValues, fmt.Sprintf("the values of cluster %s reach nothing: the reconciler %s has one folder for all clusters of a type", c.Name, r.Name)).
					On(ref.String()).At(ref, "").Hinting("give the cluster a cluster type of its own, and write the values in a config that matches it"))
			}
		}
	}
}

// unknown says whether the environment's own declaration is not known, or cannot
// be, so that its output must stay as it is.
func (e *Environment) unknown() bool {
	return e.displaced || e.Model.Invalid[model.Ref{Collection: "environments", Name: e.Name}]
}

// span is a range of assignments by number: from first, up to next.
type span struct{ first, next int }

// spansOf returns the assignments of each cluster type: the schedule sorts them by
// cluster type.
func spansOf(m *model.Environment, s *schedule.Schedule) []span {
	out := make([]span, len(m.ClusterTypes))
	first := 0
	for i := range m.ClusterTypes {
		next := first
		for next < len(s.Assignments) && s.Assignments[next].ClusterType.Name == m.ClusterTypes[i].Name {
			next++
		}
		out[i] = span{first, next}
		first = next
	}
	return out
}

// key begins the key of a result in the cache: of everything that kalypso itself
// adds to what a result is made of.
func (e *Environment) key(kind string) *cache.Hash {
	return cache.NewHash(kind).Key(identity())
}

// tupleTable is where the composed tuples are kept.
func (e *Environment) tupleTable() table {
	return e.meter.table(cache.Tuple, e.platform+" "+e.Name)
}

// assignmentTable is where the emitted assignments of a cluster type are kept.
func (e *Environment) assignmentTable(clusterType string) table {
	return e.meter.table(cache.Assignment, e.platform+" "+e.Name+" "+clusterType)
}

// progress returns what tells how many more assignments of total are done.
func (e *Environment) progress(total int) func(done int) {
	if e.request.Progress == nil {
		return func(int) {}
	}
	var all atomic.Int64
	tell := func(done int) {
		e.request.Progress(Progress{Environment: e.Name, Done: int(all.Add(int64(done))), Total: total})
	}
	tell(0)
	return tell
}
