package argocd_test

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
)

// project is an AppProject, with the rules by which Argo CD 3.5 permits objects
// (AppProject in pkg/apis/application/v1alpha1/app_project_types.go), but for
// negations, of which kalypso writes none.
type project struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
		Finalizers  []string
	}
	Spec struct {
		SourceRepos              []string
		Destinations             []place
		ClusterResourceWhitelist []struct{ Group, Kind, Name string }
		// nil permits all
		NamespaceResourceWhitelist []struct{ Group, Kind string }
	}
}

// permitsObject is IsResourcePermitted. What it refuses is neither applied nor
// deleted.
func (p project) permitsObject(o backends.Object, at place) bool {
	if o.Namespace == "" {
		for _, item := range p.Spec.ClusterResourceWhitelist {
			if matches(item.Kind, o.Kind) && matches(item.Group, o.Group) && (item.Name == "" || matches(item.Name, o.Name)) {
				return true
			}
		}
		return false
	}
	kinds := p.Spec.NamespaceResourceWhitelist
	permitted := kinds == nil
	for _, item := range kinds {
		permitted = permitted || matches(item.Kind, o.Kind) && matches(item.Group, o.Group)
	}
	at.Namespace = o.Namespace
	return permitted && p.permitsDestination(at)
}

// permitsDestination is IsDestinationPermitted. A cluster has a server and a name,
// of which an Application gives one.
func (p project) permitsDestination(at place) bool {
	if at.Server == inCluster {
		at.Name = "in-cluster"
	}
	if at.Server == "" {
		if at.Server = "https://" + at.Name; at.Name == "in-cluster" {
			at.Server = inCluster
		}
	}
	return slices.ContainsFunc(p.Spec.Destinations, func(item place) bool {
		return (globs(item.Server, at.Server) || at.Name != "" && globs(item.Name, at.Name)) && globs(item.Namespace, at.Namespace)
	})
}

// permitsSource is IsSourcePermitted.
func (p project) permitsSource(url string) bool {
	return slices.ContainsFunc(p.Spec.SourceRepos, func(pattern string) bool { return globs(pattern, url) })
}

// matches is filepath.Match, as projects read kinds and names.
func matches(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	return ok && err == nil
}

// globs is how projects read destinations and sources. Any other pattern than "*"
// would be read in another way.
func globs(pattern, text string) bool {
	if strings.ContainsAny(pattern, `!?[]{}\`) {
		panic("kalypso writes no pattern such as " + pattern)
	}
	return regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`).MatchString(text)
}
