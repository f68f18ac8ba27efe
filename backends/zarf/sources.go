package zarf

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// sources are what the GitOps agents of a site pull for objects of Flux and Argo
// CD. Zarf's agent in the cluster makes the objects refer to the site's own git
// server and registry (https://docs.zarf.dev/ref/init-package/#the-zarf-agent):
// the package brings what they pull under the very name that they have for it.
type sources struct {
	repos      []string           // as <url>@<ref>, or <url> for all of it
	artifacts  []kubernetes.Image // of OCI registries
	unpinned   []string
	outside    []string // what a package cannot hold
	impossible []problem

	charts map[string]string // OCI registry of charts by namespace/name of its HelmRepository
}

type problem struct{ what, hint string }

// sourcesOf collects the sources of objects, and of those in lists.
func sourcesOf(objects []model.Value) *sources {
	s := &sources{charts: map[string]string{}}
	objects = itemsOf(objects)
	for _, o := range objects {
		if isKind(o, fluxSources, "HelmRepository") {
			s.helmRepository(o)
		}
	}
	for _, o := range objects {
		switch {
		case isKind(o, fluxSources, "GitRepository"):
			s.gitRepository(o)
		case isKind(o, fluxSources, "OCIRepository"):
			s.ociRepository(o)
		case isKind(o, fluxHelm, "HelmRelease"):
			s.helmRelease(o)
		case isKind(o, argo, "Application"):
			spec, _ := o.Lookup("spec")
			s.application(nameOf(o), spec)
		case isKind(o, argo, "ApplicationSet"):
			s.applicationSet(o)
		}
	}
	return s
}

const (
	fluxSources = "source.toolkit.fluxcd.io"
	fluxHelm    = "helm.toolkit.fluxcd.io"
	argo        = "argoproj.io"
)

func isKind(o model.Value, group, kind string) bool {
	return textAt(o, "kind") == kind && strings.HasPrefix(textAt(o, "apiVersion"), group+"/")
}

func itemsOf(objects []model.Value) []model.Value {
	var out []model.Value
	for _, o := range objects {
		items, ok := o.Lookup("items")
		if ok && strings.HasSuffix(textAt(o, "kind"), "List") {
			out = append(out, itemsOf(items.Elems())...)
		} else {
			out = append(out, o)
		}
	}
	return out
}

func nameOf(o model.Value) string { return textAt(o, "kind") + " " + textAt(o, "metadata", "name") }

func at(v model.Value, path ...string) (model.Value, bool) {
	ok := true
	for _, field := range path {
		if v, ok = v.Lookup(field); !ok {
			break
		}
	}
	return v, ok
}

func (s *sources) cannot(hint, format string, args ...any) {
	s.impossible = append(s.impossible, problem{fmt.Sprintf(format, args...), hint})
}

// gitRepository adds the repository of a GitRepository, at what its ref says in
// the order in which Flux looks
// (https://fluxcd.io/flux/components/source/gitrepositories/#reference).
func (s *sources) gitRepository(o model.Value) {
	ref := func(field string) string { return textAt(o, "spec", "ref", field) }
	switch {
	case ref("commit") != "":
		s.repo(nameOf(o), textAt(o, "spec", "url"), ref("commit"), true)
	case ref("name") != "":
		s.repo(nameOf(o), textAt(o, "spec", "url"), ref("name"), strings.HasPrefix(ref("name"), "refs/tags/"))
	case ref("semver") != "":
		s.repo(nameOf(o), textAt(o, "spec", "url"), "", false)
	case ref("tag") != "":
		s.repo(nameOf(o), textAt(o, "spec", "url"), ref("tag"), true)
	case ref("branch") != "":
		s.repo(nameOf(o), textAt(o, "spec", "url"), "refs/heads/"+ref("branch"), false)
	default:
		s.repo(nameOf(o), textAt(o, "spec", "url"), "refs/heads/master", false)
	}
}

// What Zarf reads as a repository and as a ref (transform.GitURLSplitRef).
var (
	gitURL = lazyregexp.New(`^[a-z]+://[!-"$->@-~]+/[\w.-]+/?$`)
	gitRef = lazyregexp.New(`^[/+\w.-]+$`)
)

// repo adds the git repository of an object. Without a ref it is brought whole.
func (s *sources) repo(of, url, ref string, pinned bool) {
	if !gitURL.MatchString(url) || ref != "" && !gitRef.MatchString(ref) {
		s.cannot("give it a URL such as https://git.example.com/app, and a plain branch, tag or commit",
			"Zarf cannot mirror the repository of %s: %q at %q", of, url, ref)
		return
	}
	if !pinned {
		s.unpinned = append(s.unpinned, url)
	}
	if ref != "" {
		url += "@" + ref
	}
	s.repos = append(s.repos, url)
}

// ociRepository adds the artifact of an OCIRepository.
func (s *sources) ociRepository(o model.Value) {
	url := textAt(o, "spec", "url")
	switch digest, tag := textAt(o, "spec", "ref", "digest"), textAt(o, "spec", "ref", "tag"); {
	case digest != "":
		s.artifact(nameOf(o), url+"@"+digest)
	case textAt(o, "spec", "ref", "semver") != "":
		s.cannot("pin it with ref: tag or digest", "a package cannot hold the artifact of %s, which is "+
			"a range of versions", nameOf(o))
	case tag != "":
		s.artifact(nameOf(o), url+":"+tag)
	default:
		s.artifact(nameOf(o), url)
	}
}

func (s *sources) artifact(of, name string) {
	image, err := kubernetes.ParseImage(name)
	if err != nil {
		s.cannot("name it in full", "a package cannot hold the artifact of %s: %v", of, err)
		return
	}
	s.artifacts = append(s.artifacts, image)
}

// helmRepository remembers a registry of charts, which HelmReleases name.
func (s *sources) helmRepository(o model.Value) {
	url := textAt(o, "spec", "url")
	if !strings.HasPrefix(url, "oci://") {
		s.outside = append(s.outside, url)
		return
	}
	s.charts[textAt(o, "metadata", "namespace")+"/"+textAt(o, "metadata", "name")] = strings.TrimRight(url, "/")
}

// helmRelease adds the chart that a HelmRelease takes from a registry.
func (s *sources) helmRelease(o model.Value) {
	spec, ok := at(o, "spec", "chart", "spec")
	if !ok || textAt(spec, "sourceRef", "kind") != "HelmRepository" {
		return
	}
	namespace := textAt(spec, "sourceRef", "namespace")
	if namespace == "" {
		namespace = textAt(o, "metadata", "namespace")
	}
	registry, ok := s.charts[namespace+"/"+textAt(spec, "sourceRef", "name")]
	if !ok {
		return // it is not among the objects
	}
	version := textAt(spec, "version")
	if !exact(version) {
		s.cannot("give the chart one version, such as 1.2.3", "a package cannot hold the chart of %s, "+
			"which is at no single version", nameOf(o))
		return
	}
	s.artifact(nameOf(o), registry+"/"+textAt(spec, "chart")+":"+delivery.ChartTag(version))
}

// applicationSet adds the sources of the Applications that an ApplicationSet
// makes, and the repositories of its generators.
func (s *sources) applicationSet(o model.Value) {
	spec, _ := at(o, "spec", "template", "spec")
	s.application(nameOf(o), spec)
	generators, _ := at(o, "spec", "generators")
	for _, generator := range generators.Elems() {
		if git, ok := generator.Lookup("git"); ok {
			s.argoRepo(nameOf(o), textAt(git, "repoURL"), textAt(git, "revision"))
		}
	}
}

// application adds the sources of an Application of Argo CD. Zarf's agent takes
// what does not begin with oci:// for a git repository.
func (s *sources) application(of string, spec model.Value) {
	list, _ := spec.Lookup("sources")
	all := list.Elems()
	if source, ok := spec.Lookup("source"); ok {
		all = append([]model.Value{source}, all...)
	}
	for _, source := range all {
		url, revision := textAt(source, "repoURL"), textAt(source, "targetRevision")
		switch {
		case strings.HasPrefix(url, "oci://"):
			s.argoArtifact(of, strings.TrimRight(url, "/"), revision)
		case textAt(source, "chart") != "":
			s.cannot(`take the chart as an artifact: repoURL: "oci://...", path: "."`,
				"Zarf takes %s, where %s has a chart from, for a git repository", url, of)
		default:
			s.argoRepo(of, url, revision)
		}
	}
}

// argoRepo adds a git repository at a revision: without its full name, one may be
// a branch, a tag or a range of versions, so that all of the repository is needed.
func (s *sources) argoRepo(of, url, revision string) {
	switch {
	case commit.MatchString(revision) || strings.HasPrefix(revision, "refs/tags/"):
		s.repo(of, url, revision, true)
	case strings.HasPrefix(revision, "refs/"):
		s.repo(of, url, revision, false)
	default:
		s.repo(of, url, "", false)
	}
}

// argoArtifact adds an artifact of a registry.
func (s *sources) argoArtifact(of, name, revision string) {
	switch {
	case strings.HasPrefix(revision, "sha256:"):
		s.artifact(of, name+"@"+revision)
	case exact(revision):
		s.artifact(of, name+":"+delivery.ChartTag(revision))
	case revision == "" || strings.ContainsAny(revision, "*<>=^~| "):
		s.cannot("pin it with targetRevision", "a package cannot hold %s for %s, which is at no single version", name, of)
	default:
		s.artifact(of, name+":"+revision)
	}
}

// exact says whether a version is one, not a range. Some charts have a v before it.
func exact(version string) bool { return delivery.Exact(strings.TrimPrefix(version, "v")) }
