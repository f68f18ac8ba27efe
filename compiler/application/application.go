// Package application projects a single application: a repository whose kalypso.yaml names
// a chart or an overlay, with values for each target of each environment. There is no
// platform and no cluster. The output is the application's GitOps tree, a folder with
// manifests for each target.
//
// The values of a target compose like a platform's, folder over folder. The rendered
// manifests are the same as the output of `helm template` or `kustomize build`. If a target
// fails, its last good folder is kept, and the others are written.
package application

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/compose"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/engine"
	"github.com/kalypso-io/kalypso/compiler/evaluate"
	"github.com/kalypso-io/kalypso/compiler/expr"
	"github.com/kalypso-io/kalypso/compiler/kubetype"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/supervisor"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/internal/spelling"
)

// Request describes the application and the environments to project.
type Request struct {
	// Dir is the application's folder.
	Dir string
	// Environments are the names of the environments to project; nil means all.
	Environments []string
	// Store is as in compiler.Request.
	Store string
	// Cache has the results of earlier renders. If it is nil, kalypso reuses nothing.
	Cache *cache.Cache
	// Workers are as in compiler.Request.
	Workers *worker.Pool
	// Supervisor is as in compiler.Request.
	Supervisor *supervisor.Supervisor
	// Source is the commits to which the folder belongs. It is nil for the present content
	// of the folder, which a digest then identifies.
	Source *tree.Source
	// Ring is the part of the one environment to project, or "" for the whole environment.
	// Rings are all parts of the environment, or nil if Ring is "".
	Ring  string
	Rings []model.Ring

	without string // a folder that is not part of the application, such as its output
}

// Application is a projected application.
type Application struct {
	// Model is nil if the application is unknown; then its output stays unchanged.
	Model   *model.Application
	Targets []Target // sorted by environment, then name
	// Diagnostics have positions, and are sorted by them.
	Diagnostics []diag.Diagnostic
	// Stats count the rendered and the reused targets.
	Stats engine.Stats

	request Request
	source  source
	rings   map[string]string // of the targets, if a ring is projected
}

// Failed reports whether there are errors.
func (a *Application) Failed() bool { return diag.Errors(a.Diagnostics) }

// Target is the result of a target.
type Target struct {
	*model.ApplicationTarget
	Failed bool
	// Files are the files of its folder, sorted. They are nil if the target failed.
	Files []backends.File
	// Values are the composed values.
	Values model.Value
}

// Project projects an application. Problems of the application are among the diagnostics.
// It returns an error if a file cannot be read, or if the request names something that does
// not exist.
func Project(ctx context.Context, r Request) (*Application, error) {
	app, ds, err := evaluate.Application(ctx, r.Dir, r.Supervisor)
	if err != nil {
		return nil, err
	}
	out := &Application{Model: app, Diagnostics: ds, request: r}
	if app == nil {
		return out, nil
	}
	out.Diagnostics = append(r.relevant(ds), out.checkRings()...)
	contents, more, err := dependency.Open(r.Dir, r.Store)
	if err != nil {
		return nil, err
	}
	out.Diagnostics = append(out.Diagnostics, more...)
	p := &projector{Request: r, app: app, meter: compiler.NewMeter(r.Cache)}
	if err := p.chooses(app); err != nil {
		return nil, err
	}
	if p.source, more, err = openSource(r, app, contents); err != nil {
		return nil, err
	}
	out.source = p.source
	diag.Resolve(more, app.Positions)
	out.Diagnostics = append(out.Diagnostics, more...)
	broken := diag.Errors(more)
	for i := range app.Targets {
		if t := &app.Targets[i]; len(r.Environments) == 0 ||
			slices.Contains(r.Environments, t.Environment) {
			out.Targets = append(out.Targets, Target{ApplicationTarget: t, Failed: t.Invalid || broken})
		}
	}
	reported := make([][]diag.Diagnostic, len(out.Targets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range out.Targets {
		if t := &out.Targets[i]; !t.Failed && out.builds(t.Name) {
			group.Go(func() (err error) {
				reported[i], err = p.target(ctx, t)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out.Stats.Levels = slices.DeleteFunc(p.meter.Stats().Levels,
		func(l engine.LevelStats) bool { return l.Level != cache.Projection })
	for i := range reported {
		diag.Resolve(reported[i], app.Positions)
		for _, d := range reported[i] {
			d.Environment = out.Targets[i].Environment
			out.Diagnostics = append(out.Diagnostics,
				d.For(out.Targets[i].Environment+"/"+out.Targets[i].Name))
		}
	}
	out.Diagnostics = diag.Sort(out.Diagnostics)
	return out, nil
}

// relevant returns the diagnostics without those that concern only other environments. These
// do not fail the requested environments, and kalypso does not know all of them.
func (r *Request) relevant(ds []diag.Diagnostic) []diag.Diagnostic {
	if len(r.Environments) == 0 {
		return ds
	}
	var out []diag.Diagnostic
	for _, d := range ds {
		here := slices.DeleteFunc(slices.Clone(d.Assignments), func(id string) bool {
			environment, _, _ := strings.Cut(id, "/")
			return !slices.Contains(r.Environments, environment)
		})
		if len(here) > 0 || len(d.Assignments) == 0 {
			d.Assignments = here
			out = append(out, d)
		}
	}
	return out
}

// chooses checks that the requested environments exist.
func (p *projector) chooses(app *model.Application) error {
	var known []string
	for _, t := range app.Targets {
		known = append(known, t.Environment)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, name := range p.Environments {
		if !slices.Contains(known, name) {
			return &UnknownEnvironmentError{name, known}
		}
	}
	return nil
}

// UnknownEnvironmentError reports an environment that the application does not have.
type UnknownEnvironmentError struct {
	Name  string
	Known []string
}

// Error names the environment, and the one that was probably meant.
func (e *UnknownEnvironmentError) Error() string {
	s := "there is no environment " + e.Name
	if hint := spelling.DidYouMean(e.Name, e.Known); hint != "" {
		return s + "; " + hint
	}
	if len(e.Known) == 0 {
		return s + "; there are none: make the folder " + "environments/" + e.Name +
			"/default, with a values.yaml that may be empty"
	}
	return s + "; there are " + strings.Join(e.Known, ", ")
}

// projector projects the targets of one application. Several goroutines may use it
// once it is open.
type projector struct {
	Request
	app    *model.Application
	source source
	meter  *engine.Meter
}

// target renders one target.
func (p *projector) target(ctx context.Context, t *Target) ([]diag.Diagnostic, error) {
	t.Failed = true
	g := compose.Application(t.ApplicationTarget, expr.New(expr.In(p.Workers)))
	ds := slices.Clone(g.Diagnostics())
	if t.Values = g.Values; g.Failed {
		return ds, nil
	}
	rendered, err := p.meter.Render(ctx, p.Workers, p.source.content, p.source.job(p.app, t),
		p.source.fill)
	if err != nil {
		return nil, err
	}
	for _, d := range rendered.Diagnostics {
		ref := manifestsRef
		if h := p.app.Manifests.Helm; h != nil && h.Path != "" && d.Code == diag.BadSource {
			ref = ref.At("helm.path")
		}
		ds = append(ds, d.At(ref, ""))
	}
	if diag.Errors(ds) {
		return ds, nil
	}
	applied, hooks := kubernetes.WithoutHooks(rendered.Objects)
	if len(hooks) > 0 {
		ds = append(ds, addSite([]diag.Diagnostic{diag.New(diag.Hook,
			fmt.Sprintf("%d hooks of the chart are left out: no installation runs them", len(hooks))).
			Hinting("tests, and hooks of deletions and rollbacks, are Helm's own")}, manifestsRef)...)
	}
	if ds = append(ds, addSite(encrypted(applied), manifestsRef)...); diag.Errors(ds) {
		return ds, nil
	}
	if t.Files, err = files(applied); err != nil {
		return append(ds,
			addSite([]diag.Diagnostic{diag.New(diag.NotRendered, "what was rendered cannot be "+
				"written: "+err.Error())}, manifestsRef)...), nil
	}
	t.Failed = false
	return ds, nil
}

// encrypted reports the objects that SOPS has encrypted, because the program that applies
// the tree must decrypt them. It also reports objects that nothing can decrypt.
func encrypted(objects []model.Projected) (ds []diag.Diagnostic) {
	var names []string
	for _, o := range kubernetes.Items(objects) {
		if !kubetype.Encrypted(o.Value) {
			ds = append(ds, kubernetes.Encrypted(nil, o.Value)...)
			continue
		}
		kind, _ := o.Value.Lookup("kind")
		metadata, _ := o.Value.Lookup("metadata")
		name, _ := metadata.Lookup("name")
		names = append(names, kind.Text()+" "+name.Text())
	}
	if len(names) > 0 {
		ds = append(ds, diag.New(diag.EncryptedObject, "SOPS has encrypted what is rendered, and it is "+
			"written as it is: "+kubernetes.Few(names)).
			Hinting("let what applies the tree decrypt it, such as a Kustomization of Flux with decryption"))
	}
	return ds
}

// files returns the files of a target's folder: manifests.yaml, if there are manifests, and
// the kustomization.yaml that lists it. The objects are unchanged since they were rendered.
func files(objects []model.Projected) ([]backends.File, error) {
	var listed []string
	var out []backends.File
	if len(objects) > 0 {
		docs := make([]any, len(objects))
		for i, o := range objects {
			docs[i] = kubernetes.Ordered(o.Value)
		}
		data, err := yaml.Marshal(docs...)
		if err != nil {
			return nil, err
		}
		listed = []string{kubernetes.ManifestsFile}
		out = append(out, backends.File{Path: kubernetes.ManifestsFile, Data: data})
	}
	return append([]backends.File{kubernetes.Kustomization(listed)}, out...), nil
}

// Is reports whether a folder is an application's.
func Is(dir string) bool {
	for _, name := range evaluate.ApplicationFiles {
		if matches, err := filepath.Glob(filepath.Join(dir, name)); err == nil && len(matches) > 0 {
			return true
		}
	}
	return false
}
