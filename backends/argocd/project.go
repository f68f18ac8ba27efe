package argocd

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Argo CD does not prune or delete an object that its project does not permit. It leaves the object
// on the cluster without a message. The project of the commit that removes an object decides. The
// permissions of a project must therefore not depend on the objects or clusters that happen to
// exist. They depend only on the platform's declarations of destinations, workspaces and namespace
// services (see permits). A project that leaves the tree stays unchanged until its Applications are
// gone, because of its finalizer.
//
// The names of AppProjects have dots between their parts, and the parts have no dots. One Argo CD
// may serve several cluster types and environments. With dashes, the target b-c on cluster type a
// and the target c on a-b would share a project.

// assignmentProject returns the name of the AppProject of the Application that
// applies an assignment's folder.
func assignmentProject(environment, clusterType, deploymentTarget string) string {
	return model.ShortName(environment+"."+clusterType+"."+deploymentTarget, model.MaxLabel)
}

// clustersProject returns the name of the AppProject of the Applications that apply an assignment's
// folder to each cluster of an inventory. It differs from the project of a folder that has only one
// Application. A folder may change from one to the other, and Argo CD deletes its old objects with
// the permissions of the old project.
func clustersProject(environment, clusterType, deploymentTarget string) string {
	return model.ShortName(environment+"."+clusterType+"."+deploymentTarget+".clusters",
		model.MaxLabel)
}

// workloadProject returns the name of the AppProject of the workload's own
// Application.
func workloadProject(environment, clusterType, deploymentTarget string) string {
	return model.ShortName(environment+"."+clusterType+"."+deploymentTarget+".workload",
		model.MaxLabel)
}

// workspaceProject returns the name of the AppProject that the Applications of a
// workspace shared before each had its own.
func workspaceProject(environment, clusterType, workspace string) string {
	return model.ShortName(environment+"."+clusterType+"."+workspace, model.MaxLabel)
}

var anyKind = groupKind{Group: "*", Kind: "*"}

// projectsOfAssignment returns the AppProjects of the Applications that apply the folder.
// The first is for the one Application. If the folder goes to each cluster of an inventory,
// the second is for those Applications. The first always exists: earlier releases used it
// for both, and Argo CD does not delete a project in use.
//
// The projects of a folder of another backend, or of an earlier release, permit everything,
// because the content of the folder is not known.
func projectsOfAssignment(ct *backends.ClusterType, o options, f folder) []kubernetes.Object {
	spec := appProject{
		Description: fmt.Sprintf("Assignment of %s to cluster type %s in %s",
			f.DeploymentTarget, ct.Name, ct.Environment),
		SourceRepos:                []string{ct.GitOps.URL()},
		NamespaceResourceWhitelist: []groupKind{anyKind},
	}
	if f.Permits == nil {
		spec.Destinations = []destination{{Server: "*", Namespace: "*"}}
		spec.ClusterResourceWhitelist = []clusterObject{{Group: "*", Kind: "*"}}
	} else {
		f.Permits.addTo(&spec, f, o)
	}
	var out []kubernetes.Object
	for _, name := range assignmentProjects(ct, f) {
		out = append(out, projectObject(projectMeta(ct, o, f, name), spec))
	}
	return out
}

// assignmentProjects returns the names of projectsOfAssignment.
func assignmentProjects(ct *backends.ClusterType, f folder) []string {
	out := []string{assignmentProject(ct.Environment, ct.Name, f.DeploymentTarget)}
	if len(f.Clusters) > 0 {
		out = append(out, clustersProject(ct.Environment, ct.Name, f.DeploymentTarget))
	}
	return out
}

// projectOfWorkload returns the AppProject of the workload's Application. Other people's
// manifests reach only the workload's namespace, on any server, and the objects that the
// workspace allows.
func projectOfWorkload(ct *backends.ClusterType, o options, f folder) kubernetes.Object {
	spec := appProject{
		Description: fmt.Sprintf("Workload of %s on cluster type %s in %s",
			f.DeploymentTarget, ct.Name, ct.Environment),
		SourceRepos:                []string{f.Repo},
		Destinations:               []destination{{Server: "*", Namespace: f.Namespace}},
		NamespaceResourceWhitelist: []groupKind{anyKind},
	}
	if f.CreatesNamespace {
		// By name, because a Namespace with another name belongs to others. Argo CD never
		// prunes it.
		spec.ClusterResourceWhitelist = []clusterObject{{Kind: "Namespace", Name: f.Namespace}}
	}
	if f.Bounds != nil {
		f.Bounds.addTo(&spec, o.Namespace)
	}
	return projectObject(
		projectMeta(ct, o, f, workloadProject(ct.Environment, ct.Name, f.DeploymentTarget)), spec)
}

func projectMeta(ct *backends.ClusterType, o options, f folder, name string) kubernetes.Metadata {
	meta := delivery.AssignmentMeta(ct, f.Folder, o.Namespace)
	meta.Name = name
	return meta
}

// workloadProjects returns the AppProjects of the workloads' Applications, in the
// order of their folders.
func workloadProjects(ct *backends.ClusterType, o options, folders []folder) []kubernetes.Object {
	var out []kubernetes.Object
	for _, f := range folders {
		if f.Repo != "" && f.Own {
			out = append(out, projectOfWorkload(ct, o, f))
		}
	}
	return append(out, workspaceProjects(ct, o, folders)...)
}

// workspaceProjects returns the AppProjects that Applications in kept folders still share by
// workspace, sorted by name. Without these projects, Argo CD could not sync the Applications until
// the folders are built again. It leaves out a project if an assignment's project now has its name.
func workspaceProjects(ct *backends.ClusterType, o options, folders []folder) []kubernetes.Object {
	taken := map[string]bool{}
	for _, f := range folders {
		taken[assignmentProject(ct.Environment, ct.Name, f.DeploymentTarget)] = true
	}
	specs := map[string]*appProject{}
	for _, f := range folders {
		if f.Repo == "" || f.Own || taken[workspaceProject(ct.Environment, ct.Name, f.Workspace)] {
			continue
		}
		p := specs[f.Workspace]
		if p == nil {
			p = &appProject{
				Description: fmt.Sprintf("Workloads of %s on cluster type %s in %s", f.Workspace,
					ct.Name, ct.Environment),
				NamespaceResourceWhitelist: []groupKind{anyKind},
			}
			specs[f.Workspace] = p
		}
		p.SourceRepos = append(p.SourceRepos, f.Repo)
		p.Destinations = append(p.Destinations, destination{Server: "*", Namespace: f.Namespace})
	}
	var out []kubernetes.Object
	for workspace, spec := range specs {
		slices.Sort(spec.SourceRepos)
		spec.SourceRepos = slices.Compact(spec.SourceRepos)
		slices.SortFunc(spec.Destinations,
			func(a, b destination) int { return cmp.Compare(a.Namespace, b.Namespace) })
		spec.Destinations = slices.Compact(spec.Destinations)
		out = append(out, projectObject(delivery.ClusterTypeMeta(workspaceProject(ct.Environment, ct.Name,
			workspace), o.Namespace), *spec))
	}
	slices.SortFunc(out,
		func(a, b kubernetes.Object) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return out
}

// permits are the permissions of an assignment's folder, in addition to the assignment's namespace
// and the objects in it. They come from the bounds of its workspace and from the declarations of
// its namespace service. If a list is absent, the list of #Team applies.
//
// No permission depends on objects. If a ClusterRole leaves the namespace service, the project
// still permits it, because the declaration still exists, and Argo CD prunes it. To declare less
// than before, remove the objects first.
type permits struct {
	Namespaces    model.Patterns `json:"namespaces,omitzero"`
	ClusterScoped model.Patterns `json:"clusterScoped,omitzero"`
}

// permitsOf returns the permissions of a folder. It returns an error if the namespace service
// contains more.
func permitsOf(a *backends.Assignment, o options, objects []backends.Object) (*permits,
	[]diag.Diagnostic) {
	var service struct {
		Namespaces model.Patterns
		Objects    struct{ ClusterScoped model.Patterns }
	}
	if err := a.NamespaceService.Decode(&service); err != nil {
		return nil, nil // kubernetes.Workspace has reported it
	}
	p := &permits{model.Patterns{"*"}, model.Patterns{"*"}}
	if w := a.Bounds; w != nil {
		p = &permits{union(w.Namespaces, service.Namespaces),
			union(w.Objects.ClusterScoped, service.Objects.ClusterScoped)}
	}
	ds := p.lacking(a, o, objects)
	team := team()
	if slices.Equal(p.Namespaces, team.Namespaces) {
		p.Namespaces = nil
	}
	if slices.Equal(p.ClusterScoped, team.ClusterScoped) {
		p.ClusterScoped = nil
	}
	return p, ds
}

// team returns the lists of #Team, which replace absent lists.
func team() permits {
	w := &model.Workspace{}
	w.Complete()
	return permits{w.Namespaces, w.Objects.ClusterScoped}
}

// union returns patterns that allow everything that one of two lists allows. An exclusion of one
// list stays only if the other list allows no part of it. The result may therefore allow more than
// both lists, because a list of Argo CD has no other form. The build checks objects by each list.
func union(a, b model.Patterns) model.Patterns {
	out := model.Patterns{}
	for _, sides := range [2][2]model.Patterns{{a, b}, {b, a}} {
		for _, p := range sides[0] {
			not, takesAway := strings.CutPrefix(p, "!")
			lost := takesAway && !slices.Contains(sides[1], p) &&
				slices.ContainsFunc(sides[1], func(other string) bool {
					return !strings.HasPrefix(other, "!") && overlap(not, other)
				})
			if !lost && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// overlap reports whether two patterns match the same text. * stands for any text.
func overlap(a, b string) bool {
	switch {
	case a == "" && b == "":
		return true
	case strings.HasPrefix(a, "*"):
		return overlap(a[1:], b) || b != "" && overlap(a, b[1:])
	case strings.HasPrefix(b, "*"):
		return overlap(b, a)
	}
	return a != "" && b != "" && a[0] == b[0] && overlap(a[1:], b[1:])
}

// lacking returns an error if the namespace service contains objects that are not permitted, with a
// hint about the lines to add. Only the workspace bounds rendered objects.
func (p *permits) lacking(a *backends.Assignment, o options,
	objects []backends.Object) []diag.Diagnostic {
	rendered := map[backends.Object]bool{}
	if a.Render && a.Projection != nil {
		for _, r := range kubernetes.Identities(a.Projection, a.Namespace) {
			rendered[r.Object] = true
		}
	}
	var brings, namespaces, kinds []string
	for _, object := range objects {
		kind := object.Kind
		if object.Group != "" {
			kind = object.Group + "/" + object.Kind
		}
		switch central := object.Group == applicationKind.Group && object.Namespace == o.Namespace; {
		case rendered[object] || central || kind == "Namespace" || object.Namespace == a.Namespace:
		case object.Namespace == "" && !p.ClusterScoped.Allow(kind):
			brings, kinds = append(brings, kind+" "+object.Name), append(kinds, strconv.Quote(kind))
		case object.Namespace != "" && !p.Namespaces.Allow(object.Namespace):
			brings, namespaces = append(brings, fmt.Sprintf("%s %s in %s", kind, object.Name,
				object.Namespace)), append(namespaces, strconv.Quote(object.Namespace))
		}
	}
	if len(brings) == 0 {
		return nil
	}
	var lines []string
	for _, l := range []struct {
		field string
		names []string
	}{{"namespaces", namespaces}, {"objects: clusterScoped", kinds}} {
		slices.Sort(l.names)
		if names := slices.Compact(l.names); len(names) > 0 {
			lines = append(lines, fmt.Sprintf("namespaceServices: %q: %s: [%s]", a.NamespaceService.Ref.Name,
				l.field, strings.Join(names, ", ")))
		}
	}
	d := diag.New(diag.BadSpec,
		fmt.Sprintf("namespace service %s brings what the AppProject of %s does not permit: %s",
			a.NamespaceService.Ref.Name, a.DeploymentTarget, kubernetes.Few(brings))).
		At(a.NamespaceService.Ref, "").At(a.Reconciler.Ref, "").
		Hinting("permit it, and keep that for as long as a cluster may have such objects: " +
			strings.Join(lines, "; "))
	return []diag.Diagnostic{d}
}

// addTo adds the permissions of a folder to a project. They cover the folder's destination, with
// the namespace of the assignment and the namespaces that p allows. If the destination is the
// cluster of Argo CD, they also cover Argo CD's namespace. A folder that goes to each cluster of an
// inventory has every server as its destination. A cluster that leaves the inventory must still be
// emptied.
func (p permits) addTo(spec *appProject, f folder, o options) {
	absent := team()
	if p.Namespaces == nil {
		p.Namespaces = absent.Namespaces
	}
	if p.ClusterScoped == nil {
		p.ClusterScoped = absent.ClusterScoped
	}
	to, needed := f.destination(), []string{f.Namespace}
	if len(f.Clusters) > 0 {
		to = destination{Server: "*"}
	}
	beside := len(f.Clusters) > 0 || !to.remote()
	if beside {
		needed = append(needed, o.Namespace)
	}
	everywhere := slices.Contains(p.Namespaces, "*")
	add := func(d destination) {
		if !slices.Contains(spec.Destinations, d) { // a project with duplicates is invalid
			spec.Destinations = append(spec.Destinations, d)
		}
	}
	if !everywhere {
		add(to.inNamespace(f.Namespace))
		if beside {
			add(destination{Server: inCluster, Namespace: o.Namespace})
		}
	}
	for _, namespace := range p.Namespaces {
		not, takesAway := strings.CutPrefix(namespace, "!")
		switch {
		case !takesAway && (namespace == "*" || !everywhere):
			add(to.inNamespace(namespace))
		case !takesAway ||
			slices.ContainsFunc(needed, func(name string) bool { return overlap(not, name) }):
		case everywhere && to.Server != "":
			add(to.inNamespace("!" + not))
		default:
			add(destination{Server: noServer, Namespace: not})
		}
	}
	p.clusterScoped(spec)
}

// clusterScoped adds objects without a namespace to a project's permissions. A Namespace may have
// any name. If only the assignment's name were permitted, a change of the namespace service's
// pattern would leave the former namespace with everything in it.
func (p permits) clusterScoped(spec *appProject) {
	namespace := groupKind{Kind: "Namespace"}
	allowed, denied := kindsOf(p.ClusterScoped)
	if slices.Contains(allowed, anyKind) {
		allowed = []groupKind{anyKind}
	} else {
		allowed = append([]groupKind{namespace},
			slices.DeleteFunc(allowed, func(k groupKind) bool { return k == namespace })...)
	}
	for _, k := range allowed {
		spec.ClusterResourceWhitelist = append(spec.ClusterResourceWhitelist,
			clusterObject{Group: k.Group, Kind: k.Kind})
	}
	for _, k := range denied {
		if k.Group != "" || !overlap(k.Kind, namespace.Kind) {
			spec.ClusterResourceBlacklist = append(spec.ClusterResourceBlacklist,
				clusterObject{Group: k.Group, Kind: k.Kind})
		}
	}
}

// bounds are the bounds of a workspace, as patterns.
type bounds struct {
	Namespaced    model.Patterns `json:"namespaced,omitempty"`
	ClusterScoped model.Patterns `json:"clusterScoped,omitempty"`
	Namespaces    model.Patterns `json:"namespaces,omitempty"`
}

// boundsOf returns the bounds of a workspace. It returns nil if no one has declared the workspace,
// or if it is a #Team. The platform's own people then write its workloads, which may contain
// anything in their namespace.
func boundsOf(w *model.Workspace) *bounds {
	if w == nil || w.IsTeam() {
		return nil
	}
	return &bounds{w.Objects.Namespaced, w.Objects.ClusterScoped, w.Namespaces}
}

// addTo adds the permissions of the bounds to a project, except Argo CD's own namespace, which
// may contain Applications of any project.
func (b *bounds) addTo(spec *appProject, own string) {
	spec.NamespaceResourceWhitelist, spec.NamespaceResourceBlacklist = kindsOf(b.Namespaced)
	if len(spec.NamespaceResourceWhitelist) == 0 {
		// An empty list would permit all.
		spec.NamespaceResourceBlacklist = []groupKind{anyKind}
	}
	allowed, denied := kindsOf(b.ClusterScoped)
	for _, k := range allowed {
		if k == (groupKind{Kind: "Namespace"}) { // only the namespaces that its objects may be in
			for _, name := range b.Namespaces {
				if !strings.HasPrefix(name, "!") {
					spec.ClusterResourceWhitelist = append(spec.ClusterResourceWhitelist,
						clusterObject{Kind: k.Kind, Name: name})
				}
			}
			continue
		}
		spec.ClusterResourceWhitelist = append(spec.ClusterResourceWhitelist,
			clusterObject{Group: k.Group, Kind: k.Kind})
	}
	for _, k := range denied {
		spec.ClusterResourceBlacklist = append(spec.ClusterResourceBlacklist,
			clusterObject{Group: k.Group, Kind: k.Kind})
	}
	for _, d := range destinationsOf(b.Namespaces, own) {
		if !slices.Contains(spec.Destinations, d) { // a project with duplicates is invalid
			spec.Destinations = append(spec.Destinations, d)
		}
	}
}

// noServer does not match the URL of any server, so it excludes all of them.
const noServer = "!http*"

// destinationsOf returns the destinations of a project for patterns of namespaces, except Argo CD's
// own namespace. A namespace with a ! also permits all other namespaces on the servers of its
// destination (isDestinationMatched in pkg/apis/application/v1alpha1/app_project_types.go). It is
// therefore used only if the patterns allow all other namespaces. Otherwise destinationsOf excludes
// a namespace by excluding all servers for it.
func destinationsOf(namespaces model.Patterns, own string) []destination {
	everywhere := slices.Contains(namespaces, "*")
	var out []destination
	without := func(namespace string) {
		if everywhere {
			out = append(out, destination{Server: "*", Namespace: "!" + namespace})
		} else {
			out = append(out, destination{Server: noServer, Namespace: namespace})
		}
	}
	for _, namespace := range namespaces {
		if not, takesAway := strings.CutPrefix(namespace, "!"); takesAway {
			without(not)
		} else {
			out = append(out, destination{Server: "*", Namespace: namespace})
		}
	}
	if namespaces.Allow(own) {
		without(own)
	}
	return out
}

// kindsOf returns the kinds that patterns allow, and the kinds that they exclude.
func kindsOf(patterns model.Patterns) (allowed, denied []groupKind) {
	for _, p := range patterns {
		if not, takesAway := strings.CutPrefix(p, "!"); takesAway {
			denied = append(denied, kindsLike(not)...)
		} else {
			allowed = append(allowed, kindsLike(p)...)
		}
	}
	return allowed, denied
}

// kindsLike returns the kinds that a pattern such as "apps/*" matches. In patterns, a kind
// of the core group has no group. Each * of a pattern without a slash may also match a
// slash.
func kindsLike(pattern string) []groupKind {
	if pattern == "*" {
		return []groupKind{anyKind}
	}
	if group, kind, found := strings.Cut(pattern, "/"); found {
		if strings.Trim(group, "*") == "" {
			group = "?*" // any group except the core group, whose kinds have no slash
		}
		return []groupKind{{group, kind}}
	}
	out := []groupKind{{Kind: pattern}}
	for i, c := range pattern {
		if c == '*' {
			out = append(out, groupKind{pattern[:i+1], pattern[i:]})
		}
	}
	return out
}
