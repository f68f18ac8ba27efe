package engine

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/address"
)

// boundViolations returns a diagnostic for each part of an assignment that exceeds the bounds of
// its workspace, which fails the assignment. It checks where the assignment is and why, the source
// of its manifests, the rendered objects, and the effects on machines. The platform's additions,
// such as its namespace service, have no bounds.
func (e *emitter) boundViolations(i int, delivered *backends.Assignment) []diag.Diagnostic {
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
	b.reportAll("labels", "labels", "may not have the labels ", forbiddenNames(b.of.Labels, labels))
	b.reportAll("", "policies", "may not be assigned by the policies ",
		forbiddenNames(b.of.Policies, slices.Clone(a.Policies)))
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

// addresses returns the source of manifests, or the sources of a package's downloads, sorted.
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

// climbs reports whether an address leads out of its folder in a way that a pattern does not see.
func climbs(source string) bool {
	a, ok := address.Parse(source)
	return !ok || a.Climbs
}

// bounds reports the parts of a workload that exceed its workspace.
type bounds struct {
	of        *model.Workspace // nil if the workspace has errors
	workspace string
	why       string    // why a profile applies instead; "" if the workspace is declared
	at        model.Ref // of the deployment target
	manifests string    // the field of the manifests
	ds        []diag.Diagnostic
}

// boundsOf returns the bounds of a workload, or of a part of it. at is the reported place.
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

// report adds a diagnostic about something that the workspace does not allow. field is a field of
// the deployment target, and list is the field of the workspace that decides it.
func (b *bounds) report(field, list, what string) {
	at := b.at
	if field != "" {
		at = at.At(field)
	}
	d := diag.New(diag.Bounds, fmt.Sprintf("a workload of workspace %s %s", b.workspace, what)).At(at,
		"")
	way := strings.ReplaceAll(list, ".", ": ")
	if b.why == "" {
		d = d.At(model.Ref{Collection: "workspaces", Name: b.workspace, Path: list}, "")
	} else {
		way = fmt.Sprintf("workspace.%s & {%s: [...]} (%s of kalypso.io/stdlib/workspace)", b.of.Name,
			way, b.why)
	}
	way = fmt.Sprintf("leave it out, or let the platform allow it: workspaces: %q: %s", b.workspace,
		way)
	b.ds = append(b.ds, d.Hinting(way))
}

// machine reports the effects of a package or a playbook on machines that its workspace does not
// allow. user is the assignment's own user.
func (b *bounds) machine(m model.Manifests, user string) {
	of := b.of.Machines
	if m.Ansible != nil && !of.Users.Allow(root) {
		b.report(b.manifests, "machines.users", "may not run playbooks, which run as root")
	}
	p := m.Package
	if p == nil {
		return
	}
	b.reportAll(b.manifests+".files", "machines.files", "may not put files on machines at ",
		outside(p, of.Files))
	b.reportAll(b.manifests+".deb", "machines.packages", "may not install ",
		forbiddenNames(of.Packages, slices.Sorted(maps.Keys(p.Deb))))
	b.reportAll(b.manifests+".units", "machines.units", "may not have the units ",
		forbiddenNames(of.Units, slices.Sorted(maps.Keys(p.Units))))
	var users, capabilities []string
	for _, name := range slices.Sorted(maps.Keys(p.Units)) {
		u := p.Units[name]
		for _, r := range (unit{name, u, p.Units}).runs() {
			if r.as != user && !of.Users.Allow(r.as) {
				users = append(users, r.as+" ("+name+r.by+")")
			}
		}
		for _, capability := range forbiddenNames(of.Capabilities, capabilitiesOf(u)) {
			capabilities = append(capabilities, capability+" ("+name+")")
		}
	}
	b.reportAll(b.manifests+".units", "machines.users", "may not run anything as ", users)
	b.reportAll(b.manifests+".units", "machines.capabilities", "may not have the capabilities ",
		capabilities)
}

// forbiddenNames returns the names that patterns do not allow.
func forbiddenNames(patterns model.Patterns, names []string) []string {
	return slices.DeleteFunc(names, patterns.Allow)
}

// outside returns the paths of a package's files that a workspace does not allow, sorted. Paths
// below /proc, /sys and /dev lead anywhere, so they are never allowed.
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

// anyNamespace stands for a namespace that no one has thought of. It is allowed if nearly all
// namespaces are.
const anyNamespace = "any"

// rendered reports the objects of a projection that a workspace does not allow. namespace is the
// namespace of the assignment.
func (b *bounds) rendered(p *model.Projection, namespace string) {
	items := kubernetes.Items(p.Objects)
	var namespaced, clusterScoped, unknown, elsewhere, reaching, secrets, traffic, files, fluxed,
		unlabelled, kept, hooks []string
	for i, o := range kubernetes.Identities(p, namespace) {
		kind := o.Kind
		if o.Group != "" {
			kind = o.Group + "/" + o.Kind
		}
		name := kind + " " + o.Name
		switch {
		case o.Namespace == "" && !b.of.Objects.ClusterScoped.Allow(kind):
			clusterScoped = append(clusterScoped, name)
		case o.Namespace != "" && !b.of.Objects.Namespaced.Allow(kind):
			namespaced = append(namespaced, name)
		case o.Guessed && !b.of.Objects.ClusterScoped.Allow(kind) &&
			!withoutAny(b.of.Objects.Namespaced).Allow(kind):
			unknown = append(unknown, name)
		}
		foreign := func(other string) bool {
			return other != "" && other != namespace &&
				!b.of.Namespaces.Allow(other)
		}
		if foreign(o.Given) {
			elsewhere = append(elsewhere, fmt.Sprintf("%s in %s", name, o.Given))
		}
		if kind == "Namespace" && foreign(o.Name) { // its removal removes everything in it
			elsewhere = append(elsewhere, name)
		}
		if others := slices.DeleteFunc(kubernetes.Reaches(items[i].Value),
			func(other string) bool { return !foreign(other) }); len(others) > 0 {
			reaching = append(reaching, fmt.Sprintf("%s to %s", name, kubernetes.Few(others)))
		}
		if others := forbiddenNames(b.of.Secrets, kubernetes.SecretsOf(items[i].Value)); len(others) > 0 {
			secrets = append(secrets, fmt.Sprintf("%s to %s", name, kubernetes.Few(others)))
		}
		if lacks := kubernetes.Lacks(items[i].Value, b.of.RequiredLabels); len(lacks) > 0 {
			unlabelled = append(unlabelled, name+" ("+strings.Join(lacks, ", ")+")")
		}
		anywhere := b.of.Namespaces.Allow(anyNamespace)
		if kubernetes.TakesTraffic(items[i].Value) && !anywhere {
			traffic = append(traffic, name)
		}
		if kubernetes.ActsAsFlux(items[i].Value) && !anywhere {
			fluxed = append(fluxed, name)
		}
		if fields := kubernetes.FilesOf(items[i].Value); len(fields) > 0 && !anywhere {
			files = append(files, fmt.Sprintf("%s by %s", name, strings.Join(fields, ", ")))
		}
		if kubernetes.AsksToStay(items[i].Value) || kubernetes.HasFinalizers(items[i].Value) {
			kept = append(kept, name)
		}
		if kubernetes.IsHook(items[i]) {
			hooks = append(hooks, name)
		}
	}
	b.reportAll(b.manifests, "objects.clusterScoped", "may not bring objects for the whole cluster: ",
		clusterScoped)
	b.reportAll(b.manifests, "objects.namespaced", "may not bring objects of kinds that may be for "+
		"the whole cluster, unless it says which: ", unknown)
	b.reportAll(b.manifests, "objects.namespaced", "may not bring ", namespaced)
	b.reportAll(b.manifests, "namespaces", "may not bring objects to other namespaces: ", elsewhere)
	b.reportAll(b.manifests, "namespaces", "may not refer to other namespaces: ", reaching)
	b.reportAll(b.manifests, "secrets", "may not refer to secrets: ", secrets)
	b.reportAll(b.manifests, "namespaces",
		"may not take the traffic of other namespaces by externalIPs: ", traffic)
	b.reportAll(b.manifests, "namespaces",
		"may not have Prometheus or Alertmanager use their own files: ", files)
	b.reportAll(b.manifests, "namespaces", "may not have Flux fetch and apply as itself, without a "+
		"serviceAccountName: ", fluxed)
	b.reportAll(b.manifests, "requiredLabels", "may not bring objects without its labels: ",
		unlabelled)
	if !*b.of.Reconciler.Keep {
		b.reportAll(b.manifests, "reconciler.keep",
			"may not keep what it brings when its assignment goes: ", kept)
	}
	if !*b.of.Reconciler.Hooks {
		b.reportAll(b.manifests, "reconciler.hooks", "may not have the hooks ", hooks)
	}
	if b.of.Quota != nil {
		b.overlapping(kubernetes.Overlapping(p))
	}
	if b.of.PodSecurity != "privileged" {
		b.reportAll(b.manifests, "podSecurity", "may not have pods that take the place of others: ",
			kubernetes.Preempting(p))
	}
	b.reportAll(b.manifests, "podSecurity",
		"may not have pods beyond the standard "+b.of.PodSecurity+": ",
		kubernetes.Insecure(p, b.of.PodSecurity))
}

// overlapping reports CronJobs whose share of a quota is not known.
func (b *bounds) overlapping(cronJobs []string) {
	if len(cronJobs) == 0 {
		return
	}
	b.report(b.manifests, "quota",
		"with a quota may not have CronJobs whose runs add up: "+kubernetes.Few(cronJobs))
	last := &b.ds[len(b.ds)-1]
	last.Hint = "write concurrencyPolicy: Forbid, or spec.jobTemplate.spec.activeDeadlineSeconds, " +
		"which ends each run"
}

// withoutAny returns the patterns except the one that allows everything.
func withoutAny(patterns model.Patterns) model.Patterns {
	return slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return p == "*" })
}
