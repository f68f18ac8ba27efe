package compiler

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
)

// emission is what became of an assignment: files where it has not failed.
type emission struct {
	backends.Emission
	head *emissionHead
}

// emissions takes assignments from their composed values to files: charts get
// their values, what is to be rendered is rendered, namespace services and
// reconcilers that are functions are evaluated, and backends emit.
func (e *Environment) emissions(ctx context.Context, numbers []int) ([]emission, error) {
	out := make([]emission, len(numbers))
	assigned := make([]*backends.Assignment, len(numbers)) // nil where it has failed
	late := make([]compose.Late, len(numbers))
	for n, i := range numbers {
		g, err := e.values(e.Plan.TupleOf[i])
		if err != nil {
			return nil, err
		}
		a := e.assignment(i, g)
		ds := e.fillChart(&e.Schedule.Assignments[i], a)
		ds = append(slices.Clip(ds), e.plaintexts(&e.Schedule.Assignments[i], &a.Manifests)...)
		out[n].head, late[n].Values = &emissionHead{failed: diag.Errors(ds), diagnostics: ds}, g.Values
		if !out[n].head.failed {
			assigned[n], late[n].Manifests = a, &a.Manifests
		}
	}
	projections, err := e.project(ctx, numbers, assigned)
	if err != nil {
		return nil, err
	}
	defer e.meter.took(cache.Assignment, time.Now())
	for n := range projections {
		late[n].Rendered = objectsOf(projections[n].projection)
	}
	specs, err := e.Plan.SpecsOf(ctx, numbers, late)
	if err != nil {
		return nil, err
	}
	for n, i := range numbers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if a := assigned[n]; a != nil {
			a.Projection = projections[n].projection
			a.NamespaceService.Value, a.Reconciler.Value = specs[n].NamespaceService, specs[n].Reconciler
			out[n].head.diagnostics = slices.Concat(out[n].head.diagnostics, projections[n].diagnostics, specs[n].Diagnostics)
			out[n].head.failed, out[n].head.passing = specs[n].Failed, projections[n].passing
			out[n].emit(allBackends[e.reconciler(e.Schedule.Assignments[i].ClusterType).Backend], a)
		}
	}
	return out, nil
}

// objectsOf are the objects of a projection, as functions of the assignment see
// them.
func objectsOf(p *model.Projection) model.Value {
	var objects []model.Value
	if p != nil {
		for _, o := range p.Objects {
			objects = append(objects, o.Value)
		}
	}
	return model.ListOf(objects...)
}

// emit has the backend emit the assignment, unless it has failed.
func (m *emission) emit(backend backends.Backend, a *backends.Assignment) {
	head := m.head
	refused := backends.Refuse(backend, a)
	head.diagnostics = append(head.diagnostics, refused...)
	if head.failed = head.failed || diag.Errors(head.diagnostics); head.failed {
		return
	}
	emitted, ds := backend.Emit(a)
	head.diagnostics = append(head.diagnostics, ds...)
	if head.failed = diag.Errors(ds); head.failed {
		return
	}
	m.Emission = emitted
	head.orphan = orphans(a.NamespaceService.Value)
	head.shared = emitted.Shared
	head.objects = objectsDigest(emitted.Objects)
	blobs := map[string]tree.Blob{}
	for _, f := range emitted.Files {
		file := tree.FileOf(f)
		blobs[f.Path] = file.Blob()
		head.files = append(head.files, file)
	}
	_, _ = hex.Decode(head.tree[:], []byte(tree.TreeID(blobs)))
}
