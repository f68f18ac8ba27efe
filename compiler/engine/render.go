package engine

import (
	"context"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project"
	"github.com/kalypso-io/kalypso/compiler/project/helm"
	"github.com/kalypso-io/kalypso/compiler/project/kustomize"
	"github.com/kalypso-io/kalypso/compiler/schedule"
	"github.com/kalypso-io/kalypso/internal/archive"
	"golang.org/x/sync/errgroup"
)

// projection is the result of rendering the manifests of an assignment.
type projection struct {
	projection  *model.Projection // nil where there is none, or it failed
	diagnostics []diag.Diagnostic
	// passing says that what failed may be otherwise the next time: the store lacks
	// something, or a bound of this machine was reached.
	passing bool
}

// applicationValues returns what the application gives the chart of a deployment
// target, composed, with its provenance. It is the same on all cluster types.
func (e *emitter) applicationValues(w *model.Workload, t *model.DeploymentTarget) *compose.Graph {
	if g, known := e.charts.Load(t); known {
		return g.(*compose.Graph)
	}
	g, _ := e.charts.LoadOrStore(t, e.in.Plan.ApplicationValues(w, t, e.in.Plan.NewEvaluator()))
	return g.(*compose.Graph)
}

// chartValues returns what the chart of an assignment gets: what the application
// gives it and, where the deployment target says so, the platform's values, with null
// for those that configs take away: it takes a default of the chart away. Helm knows no texts of
// numbers, so that they are in canonical form.
func (e *emitter) chartValues(a *schedule.Assignment, platform, removed model.Value) (model.Value, []diag.Diagnostic) {
	g := e.applicationValues(a.Workload, a.Target)
	if g.Failed {
		return model.Value{}, g.Diagnostics()
	}
	values, ds := g.WithPlatform(model.Merge(removed, platform), a)
	return values.Canonical(), slices.Concat(g.Diagnostics(), ds) // the graph is shared
}

// plaintexts warns of secrets in what the application gives a chart or a playbook.
func (e *emitter) plaintexts(a *schedule.Assignment, m *model.Manifests) []diag.Diagnostic {
	target := a.Workload.TargetRef(a.Target.Name)
	switch {
	case m.Helm != nil && m.Helm.Values != nil:
		return compose.Plaintexts(*m.Helm.Values, target.At("manifests.helm.values"))
	case m.Ansible != nil && m.Ansible.Vars != nil:
		return compose.Plaintexts(*m.Ansible.Vars, target.At("manifests.ansible.vars"))
	}
	return nil
}

// fillChart gives the assignment's chart, if it has one, its name and what the
// application gives it. The platform's values fit in, and are for the backend to
// add: some do so cluster by cluster.
func (e *emitter) fillChart(a *schedule.Assignment, assigned *backends.Assignment) []diag.Diagnostic {
	if a.Manifests.Helm == nil {
		return nil
	}
	_, ds := e.chartValues(a, assigned.Values, assigned.Removed)
	if diag.Errors(ds) {
		return ds
	}
	helm := *a.Manifests.Helm
	helm.Values = nil
	if values := e.applicationValues(a.Workload, a.Target).Values; len(values.Fields()) > 0 {
		helm.Values = &values
	}
	if helm.ReleaseName == "" {
		helm.ReleaseName = model.ShortName(a.Target.FullName, model.MaxHelmRelease)
	}
	assigned.Manifests.Helm = &helm
	return ds
}

// project renders the manifests of assignments, several at once, as far as their
// backends need it; those that are nil have failed before.
func (e *emitter) project(ctx context.Context, numbers []int, assigned []*backends.Assignment) ([]projection, error) {
	out := make([]projection, len(numbers))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for n, i := range numbers {
		a := &e.in.Schedule.Assignments[i]
		if assigned[n] == nil || !e.in.needsContent(a) {
			continue
		}
		if source, ok := dependency.SourceOf(a.Manifests); ok {
			group.Go(func() (err error) {
				out[n], err = e.projectOne(ctx, a, source, assigned[n])
				ref := a.Workload.TargetRef(a.Target.Name).At("manifests." + string(a.Manifests.Kind()))
				out[n].diagnostics = slices.Clone(out[n].diagnostics) // other assignments may have them too
				for j := range out[n].diagnostics {
					out[n].diagnostics[j] = out[n].diagnostics[j].On(ref.String()).At(ref, "")
				}
				return err
			})
		}
	}
	return out, group.Wait()
}

func (e *emitter) projectOne(ctx context.Context, a *schedule.Assignment, source dependency.Source,
	assigned *backends.Assignment) (projection, error) {
	entry, ds := e.pinned(a, source)
	if len(ds) > 0 {
		return projection{diagnostics: ds, passing: true}, nil
	}
	if a.Manifests.Ansible != nil {
		return e.playbook(a, entry), nil
	}
	r, err := e.render(ctx, e.job(a, assigned), entry)
	if err != nil || diag.Errors(r.Diagnostics) {
		return projection{diagnostics: r.Diagnostics, passing: r.passing}, err
	}
	return projection{
		projection:  &model.Projection{Objects: r.Objects, Revision: entry.Revision},
		diagnostics: r.Diagnostics,
	}, nil
}

// pinned returns what the source of an assignment is pinned to, or says why it
// cannot be used. Of a playbook that is not rendered nothing else is needed.
func (e *emitter) pinned(a *schedule.Assignment, source dependency.Source) (dependency.Entry, []diag.Diagnostic) {
	if a.Manifests.Ansible != nil && !a.Target.Render {
		return e.in.request.Library.Entry(source)
	}
	return e.in.request.Library.Pinned(source)
}

// lacks says whether an assignment that needs the content of its source cannot have
// it. Then it is not built, also where its emission is remembered.
func (e *emitter) lacks(a *schedule.Assignment) bool {
	source, ok := dependency.SourceOf(a.Manifests)
	if !ok {
		return false
	}
	_, ds := e.pinned(a, source)
	return len(ds) > 0
}

// job returns what there is to render, without the content of the source.
func (e *emitter) job(a *schedule.Assignment, assigned *backends.Assignment) *project.Job {
	if h := assigned.Manifests.Helm; h != nil {
		values, _ := e.chartValues(a, assigned.Values, assigned.Removed) // fillChart has seen that they fit
		return &project.Job{Helm: &helm.Request{
			ReleaseName: h.ReleaseName, Namespace: assigned.Namespace, Values: values,
			KubernetesVersion: strings.TrimPrefix(a.ClusterType.KubernetesVersion, "v"), APIVersions: a.ClusterType.APIVersions,
		}}
	}
	r := &kustomize.Request{}
	switch m := a.Manifests; {
	case m.Git != nil:
		r.Path = path.Clean(m.Git.Path)
	case m.OCI != nil:
		r.Path = path.Clean(m.OCI.Path)
	default:
		k := m.Kustomize
		r.Path, r.Patches, r.Images, r.NamePrefix = path.Clean(k.Path), k.Patches, k.Images, k.NamePrefix
	}
	return &project.Job{Kustomize: r}
}

// renderResult is the result of a job. Assignments share it, and do not change it.
type renderResult struct {
	project.Outcome
	// passing says that it may be something else the next time.
	passing bool
}

// render renders a job with the content that an entry pins, or returns the result that
// is remembered. Assignments that ask for the same at once wait for one render.
func (e *emitter) render(ctx context.Context, job *project.Job, entry dependency.Entry) (renderResult, error) {
	defer e.in.request.Meter.took(cache.Projection, time.Now())
	key := e.in.key("projection").String(string(entry.Content)).Bytes(model.Encode(*job)).Sum()
	mine := false
	r, err, _ := e.in.request.Meter.renders.Do(string(key[:]), func() (any, error) {
		mine = true
		return e.renderOnce(ctx, key, job, entry)
	})
	switch {
	case err != nil && !mine && ctx.Err() == nil:
		return e.renderOnce(ctx, key, job, entry) // the context of another cluster type has ended
	case err != nil:
		return renderResult{}, err
	case !mine && !r.(renderResult).passing:
		e.in.request.Meter.count(cache.Projection, 0, 1)
	}
	return r.(renderResult), nil
}

func (e *emitter) renderOnce(ctx context.Context, key cache.Key, job *project.Job,
	entry dependency.Entry) (r renderResult, err error) {
	if data, ok := e.in.request.Meter.get(cache.Projection, key); ok && model.Decode(data, &r.Outcome) == nil {
		e.in.request.Meter.count(cache.Projection, 0, 1)
		return r, nil
	}
	if ds := e.fill(job, entry); len(ds) > 0 {
		return renderResult{Outcome: project.Outcome{Diagnostics: ds}, passing: true}, nil
	}
	if r.Outcome, err = project.NewRenderer(e.in.request.Workers).Render(ctx, job); err != nil {
		return renderResult{}, err
	}
	e.in.request.Meter.count(cache.Projection, 1, 0)
	r.passing = diag.Passing(r.Diagnostics)
	if !r.passing {
		m, data := e.in.request.Meter, model.Encode(r.Outcome)
		if m.cache != nil {
			m.cache.Put(cache.Projection, key, data)
		}
	}
	return r, nil
}

// fill gives a job its content, or says why there is none.
func (e *emitter) fill(job *project.Job, entry dependency.Entry) (ds []diag.Diagnostic) {
	if job.Helm != nil {
		job.Helm.Chart, ds = e.in.request.Library.Content(entry)
		return ds
	}
	tree, ds := e.in.request.Library.Tree(entry)
	if len(ds) > 0 {
		return ds
	}
	job.Kustomize.Files, job.Kustomize.Refused = tree.Data(), tree.Refused
	return nil
}

// playbook returns the files of an Ansible playbook's repository where it is
// rendered, and else only what it is pinned to.
func (e *emitter) playbook(a *schedule.Assignment, entry dependency.Entry) projection {
	p := &model.Projection{Revision: entry.Revision}
	if !a.Target.Render {
		return projection{projection: p}
	}
	tree, ds := e.in.request.Library.Tree(entry)
	if len(ds) > 0 {
		return projection{diagnostics: ds, passing: true}
	}
	for _, name := range slices.Sorted(maps.Keys(tree.Refused)) {
		ds = append(ds, diag.New(diag.BadSource, fmt.Sprintf("%s of %s %s", name, entry.Source, tree.Refused[name])).
			Hinting(archive.WayOut(tree.Refused[name],
				"keep it as a file of the repository")+", or let the machines fetch the playbook: remove render: true"))
	}
	if len(ds) > 0 {
		return projection{diagnostics: ds}
	}
	for name, f := range tree.Files {
		p.Files = append(p.Files, model.ProjectedFile{Path: name, Data: f.Data, Executable: f.Executable})
	}
	slices.SortFunc(p.Files, func(a, b model.ProjectedFile) int { return strings.Compare(a.Path, b.Path) })
	return projection{projection: p}
}

// emitter takes assignments from their composed values to files.
type emitter struct {
	in     *Inputs
	tuples *tuples
	charts sync.Map // *model.DeploymentTarget -> *compose.Graph
}
