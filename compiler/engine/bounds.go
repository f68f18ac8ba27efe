package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/address"
)

// beyond says what of an assignment goes beyond its workspace, which fails it: where it is
// and why, where its manifests come from, the objects that they render to, and what they do
// to machines. What the platform adds, such as its namespace service, is bounded by nothing.
func (e *emitter) beyond(i int, delivered *backends.Assignment) []diag.Diagnostic {
	a := &e.in.Schedule.Assignments[i]
	b := e.in.boundsOf(a.Workload, a.Workload.TargetRef(a.Target.Name))
	if b.of == nil {
		return []diag.Diagnostic{diag.New(diag.Bounds, "workspace "+b.workspace+" has errors, so that "+
			"nobody knows what "+a.Target.FullName+" may bring").
			At(b.at, "").Hinting("correct the errors of the workspace").
			Following(model.Ref{Collection: "workspaces", Name: b.workspace}.String())}
	}
	if !b.of.Environments.Allow(e.in.Name) {
		b.report("", "environments", "may not be in environment "+e.in.Name)
	}
	if !e.in.mayBeOn(b.of, a.ClusterType) {
		b.report("", "clusterTypes", "may not be on cluster type "+a.ClusterType.TypeName())
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(a.Target.Labels)) {
		labels = append(labels, key+"="+a.Target.Labels[key])
	}
	b.reportAll("labels", "labels", "may not have the labels ", without(b.of.Labels, labels))
	b.reportAll("", "policies", "may not be assigned by the policies ", without(b.of.Policies, slices.Clone(a.Policies)))
	var sources []string
	for _, source := range addresses(a.Manifests) {
		if !b.of.Sources.Allow(source) || climbs(source) {
			sources = append(sources, source)
		}
	}
	b.manifests = "manifests." + string(a.Manifests.Kind())
	b.reportAll(b.manifests, "sources", "may not have manifests of ", sources)
	if delivered.Projection != nil && a.Manifests.Package == nil {
		b.rendered(delivered.Projection, e.in.Plan.Namespaces[i])
	}
	user := model.UserName(a.Target.FullName)
	if given, ok := delivered.NamespaceService.Value.Lookup("machine"); ok {
		if name, ok := given.Lookup("user"); ok {
			user = name.Text()
		}
	}
	b.machine(a.Manifests, user)
	return b.ds
}

// mayBeOn says whether a workspace may be on a cluster type.
func (p *Inputs) mayBeOn(w *model.Workspace, ct *model.ClusterType) bool {
	if w.SelectedTypes == nil {
		return w.ClusterTypes.Allow(ct.TypeName())
	}
	return p.bounded[w.Name][ct.Name]
}

// addresses returns where manifests come from, and what a package takes from elsewhere.
func addresses(m model.Manifests) []string {
	if source, ok := dependency.SourceOf(m); ok {
		return []string{source.URL}
	}
	var out []string
	if m.Package == nil {
		return out
	}
	for _, d := range m.Package.Deb {
		out = append(out, d.URL)
	}
	for _, f := range m.Package.Files {
		out = append(out, f.URL)
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(source string) bool { return source == "" })
}

// climbs says whether an address leads out of the folder where a pattern sees it.
func climbs(source string) bool {
	a, ok := address.Parse(source)
	return !ok || a.Climbs
}

// bounds reports what goes beyond a workspace.
type bounds struct {
	of        *model.Workspace // nil for one that has errors
	workspace string
	why       string    // a profile counts; "" where the workspace is declared
	at        model.Ref // of the deployment target
	manifests string    // the field of the manifests
	ds        []diag.Diagnostic
}

// boundsOf returns the bounds of a workload, or of what is declared at a place in it.
func (p *Inputs) boundsOf(w *model.Workload, at model.Ref) *bounds {
	of, declared := p.Model.WorkspaceOf(w)
	b := &bounds{of: of, workspace: w.Workspace, at: at}
	switch {
	case declared:
	case w.Registration != "":
		b.why = fmt.Sprintf("registration %s names no workspace that is declared, so what it brings "+
			"has the bounds of %s", w.Registration, of.Name)
	default:
		b.why = "it is not declared, so it has the bounds of " + of.Name
	}
	return b
}

func (b *bounds) reportAll(field, list, what string, names []string) {
	if len(names) > 0 {
		b.report(field, list, what+kubernetes.Few(names))
	}
}

// report says what the workspace does not allow, at a field of the deployment target, and
// which field of the workspace says so.
func (b *bounds) report(field, list, what string) {
	at := b.at
	if field != "" {
		at = at.At(field)
	}
	d := diag.New(diag.Bounds, fmt.Sprintf("a workload of workspace %s %s", b.workspace, what)).At(at, "")
	way := strings.ReplaceAll(list, ".", ": ")
	if b.why == "" {
		d = d.At(model.Ref{Collection: "workspaces", Name: b.workspace, Path: list}, "")
	} else {
		way = fmt.Sprintf("workspace.%s & {%s: [...]} (%s of kalypso.io/stdlib/workspace)", b.of.Name, way, b.why)
	}
	way = fmt.Sprintf("leave it out, or let the platform allow it: workspaces: %q: %s", b.workspace, way)
	b.ds = append(b.ds, d.Hinting(way))
}

// workspaceDigest identifies what bounds the workload of an assignment.
func (p *Inputs) workspaceDigest(w *model.Workload) string {
	if of, _ := p.Model.WorkspaceOf(w); of != nil {
		return string(of.Digest)
	}
	return ""
}
