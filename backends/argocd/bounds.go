package argocd

import (
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
// may be Applications of any project. Projects have the same patterns, each with
// a list of what takes away (https://argo-cd.readthedocs.io/en/stable/user-guide/projects).
func (b *bounds) in(spec *appProject, own string) {
	spec.NamespaceResourceWhitelist, spec.NamespaceResourceBlacklist = kindsOf(b.Namespaced)
	if len(spec.NamespaceResourceWhitelist) == 0 {
		// An empty list would permit all.
		spec.NamespaceResourceBlacklist = []groupKind{anyKind}
	}
	allowed, denied := kindsOf(b.ClusterScoped)
	for _, k := range allowed {
		spec.ClusterResourceWhitelist = append(spec.ClusterResourceWhitelist, clusterObject{Group: k.Group, Kind: k.Kind})
	}
	for _, k := range denied {
		spec.ClusterResourceBlacklist = append(spec.ClusterResourceBlacklist, clusterObject{Group: k.Group, Kind: k.Kind})
	}
	for _, namespace := range b.Namespaces {
		spec.Destinations = append(spec.Destinations, destination{Server: "*", Namespace: namespace})
	}
	if len(b.Namespaces) > 0 {
		spec.Destinations = append(spec.Destinations, destination{Server: "*", Namespace: "!" + own})
	}
}

// kindsOf returns the kinds that patterns allow, and those that they take away.
func kindsOf(patterns model.Patterns) (allowed, denied []groupKind) {
	for _, p := range patterns {
		p, takesAway := strings.CutPrefix(p, "!")
		k := groupKind{Kind: p}
		if group, kind, found := strings.Cut(p, "/"); found {
			k = groupKind{group, kind}
		} else if p == "*" {
			k = anyKind
		}
		if takesAway {
			denied = append(denied, k)
		} else {
			allowed = append(allowed, k)
		}
	}
	return allowed, denied
}
