// Package gotemplate is the backend of teams that write their reconciler's files with templates of
// Go's text/template. As in the original Kalypso, there is a template for each file, and the
// template reads the assignment.
//
// The input is the templates and the assignment. The output is the files that the templates make,
// and the rendered manifests. If no template makes the workspace, the output also contains the
// workspace as Kubernetes objects. A template can only make text. It does not read the environment,
// the clock or the network, and its input and output are bounded. A key that does not exist is an
// error. The output of a template is never a template again, and must match its content type. Every
// error names the template and its line.
//
// An example is the platform that kalypso init --reconciler gotemplate writes. Its template
// reconciler.yaml begins with
//
//	name: {{ .Environment }}-{{ .DeploymentTargetName }}
//	repo: {{ .Manifests.repo }}
//
// For the assignment of hello-dev, Emit returns reconciler.yaml with
//
//	name: dev-hello-dev
//	repo: https://github.com/stefanprodan/podinfo
package gotemplate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/internal/files"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

const backend = "gotemplate"

type gotemplate struct{}

// New returns the backend.
func New() backends.Backend { return gotemplate{} }

// Name is the backend's key in #Reconciler.
func (gotemplate) Name() string { return backend }

// Support reports that a template may use all manifests as it likes.
func (gotemplate) Support(kind model.SourceKind) backends.Support {
	switch kind {
	case model.PackageSource:
		return backends.Support{Rendered: "a package has nothing to render"}
	case model.HelmPathSource:
		return backends.Support{Referenced: backends.OwnChart}
	}
	return backends.Support{Images: true, Registries: true}
}

// shared is the data of a folder that Index needs.
type shared struct {
	// Kustomization says that a kustomization can list the folder.
	Kustomization bool `json:"kustomization,omitempty"`
}

// Traits returns the traits of a team's own templates: one folder is for all clusters of a type.
func (gotemplate) Traits() backends.Traits { return backends.Traits{AnyGroup: true} }

// Reconciled returns the zero value, because no object in a cluster shows a rollout.
func (gotemplate) Reconciled(string, string, backends.Folder) backends.Reconciled {
	return backends.Reconciled{}
}

// Emit returns the folder: the files of the templates, and kalypso's files if no template
// makes them. If any file contains Kubernetes objects, Emit adds kustomization.yaml.
func (gotemplate) Emit(a *backends.Assignment) (backends.Emission, []diag.Diagnostic) {
	e := &emission{assignment: a}
	e.build()
	if !a.Render {
		e.ds = append(e.ds, backends.NoRestart(a, "templates write what brings the workload",
			"let the template add an annotation to pod templates, or render the manifests")...)
	}
	return delivery.Finish(a, backends.Emission{Files: e.folder.Files, Objects: e.folder.Objects},
		shared{Kustomization: e.kustomized}, e.ds)
}

// Central returns nil, because kalypso does not know where the reconciler runs.
func (gotemplate) Central(*backends.ClusterType, []string) []backends.Object { return nil }

// Index returns README.md, and kustomization.yaml with the folders that have one. It also returns
// kustomization.yaml if a folder of the reconciler would have one, even if its list is empty. A
// cluster that pulls the file must not lose it with the last folder.
func (gotemplate) Index(ct *backends.ClusterType, folders []backends.Folder) ([]backends.File,
	[]diag.Diagnostic) {
	var names []string
	for _, f := range folders {
		if delivery.SharedOf[shared](f, backend).Kustomization {
			names = append(names, f.DeploymentTarget)
		}
	}
	out := []backends.File{kubernetes.README(ct, folders)}
	_, namespace := ct.Reconciler.Value.Lookup("namespace")
	_, config := ct.Reconciler.Value.Lookup("config")
	if len(names) > 0 || !namespace || !config {
		out = append(out, kubernetes.Kustomization(names))
	}
	return delivery.Sorted(out), nil
}

// Accounts reports that only the platform team knows the accounts.
func (gotemplate) Accounts(*backends.ClusterType) backends.Accounts {
	return backends.Accounts{Unknown: "only the platform team knows what applies the files"}
}

// Bootstrap returns only a diagnostic with the reason: only the platform team knows its reconciler.
func (gotemplate) Bootstrap(ct *backends.ClusterType, _ []backends.Folder) ([]byte,
	[]diag.Diagnostic) {
	return nil, []diag.Diagnostic{delivery.NoBootstrap(ct)}
}

// Entries returns the reason why clusters cannot have entries.
func (gotemplate) Entries(ct *backends.ClusterType) (func(*model.Cluster) []backends.File,
	[]diag.Diagnostic) {
	return nil, delivery.NoEntries(ct,
		"kalypso does not know how its reconciler would follow a folder")
}

// source is a template as the platform wrote it.
type source struct {
	path        string // of the file that it makes
	text        string
	contentType string
	executable  bool
	ref         model.Ref
}

// sourcesOf returns the templates of a field of #GoTemplate, by path. given reports whether
// the field exists.
func sourcesOf(spec backends.Spec, field string) (out []source, given bool) {
	all, given := spec.Value.Lookup(field)
	for _, f := range all.Fields() {
		text := func(name string) string {
			v, _ := f.Value.Lookup(name)
			return v.Text()
		}
		out = append(out, source{
			path: f.Name, text: text("template"), contentType: text("contentType"),
			executable: text("mode") == "0755",
			ref:        spec.Ref.At(model.JoinPath(backend+"."+field, model.Label(f.Name))),
		})
	}
	return out, given
}

// emission collects the folder of an assignment.
type emission struct {
	assignment *backends.Assignment
	folder     files.Files
	mentioned  map[string]bool // the fields of the assignment that templates use
	kustomized bool
	ds         []diag.Diagnostic
}

func (e *emission) report(ds ...diag.Diagnostic) { e.ds = append(e.ds, ds...) }

func (e *emission) build() {
	a := e.assignment
	e.mentioned = map[string]bool{}
	reconciler, _ := sourcesOf(a.Reconciler, "reconciler")
	if len(reconciler) == 0 && !a.Render {
		e.report(diag.New(diag.BadSpec,
			"no template of the reconciler brings the manifests of "+a.DeploymentTarget+
				" to the cluster type").
			At(a.Reconciler.Ref.At(backend), "").Hinting("write one under gotemplate.reconciler, or set " +
			"render: true on the deployment target"))
	}
	namespace, given := sourcesOf(a.Reconciler, "namespace")
	if !given {
		file, objects, ds := kubernetes.Namespace(a)
		e.report(ds...)
		e.folder.Add(file, objects, true)
	}
	config, configured := sourcesOf(a.Reconciler, "config")
	if !configured {
		file, objects, ds := kubernetes.PlatformConfig(a)
		e.report(ds...)
		e.folder.Add(file, objects, true)
	}
	e.rendered()
	for _, s := range slices.Concat(reconciler, namespace, config) {
		e.add(s)
	}
	e.report(e.folder.OfService(a)...)
	e.report(e.folder.Twice(a.Reconciler.Ref.At(backend))...)
	if given {
		e.undelivered()
	}
	e.unordered()
	e.unreplaced()
	e.kustomization()
}

// rendered adds the rendered manifests.
func (e *emission) rendered() {
	a := e.assignment
	if !a.Render || a.Projection == nil {
		return
	}
	applied, left := kubernetes.WithoutHooks(a.Projection.Objects)
	made, objects, ds := kubernetes.Manifests(a, applied)
	e.report(ds...)
	for _, f := range made {
		e.folder.Add(f, objects, true)
	}
	e.report(e.folder.Projected(a)...)
	hooks := len(left) > 0 ||
		slices.ContainsFunc(applied, func(o model.Projected) bool { return len(o.Hooks) > 0 })
	if hooks {
		e.report(diag.New(diag.Hook,
			fmt.Sprintf("the chart of %s has hooks, which no template can run: those of an installation "+
				"or upgrade are applied with the rest, the others not at all", a.DeploymentTarget)).
			At(a.Ref.At("manifests"),
				"").Hinting("refer to the chart instead of rendering it where its hooks matter"))
	}
}

// add adds the file that a template makes, if it makes one.
func (e *emission) add(s source) {
	if err := files.CheckPath(s.path); err != nil {
		e.report(files.Bad(s.ref,
			fmt.Sprintf("%q %v", s.path, err)).Hinting("give the file another path"))
		return
	}
	p, ds := programOf(s)
	e.report(ds...)
	if p == nil {
		return
	}
	for name := range p.mentioned {
		e.mentioned[name] = true
	}
	out, d := p.execute(s, dataOf(e.assignment))
	if d != nil {
		e.report(*d)
		return
	}
	if len(strings.TrimSpace(string(out.text))) == 0 {
		return // the template decides that there is no such file
	}
	made, d := out.content(e.assignment)
	if d != nil {
		e.report(*d)
		return
	}
	if len(made.data) == 0 {
		return
	}
	if err := e.folder.Collides(s.path); err != nil {
		e.report(files.Bad(s.ref, s.path+" "+err.Error()).Hinting("give the file another path"))
		return
	}
	for _, d := range made.encrypted {
		e.report(d.On(s.ref.String()).At(s.ref.At("template"), ""))
	}
	if len(made.plaintext) > 0 {
		e.report(kubernetes.Plaintext(s.path, made.plaintext).On(s.ref.String()).At(s.ref.At("template"),
			"").Hinting(files.InsteadOfSecret))
	}
	e.folder.Add(backends.File{Path: s.path, Data: made.data, Executable: s.executable}, made.objects,
		made.resource)
}

// undelivered reports secrets that no template uses, if the templates make the workspace.
func (e *emission) undelivered() {
	if e.mentioned["Secrets"] {
		return
	}
	for _, s := range e.assignment.Secrets {
		e.report(diag.New(diag.UndeliverableSecret,
			fmt.Sprintf("%s is a secret, and no template delivers it", s.Name)).On(s.Name).
			At(e.assignment.Reconciler.Ref.At(backend+".namespace"), "").
			Hinting("range over .Secrets in a template, or leave namespace out, so that the namespace " +
				"service delivers them"))
	}
}

// unordered warns of dependencies that no template looks at.
func (e *emission) unordered() {
	a := e.assignment
	if len(a.DependsOn) == 0 || e.mentioned["DependsOn"] || e.mentioned["Wave"] {
		return
	}
	e.report(diag.New(diag.NotWaitedFor,
		fmt.Sprintf("%s depends on %s, and no template says so to the reconciler", a.DeploymentTarget,
			strings.Join(a.DependsOn, ", "))).
		At(a.Ref.At("dependsOn"), "").Hinting("use .DependsOn or .Wave in a template"))
}

// unreplaced warns of images of the cluster type that no template replaces.
func (e *emission) unreplaced() {
	a := e.assignment
	if len(a.Images) == 0 || a.Render || e.mentioned["Images"] || a.Manifests.Package != nil ||
		a.Manifests.Ansible != nil {
		return
	}
	e.report(diag.New(diag.NoEffect, fmt.Sprintf("images of cluster type %s have no effect on %s: "+
		"no template replaces them", a.ClusterType, a.DeploymentTarget)).
		At(a.ImageRef(0), "").At(a.Reconciler.Ref.At(backend), "").
		Hinting("use .Images in a template, or set render: true on the deployment target"))
}

// kustomization adds kustomization.yaml, unless a template makes it or its list would be
// empty.
func (e *emission) kustomization() {
	resources := e.folder.Resources
	switch err := e.folder.Collides(kubernetes.KustomizationFile); {
	case err != nil:
		e.kustomized = slices.ContainsFunc(e.folder.Files,
			func(f backends.File) bool { return f.Path == kubernetes.KustomizationFile })
	case len(resources) > 0:
		e.folder.Add(kubernetes.Kustomization(resources), nil, false)
		e.kustomized = true
	}
}
