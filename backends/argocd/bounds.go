package argocd

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// bounds are those of a workspace, as patterns.
type bounds struct {
	Namespaced    model.Patterns `json:"namespaced,omitempty"`
	ClusterScoped model.Patterns `json:"clusterScoped,omitempty"`
	Namespaces    model.Patterns `json:"namespaces,omitempty"`
}

// boundsOf returns the bounds of a workspace; nil where no one has declared it and the
// platform's own people write what is of it: that may be anything in its namespace.
func boundsOf(w *model.Workspace) *bounds {
	if w == nil || w.IsTeam() {
		return nil
	}
	return &bounds{w.Objects.Namespaced, w.Objects.ClusterScoped, w.Namespaces}
}

// in lets a project permit what the bounds allow, but for Argo CD's own namespace, where there
// may be Applications of any project.
func (b *bounds) in(spec *appProject, own string) {
	spec.NamespaceResourceWhitelist, spec.NamespaceResourceBlacklist = kindsOf(b.Namespaced)
	if len(spec.NamespaceResourceWhitelist) == 0 {
		// An empty list would permit all.
		spec.NamespaceResourceBlacklist = []groupKind{anyKind}
	}
	allowed, denied := kindsOf(b.ClusterScoped)
	for _, k := range allowed {
		if k == (groupKind{Kind: "Namespace"}) { // those that its objects may be in
			for _, name := range b.Namespaces {
				if !strings.HasPrefix(name, "!") {
					spec.ClusterResourceWhitelist = append(spec.ClusterResourceWhitelist, clusterObject{Kind: k.Kind, Name: name})
				}
			}
			continue
		}
		spec.ClusterResourceWhitelist = append(spec.ClusterResourceWhitelist, clusterObject{Group: k.Group, Kind: k.Kind})
	}
	for _, k := range denied {
		spec.ClusterResourceBlacklist = append(spec.ClusterResourceBlacklist, clusterObject{Group: k.Group, Kind: k.Kind})
	}
	for _, d := range destinationsOf(b.Namespaces, own) {
		if !slices.Contains(spec.Destinations, d) { // twice the same is no project
			spec.Destinations = append(spec.Destinations, d)
		}
	}
}

// noServer matches no server's URL, and takes all away.
const noServer = "!http*"

// destinationsOf returns the destinations that patterns of namespaces are to a project, but
// for Argo CD's own. A namespace with a ! also permits all other namespaces on the servers of
// its destination (isDestinationMatched in pkg/apis/application/v1alpha1/app_project_types.go):
// it is for those that may be anywhere else, and for others it is the servers that are taken
// away.
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

// kindsOf returns the kinds that patterns allow, and those that they take away.
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

// kindsLike returns the kinds that a pattern of texts is for, such as "apps/*", in which a
// kind of the core group has no group. Each * of a pattern without a slash may be for one.
func kindsLike(pattern string) []groupKind {
	if pattern == "*" {
		return []groupKind{anyKind}
	}
	if group, kind, found := strings.Cut(pattern, "/"); found {
		if strings.Trim(group, "*") == "" {
			group = "?*" // any but the core group, whose kinds have no slash
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
