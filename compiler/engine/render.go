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
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/internal/archive"
	"golang.org/x/sync/errgroup"
)

// projection is the result of rendering the manifests of an assignment.
type projection struct {
	projection  *model.Projection // nil if nothing was rendered or rendering failed
	diagnostics []diag.Diagnostic
	// passing reports whether a failure may be temporary: the store lacks something, or a limit
	// of this machine was reached.
	passing bool
}

// applicationValues returns the application's composed values for the chart of a deployment
// target, with their provenance. They are the same on all cluster types.
func (e *emitter) applicationValues(w *model.Workload, t *model.DeploymentTarget) *compose.Graph {
	if g, known := e.charts.Load(t); known {
		return g.(*compose.Graph)
	}
	g, _ := e.charts.LoadOrStore(t, e.in.Plan.ApplicationValues(w, t, e.in.Plan.NewEvaluator()))
	return g.(*compose.Graph)
}

// chartValues returns the values for the chart of an assignment. They are the application's
// values and, if the deployment target wants them, the platform's values. Values that configs
// remove are null, which removes a default of the chart. Numbers are in canonical form, because
// Helm does not preserve their text.
func (e *emitter) chartValues(a *schedule.Assignment, platform, removed model.Value) (model.Value,
	[]diag.Diagnostic) {
	g := e.applicationValues(a.Workload, a.Target)
	if g.Failed {
		return model.Value{}, g.Diagnostics()
	}
	values, ds := g.WithPlatform(model.Merge(removed, platform), a)
	return values.Canonical(), slices.Concat(g.Diagnostics(), ds) // the graph is shared
}

// plaintexts warns of secrets in the application's values for a chart or a playbook.
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

// fillChart sets the release name and the application's values of the assignment's chart, if it
// has one. It checks that the platform's values fit in. The backend adds those, because some
// backends add them cluster by cluster.
func (e *emitter) fillChart(a *schedule.Assignment,
	assigned *backends.Assignment) []diag.Diagnostic {
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

// project renders the manifests of assignments concurrently if their backends need that. Elements
// of assigned are nil for assignments that have failed before.
func (e *emitter) project(ctx context.Context, numbers []int,
	assigned []*backends.Assignment) ([]projection, error) {
	out := make([]projection, len(numbers))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for n, i := range numbers {
		a := &e.in.Schedule.Assignments[i]
		if assigned[n] == nil || !e.in.needsContent(a) {
			continue
		}
		group.Go(func() (err error) {
			out[n], err = e.projectOne(ctx, a, assigned[n])
			ref := a.Workload.TargetRef(a.Target.Name).At("manifests." + string(a.Manifests.Kind()))
			out[n].diagnostics = slices.Clone(out[n].diagnostics) // other assignments may share them
			for j := range out[n].diagnostics {
				out[n].diagnostics[j] = out[n].diagnostics[j].On(ref.String()).At(ref, "")
			}
			return err
		})
	}
	return out, group.Wait()
}

func (e *emitter) projectOne(ctx context.Context, a *schedule.Assignment,
	assigned *backends.Assignment) (projection, error) {
	c, ok, ds := e.in.content(a)
	switch {
	case !ok:
		return projection{}, nil
	case len(ds) > 0:
		return projection{diagnostics: ds, passing: true}, nil
	case a.Manifests.Ansible != nil:
		return e.playbook(a, c.entry), nil
	}
	chart := a.Manifests.Helm
	r, err := e.in.request.Meter.Render(ctx, e.in.request.Workers,
		string(c.digest)+" "+chartFolder(chart), e.job(a, assigned),
		func(job *project.Job) []diag.Diagnostic { return e.fill(job, chart, c) })
	if err != nil || diag.Errors(r.Diagnostics) {
		return projection{diagnostics: r.Diagnostics, passing: r.passing}, err
	}
	return projection{
		projection:  &model.Projection{Objects: r.Objects, Revision: c.revision},
		diagnostics: r.Diagnostics,
	}, nil
}

// lacksSource reports whether an assignment needs the content of its source and cannot have it.
// Such an assignment is not built, even if its emission is cached.
func (e *emitter) lacksSource(a *schedule.Assignment) bool {
	_, _, ds := e.in.content(a)
	return len(ds) > 0
}

// job returns the rendering job of an assignment, without the content of its source.
func (e *emitter) job(a *schedule.Assignment, assigned *backends.Assignment) *project.Job {
	if h := assigned.Manifests.Helm; h != nil {
		// fillChart has checked that they fit
		values, _ := e.chartValues(a, assigned.Values, assigned.Removed)
		r := &helm.Request{
			ReleaseName: h.ReleaseName, Namespace: assigned.Namespace, Values: values,
			KubernetesVersion: strings.TrimPrefix(a.ClusterType.KubernetesVersion, "v"),
			APIVersions:       a.ClusterType.APIVersions,
		}
		for _, name := range h.ValuesFiles {
			r.ValuesFiles = append(r.ValuesFiles, helm.ValuesFile{Name: name})
		}
		return &project.Job{Helm: r}
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

// RenderResult is the result of a job. Several callers share it and must not change it.
type RenderResult struct {
	project.Outcome
	// passing reports whether the result may be different the next time.
	passing bool
}

// Render renders a job in workers, or returns the cached result. content identifies the content
// that fill adds to the job; nothing else may change the result. If there is no content, fill
// returns diagnostics, which the result then has. Jobs that need the same result at the same time
// wait for one render.
func (m *Meter) Render(ctx context.Context, workers *worker.Pool, content string, job *project.Job,
	fill func(*project.Job) []diag.Diagnostic) (RenderResult, error) {
	defer m.took(cache.Projection, time.Now())
	key := cache.NewHash("projection").Key(m.identity).String(content).
		Bytes(model.Encode(*job)).Sum()
	render := func() (any, error) { return m.renderOnce(ctx, workers, key, job, fill) }
	mine := false
	r, err, _ := m.renders.Do(string(key[:]), func() (any, error) {
		mine = true
		return render()
	})
	shared := !mine && err == nil
	if err != nil && !mine && ctx.Err() == nil {
		r, err = render() // the context of the other job has ended
	}
	if err != nil {
		return RenderResult{}, err
	}
	if shared && !r.(RenderResult).passing {
		m.count(cache.Projection, 0, 1)
	}
	return r.(RenderResult), nil
}

func (m *Meter) renderOnce(ctx context.Context, workers *worker.Pool, key cache.Key,
	job *project.Job, fill func(*project.Job) []diag.Diagnostic) (r RenderResult, err error) {
	if data, ok := m.get(cache.Projection, key); ok && model.Decode(data, &r.Outcome) == nil {
		m.count(cache.Projection, 0, 1)
		return r, nil
	}
	if ds := fill(job); len(ds) > 0 {
		return RenderResult{Outcome: project.Outcome{Diagnostics: ds}, passing: true}, nil
	}
	if r.Outcome, err = project.NewRenderer(workers).Render(ctx, job); err != nil {
		return RenderResult{}, err
	}
	m.count(cache.Projection, 1, 0)
	r.passing = diag.Passing(r.Diagnostics)
	if !r.passing && m.cache != nil {
		m.cache.Put(cache.Projection, key, model.Encode(r.Outcome))
	}
	return r, nil
}

// chartFolder returns the folder of a chart in its source; "" if the source is the chart itself.
func chartFolder(h *model.Helm) string {
	switch {
	case h == nil:
		return ""
	case h.Git != nil:
		return path.Clean(h.Git.Path)
	}
	return h.Path
}

// fill adds the content to a job. If there is no content, it returns diagnostics.
func (e *emitter) fill(job *project.Job, chart *model.Helm, c content) (ds []diag.Diagnostic) {
	folder := chartFolder(chart)
	if job.Helm != nil && folder == "" {
		job.Helm.Chart, ds = e.in.request.Library.Content(c.entry)
		return ds
	}
	files, of := c.tree, ""
	if files == nil {
		if files, ds = e.in.request.Library.Tree(c.entry); len(ds) > 0 {
			return ds
		}
		of = " of " + c.entry.Source.String()
	}
	if job.Helm != nil {
		return unpackChart(job.Helm, files, folder, of)
	}
	job.Kustomize.Files, job.Kustomize.Refused = files.Data(), files.Refused
	return nil
}

// playbook returns the files of an Ansible playbook's repository if it is rendered. Otherwise it
// returns only the pinned revision.
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
		ds = append(ds,
			diag.New(diag.BadSource, fmt.Sprintf("%s of %s %s", name, entry.Source, tree.Refused[name])).
				Hinting(archive.WayOut(tree.Refused[name],
					"keep it as a file of the repository")+
					", or let the machines fetch the playbook: remove render: true"))
	}
	if len(ds) > 0 {
		return projection{diagnostics: ds}
	}
	for name, f := range tree.Files {
		p.Files = append(p.Files, model.ProjectedFile{Path: name, Data: f.Data, Executable: f.Executable})
	}
	slices.SortFunc(p.Files,
		func(a, b model.ProjectedFile) int { return strings.Compare(a.Path, b.Path) })
	return projection{projection: p}
}

// emitter turns the composed values of assignments into files.
type emitter struct {
	in     *Inputs
	tuples *tuples
	charts sync.Map // *model.DeploymentTarget -> *compose.Graph
}
