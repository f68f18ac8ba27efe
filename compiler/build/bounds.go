package build

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/address"
)

// beyond says what of an assignment goes beyond its workspace, which fails it: where it is,
// where its manifests come from, the objects that they render to, and the files of machines.
// What the platform adds, such as its namespace service, is bounded by nothing.
func (e *emitter) beyond(i int, rendered *model.Projection) []diag.Diagnostic {
	a := &e.Schedule.Assignments[i]
	of, declared := e.Model.WorkspaceOf(a.Workload)
	b := &bounds{workspace: a.Workload.Workspace, at: a.Workload.TargetRef(a.Target.Name)}
	switch {
	case declared:
	case a.Workload.Registration != "":
		b.why = fmt.Sprintf("registration %s names no workspace that is declared, so what it brings has the bounds of %s", a.Workload.Registration, of.Name)
	default:
		b.why = "it is not declared, so it has the bounds of " + of.Name
	}
	if of == nil {
		return []diag.Diagnostic{diag.New(diag.Bounds, "workspace "+b.workspace+" has errors, so that nobody knows what "+a.Target.FullName+" may bring").
			At(b.at, "").Hinting("correct the errors of the workspace")}
	}
	if !of.Environments.Allow(e.Name) {
		b.report("", "environments", "may not be in environment "+e.Name)
	}
	if !of.ClusterTypes.Allow(a.ClusterType.Name) {
		b.report("", "clusterTypes", "may not be on cluster type "+a.ClusterType.Name)
	}
	manifests := "manifests." + string(a.Manifests.Kind())
	for _, source := range addresses(a.Manifests) {
		if !of.Sources.Allow(source) || climbs(source) {
			b.report(manifests, "sources", "may not have manifests of "+source)
		}
	}
	var namespaced, clusterScoped, elsewhere []string
	namespace := e.Plan.Namespaces[i]
	for _, o := range kubernetes.Identities(rendered, namespace) {
		kind := o.Kind
		if o.Group != "" {
			kind = o.Group + "/" + o.Kind
		}
		switch {
		case o.Namespace == "" && !of.Objects.ClusterScoped.Allow(kind):
			clusterScoped = append(clusterScoped, kind+" "+o.Name)
		case o.Namespace != "" && !of.Objects.Namespaced.Allow(kind):
			namespaced = append(namespaced, kind+" "+o.Name)
		}
		if o.Given != "" && o.Given != namespace && !of.Namespaces.Allow(o.Given) {
			elsewhere = append(elsewhere, fmt.Sprintf("%s %s in %s", kind, o.Name, o.Given))
		}
	}
	b.reportAll(manifests, "objects.clusterScoped", "may not bring objects for the whole cluster: ", clusterScoped)
	b.reportAll(manifests, "objects.namespaced", "may not bring ", namespaced)
	b.reportAll(manifests, "namespaces", "may not bring objects to other namespaces: ", elsewhere)
	if p := a.Manifests.Package; p != nil {
		b.reportAll(manifests+".files", "files", "may not put files on machines at ", outside(p, of.Files))
	}
	return b.ds
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

// outside returns the paths of a package's files that a workspace does not allow, sorted.
// What is below /proc, /sys and /dev leads anywhere, and is not allowed.
func outside(p *model.Package, allowed model.Patterns) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		clean := path.Clean(name)
		first, _, _ := strings.Cut(strings.TrimPrefix(clean, "/"), "/")
		if slices.Contains([]string{"proc", "sys", "dev"}, first) || !allowed.Allow(clean) {
			out = append(out, name)
		}
	}
	return out
}

// bounds reports what goes beyond a workspace.
type bounds struct {
	workspace string
	why       string    // a profile counts; "" where the workspace is declared
	at        model.Ref // of the deployment target
	ds        []diag.Diagnostic
}

func (b *bounds) reportAll(field, list, what string, names []string) {
	if len(names) > 0 {
		b.report(field, list, what+kubernetes.Few(names))
	}
}

// report says what the workspace does not allow, at a field of the deployment target, and
// which list of the workspace says so.
func (b *bounds) report(field, list, what string) {
	at := b.at
	if field != "" {
		at = at.At(field)
	}
	d := diag.New(diag.Bounds, fmt.Sprintf("a workload of workspace %s %s", b.workspace, what)).At(at, "")
	way := fmt.Sprintf("leave it out, or let the platform allow it: workspaces: %q: %s", b.workspace, strings.ReplaceAll(list, ".", ": "))
	if b.why == "" {
		d = d.At(model.Ref{Collection: "workspaces", Name: b.workspace, Path: list}, "")
	} else {
		way += " (" + b.why + " of kalypso.io/stdlib/workspace)"
	}
	b.ds = append(b.ds, d.Hinting(way))
}

// workspaceDigest identifies what bounds the workload of an assignment.
func (p *Planned) workspaceDigest(w *model.Workload) string {
	if of, _ := p.Model.WorkspaceOf(w); of != nil {
		return string(of.Digest)
	}
	return ""
}
