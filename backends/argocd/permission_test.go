package argocd_test

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
)

// project is an AppProject, with the rules by which Argo CD 3.5 permits objects
// (AppProject in pkg/apis/application/v1alpha1/app_project_types.go).
type project struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
		Finalizers  []string
	}
	Spec struct {
		SourceRepos              []string
		Destinations             []place
		ClusterResourceWhitelist []permission
		ClusterResourceBlacklist []permission
		// nil permits all
		NamespaceResourceWhitelist []permission
		NamespaceResourceBlacklist []permission
	}
}

// permission is a kind, or an object if it has a name.
type permission struct{ Group, Kind, Name string }

// among is isNamedResourceInList.
func among(list []permission, o backends.Object) bool {
	return slices.ContainsFunc(list, func(item permission) bool {
		return matches(item.Kind, o.Kind) && matches(item.Group, o.Group) && (item.Name == "" || matches(item.Name, o.Name))
	})
}

// permitsObject is IsResourcePermitted. Argo CD does not apply or delete an object that it refuses.
func (p project) permitsObject(o backends.Object, at place) bool {
	if o.Namespace == "" {
		return among(p.Spec.ClusterResourceWhitelist, o) && !among(p.Spec.ClusterResourceBlacklist, o)
	}
	kinds := p.Spec.NamespaceResourceWhitelist
	at.Namespace = o.Namespace
	return (kinds == nil || among(kinds, o)) && !among(p.Spec.NamespaceResourceBlacklist, o) && p.permitsDestination(at)
}

// permitsDestination is IsDestinationPermitted. A cluster has a server and a name, and an
// Application gives one of them.
func (p project) permitsDestination(at place) bool {
	if at.Server == inCluster {
		at.Name = "in-cluster"
	}
	if at.Server == "" {
		if at.Server = "https://" + at.Name; at.Name == "in-cluster" {
			at.Server = inCluster
		}
	}
	permitted := false
	for _, item := range p.Spec.Destinations {
		name, server, namespace := at.Name != "" && globs(item.Name, at.Name), globs(item.Server, at.Server), globs(item.Namespace, at.Namespace)
		switch {
		case (server || name) && namespace:
			permitted = true
		case !name && denies(item.Name) || !server && denies(item.Server) && namespace, !namespace && denies(item.Namespace) && server:
			return false
		}
	}
	return permitted
}

// denies is isDenyPattern.
func denies(pattern string) bool { return strings.HasPrefix(pattern, "!") }

// permitsSource is IsSourcePermitted.
func (p project) permitsSource(url string) bool {
	return slices.ContainsFunc(p.Spec.SourceRepos, func(pattern string) bool { return globs(pattern, url) })
}

// matches is filepath.Match, as projects read kinds and names.
func matches(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	return ok && err == nil
}

// globs is the way in which projects read destinations and sources (globMatch). Projects
// read patterns other than "*" in another way.
func globs(pattern, text string) bool {
	if not, denied := strings.CutPrefix(pattern, "!"); denied {
		return !globs(not, text)
	}
	if strings.ContainsAny(pattern, `!?[]{}\`) {
		panic("kalypso writes no pattern such as " + pattern)
	}
	return regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`).MatchString(text)
}
