package engine

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"k8s.io/apimachinery/pkg/api/resource"
)

// emission is the result of emitting an assignment. It has files unless the emission failed.
type emission struct {
	backends.Emission
	summary *emissionSummary
}

// emissions turns the composed values of assignments into files. It fills in the values of
// charts, renders the manifests, and evaluates namespace services and reconcilers that are
// functions. Finally the backends emit the assignments.
//
// without are the definitions that each assignment leaves out, by assignment.
func (e *emitter) emissions(ctx context.Context, numbers []int,
	without map[int]map[string]bool) ([]emission, error) {
	out := make([]emission, len(numbers))
	assigned := make([]*backends.Assignment, len(numbers)) // nil if it has failed
	late := make([]compose.Late, len(numbers))
	tuples := make([]int32, len(numbers))
	for n, i := range numbers {
		tuples[n] = e.in.Plan.TupleOf[i]
	}
	values, err := e.tuples.values(ctx, tuples)
	if err != nil {
		return nil, err
	}
	for n, i := range numbers {
		g := values[tuples[n]]
		a := e.assignment(i, g)
		ds := e.fillChart(&e.in.Schedule.Assignments[i], a)
		ds = append(slices.Clip(ds), e.plaintexts(&e.in.Schedule.Assignments[i], &a.Manifests)...)
		out[n].summary, late[n].Values = &emissionSummary{failed: diag.Errors(ds), diagnostics: ds},
			g.Values
		if !out[n].summary.failed {
			assigned[n], late[n].Manifests = a, &a.Manifests
		}
	}
	projections, err := e.project(ctx, numbers, assigned)
	if err != nil {
		return nil, err
	}
	defer e.in.request.Meter.took(cache.Assignment, time.Now())
	for n, i := range numbers {
		if a := assigned[n]; a != nil && a.Render {
			p := kubernetes.Retained(projections[n].projection, a.Manifests.CRDs())
			p, ds := withImages(kubernetes.WithoutCRDs(p, without[i]), a)
			projections[n].projection = p
			projections[n].diagnostics = slices.Concat(projections[n].diagnostics, ds)
		}
		late[n].Rendered = objectsOf(projections[n].projection)
	}
	specs, err := e.in.Plan.SpecsOf(ctx, numbers, late)
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
			out[n].summary.diagnostics = slices.Concat(out[n].summary.diagnostics,
				projections[n].diagnostics, specs[n].Diagnostics, replaceServiceImages(a),
				imagesOfMachine(a))
			beyond := e.boundViolations(i, a)
			out[n].summary.diagnostics = append(out[n].summary.diagnostics, beyond...)
			out[n].summary.failed, out[n].summary.passing = specs[n].Failed || len(beyond) > 0,
				projections[n].passing
			out[n].summary.requests = e.requests(e.in.Schedule.Assignments[i].Workload, a)
			out[n].emit(e.in, e.in.backend(e.in.Schedule.Assignments[i].ClusterType), a)
		}
	}
	return out, nil
}

// objectsOf returns the objects of a projection for functions of the assignment. It leaves out
// hooks that differ with each render.
func objectsOf(p *model.Projection) model.Value {
	var objects []model.Value
	if p != nil {
		stable, _ := kubernetes.Split(p.Objects, kubernetes.IsStable)
		for _, o := range stable {
			objects = append(objects, o.Value)
		}
	}
	return model.ListOf(objects...)
}

// emit makes the backend emit the assignment, unless it has failed.
func (m *emission) emit(p *Inputs, backend backends.Backend, a *backends.Assignment) {
	summary := m.summary
	summary.diagnostics = p.strict(slices.Concat(summary.diagnostics, backends.Refuse(backend, a),
		withoutEffect(backend, a)))
	if summary.failed = summary.failed || diag.Errors(summary.diagnostics); summary.failed {
		return
	}
	emitted, ds := backend.Emit(a)
	ds = p.strict(ds)
	if !diag.Errors(ds) {
		ds = append(ds, unwritable(backend, a.Ref, emitted.Files, nil)...)
	}
	summary.diagnostics = append(summary.diagnostics, ds...)
	if summary.failed = diag.Errors(ds); summary.failed {
		return
	}
	m.Emission = emitted
	summary.orphan = orphans(a.NamespaceService.Value)
	summary.shared = emitted.Shared
	summary.retention = retentionOf(backend, a)
	for _, o := range emitted.Objects {
		id := objectID(o)
		summary.objects = append(summary.objects, id[:]...)
	}
	blobs := map[string]tree.Blob{}
	for _, f := range emitted.Files {
		file := tree.FileOf(f)
		blobs[f.Path] = file.Blob()
		summary.files = append(summary.files, file)
	}
	_, _ = hex.Decode(summary.tree[:], []byte(tree.TreeID(blobs)))
}

// unwritable returns an error if files of a backend cannot be written. They may conflict with
// each other, or with the folders in the same place. of is the entity that the files belong to.
func unwritable(backend backends.Backend, of model.Ref, files []backends.File,
	folders []backends.Folder) []diag.Diagnostic {
	paths := make([]string, 0, len(files)+len(folders))
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	err := tree.CheckPaths(paths)
	for i := 0; i < len(folders) && err == nil; i++ {
		in := func(p string) bool {
			return p == folders[i].DeploymentTarget || strings.HasPrefix(p, folders[i].DeploymentTarget+"/")
		}
		if n := slices.IndexFunc(paths, in); n >= 0 {
			err = fmt.Errorf("path %q is in the place of an assignment's folder", paths[n])
		}
	}
	if err == nil {
		return nil
	}
	return []diag.Diagnostic{diag.New(diag.BadFile,
		fmt.Sprintf("the backend %s gives files that cannot be written: %v", backend.Name(), err)).
		At(of, "").Hinting("this is a mistake in the backend, not in the platform: report it")}
}

// assignment returns an assignment with all decisions about it, in the form that a backend gets.
// The specs and the projection are missing.
func (e *emitter) assignment(i int, g *compose.Graph) *backends.Assignment {
	a := &e.in.Schedule.Assignments[i]
	out := &backends.Assignment{
		Environment:       e.in.Name,
		ClusterType:       a.ClusterType.TypeName(),
		Folder:            a.ClusterType.Name,
		Clusters:          e.in.clusters[a.ClusterType.Name],
		Entries:           a.ClusterType.Entries == model.ClusterEntries,
		Workspace:         a.Workload.Workspace,
		Application:       a.Workload.Application,
		Workload:          a.Workload.Name,
		Registration:      a.Workload.Registration,
		Target:            a.Target.Name,
		DeploymentTarget:  a.Target.FullName,
		Namespace:         e.in.Plan.Namespaces[i],
		Labels:            a.Target.Labels,
		ClusterTypeLabels: a.ClusterType.Labels,
		Images:            a.ClusterType.Images,
		Version:           a.Version,
		GitOps:            e.in.Model.GitOps,
		Manifests:         a.Manifests,
		Render:            a.Target.Render,
		Restart:           a.Target.RestartOnConfigChange,
		ConfigFormat:      a.ClusterType.ConfigFormat,
		Values:            g.Plain,
		Removed:           g.Removed,
		Digest:            g.Digest,
		NamespaceService: backends.Spec{Ref: model.Ref{Collection: "namespaceServices",
			Name: a.ClusterType.NamespaceService}},
		Reconciler: backends.Spec{Ref: reconcilerRef(a.ClusterType)},
		DependsOn:  a.DependsOn,
		Wave:       a.Wave,
		Ref:        a.Workload.TargetRef(a.Target.Name),
	}
	out.Bounds, _ = e.in.Model.WorkspaceOf(a.Workload)
	for _, secret := range g.Secrets {
		out.Secrets = append(out.Secrets, secretOf(secret))
	}
	return out
}

func secretOf(s compose.Secret) backends.Secret {
	text := func(name string) string {
		v, there := s.Ref.Lookup(name)
		if !there {
			return ""
		}
		return v.Text()
	}
	return backends.Secret{Name: s.Path, Store: text("store"), Key: text("key"),
		Property: text("property"), Version: text("version")}
}

// requests returns the requests of an assignment from its workspace's quota. It returns nil if
// the workspace has no quota.
func (e *emitter) requests(w *model.Workload, a *backends.Assignment) kubernetes.Requests {
	of, _ := e.in.Model.WorkspaceOf(w)
	if of == nil || of.Quota == nil {
		return nil
	}
	out := kubernetes.Requests{}
	if a.Projection != nil {
		out = kubernetes.RequestsOf(a.Projection)
	} else {
		out.Add(kubernetes.QuotaOf(a.NamespaceService.Value))
	}
	out.Add(kubernetes.Requests{"assignments": *resource.NewQuantity(1, resource.DecimalSI)})
	return out
}

// orphans reports whether the namespace outlives the assignment.
func orphans(namespaceService model.Value) bool {
	deletion, _ := namespaceService.Lookup("deletion")
	return deletion.Text() == "orphan"
}

// withoutEffect warns of a source's setting for CustomResourceDefinitions if the reconciler does
// not support it.
func withoutEffect(backend backends.Backend, a *backends.Assignment) []diag.Diagnostic {
	crds := a.Manifests.CRDs()
	var why, hint string
	switch {
	case crds == "" || crds == model.KeepCRDs:
		return nil
	case a.Render && crds == model.DeleteCRDs && backend.Traits().KeepsDefinitions &&
		len(kubernetes.DefinitionsOf(a.Projection)) > 0:
		why, hint = "Argo CD never deletes CustomResourceDefinitions", "remove them by hand when "+
			"nobody needs them any more: a build that lets the assignment go names them"
	case a.Render:
		return nil
	case crds == model.SkipCRDs && a.Manifests.Helm != nil && backend.Traits().SkipsDefinitions:
		return nil
	default:
		why, hint = "the reconciler fetches the manifests",
			"render them: set render: true on the deployment target"
	}
	kind, _, _ := strings.Cut(string(a.Manifests.Kind()), ".")
	field := "manifests." + kind + ".crds"
	return []diag.Diagnostic{diag.New(diag.NoEffect,
		fmt.Sprintf("crds: %q of %s has no effect: %s", crds, a.DeploymentTarget, why)).
		On(field).At(a.Ref.At(field), "").Hinting(hint)}
}
