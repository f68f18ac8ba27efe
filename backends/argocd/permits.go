package argocd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// permits is what an assignment's folder may hold beside objects in the assignment's namespace,
// and that namespace: what its workspace may bring, and what its namespace service says of
// itself. Absent lists are those of #Team.
//
// Nothing of it follows from objects: a ClusterRole that leaves the namespace service is still
// permitted, and is pruned, because the declaration is still there. Who declares less than
// before removes the objects first.
type permits struct {
	Namespaces    model.Patterns `json:"namespaces,omitzero"`
	ClusterScoped model.Patterns `json:"clusterScoped,omitzero"`
}

// permitsOf returns what a folder may hold, and an error where the namespace service brings more.
func permitsOf(a *backends.Assignment, o options, objects []backends.Object) (*permits, []diag.Diagnostic) {
	var service struct {
		Namespaces model.Patterns
		Objects    struct{ ClusterScoped model.Patterns }
	}
	if err := a.NamespaceService.Decode(&service); err != nil {
		return nil, nil // kubernetes.Workspace has reported it
	}
	p := &permits{model.Patterns{"*"}, model.Patterns{"*"}}
	if w := a.Bounds; w != nil {
		p = &permits{union(w.Namespaces, service.Namespaces), union(w.Objects.ClusterScoped, service.Objects.ClusterScoped)}
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

// team returns what absent lists stand for.
func team() permits {
	w := &model.Workspace{}
	w.Complete()
	return permits{w.Namespaces, w.Objects.ClusterScoped}
}

// union returns patterns that allow what one of two lists allows. What one takes away stays
// taken away only where the other allows nothing of it, so that it may be more: a list of Argo CD
// has no other form, and the build checks objects by each list.
func union(a, b model.Patterns) model.Patterns {
	out := model.Patterns{}
	for _, sides := range [2][2]model.Patterns{{a, b}, {b, a}} {
		for _, p := range sides[0] {
			not, takesAway := strings.CutPrefix(p, "!")
			lost := takesAway && !slices.Contains(sides[1], p) && slices.ContainsFunc(sides[1], func(other string) bool {
				return !strings.HasPrefix(other, "!") && overlap(not, other)
			})
			if !lost && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// overlap says whether a text is matched by both of two patterns, in which * stands for any text.
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

// lacking returns an error where the namespace service brings objects that are not permitted, with
// what to write. What is rendered is bounded by the workspace alone.
func (p *permits) lacking(a *backends.Assignment, o options, objects []backends.Object) []diag.Diagnostic {
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
		Hinting("permit it, and keep that for as long as a cluster may have such objects: " + strings.Join(lines, "; "))
	return []diag.Diagnostic{d}
}

// in lets a project permit a folder: on its destination, in the namespace of the assignment, in
// those of permits, and beside Argo CD, where it is the cluster of Argo CD itself. Folders that go to
// each cluster of an inventory have any as their destination, since one that leaves the inventory is
// still to be emptied.
func (p permits) in(spec *appProject, f folder, o options) {
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
		if !slices.Contains(spec.Destinations, d) { // twice the same is no project
			spec.Destinations = append(spec.Destinations, d)
		}
	}
	if !everywhere {
		add(to.in(f.Namespace))
		if beside {
			add(destination{Server: inCluster, Namespace: o.Namespace})
		}
	}
	for _, namespace := range p.Namespaces {
		not, takesAway := strings.CutPrefix(namespace, "!")
		switch {
		case !takesAway && (namespace == "*" || !everywhere):
			add(to.in(namespace))
		case !takesAway || slices.ContainsFunc(needed, func(name string) bool { return overlap(not, name) }):
		case everywhere && to.Server != "":
			add(to.in("!" + not))
		default:
			add(destination{Server: noServer, Namespace: not})
		}
	}
	p.clusterScoped(spec)
}

// clusterScoped lets a project permit objects without a namespace. A Namespace may have any name:
// by that of the assignment alone, a change of the namespace service's pattern would leave the former
// namespace, with all that is in it.
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
		spec.ClusterResourceWhitelist = append(spec.ClusterResourceWhitelist, clusterObject{Group: k.Group, Kind: k.Kind})
	}
	for _, k := range denied {
		if k.Group != "" || !overlap(k.Kind, namespace.Kind) {
			spec.ClusterResourceBlacklist = append(spec.ClusterResourceBlacklist, clusterObject{Group: k.Group, Kind: k.Kind})
		}
	}
}
