package zarf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// sources are the sources that the GitOps agents of a site pull for objects of Flux and Argo CD.
// Zarf's agent in the cluster makes the objects refer to the site's own git server and registry
// (https://docs.zarf.dev/ref/init-package/#the-zarf-agent). The package must therefore contain each
// source under the exact name that the object has for it.
type sources struct {
	repos      []string           // as <url>@<ref>, or <url> for all of it
	artifacts  []kubernetes.Image // of OCI registries
	unpinned   []string
	outside    []string // sources that a package cannot contain
	impossible []problem

	charts map[string]string // OCI registry of charts by namespace/name of its HelmRepository
}

type problem struct{ what, hint string }

// sourcesOf collects the sources of objects, including the items of lists.
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
	return kubernetes.Text(o, "kind") == kind &&
		strings.HasPrefix(kubernetes.Text(o, "apiVersion"), group+"/")
}

func itemsOf(objects []model.Value) []model.Value {
	var out []model.Value
	for _, o := range objects {
		items, ok := o.Lookup("items")
		if ok && strings.HasSuffix(kubernetes.Text(o, "kind"), "List") {
			out = append(out, itemsOf(items.Elems())...)
		} else {
			out = append(out, o)
		}
	}
	return out
}

func nameOf(o model.Value) string {
	return kubernetes.Text(o, "kind") + " " + kubernetes.Text(o, "metadata", "name")
}

func (s *sources) cannot(hint, format string, args ...any) {
	s.impossible = append(s.impossible, problem{fmt.Sprintf(format, args...), hint})
}

// gitRepository adds the repository of a GitRepository. It reads the fields of ref in the order of
// Flux (https://fluxcd.io/flux/components/source/gitrepositories/#reference).
func (s *sources) gitRepository(o model.Value) {
	ref := func(field string) string { return kubernetes.Text(o, "spec", "ref", field) }
	switch {
	case ref("commit") != "":
		s.repo(nameOf(o), kubernetes.Text(o, "spec", "url"), ref("commit"), true)
	case ref("name") != "":
		s.repo(nameOf(o), kubernetes.Text(o, "spec", "url"), ref("name"),
			strings.HasPrefix(ref("name"), "refs/tags/"))
	case ref("semver") != "":
		s.repo(nameOf(o), kubernetes.Text(o, "spec", "url"), "", false)
	case ref("tag") != "":
		s.repo(nameOf(o), kubernetes.Text(o, "spec", "url"), ref("tag"), true)
	case ref("branch") != "":
		s.repo(nameOf(o), kubernetes.Text(o, "spec", "url"), "refs/heads/"+ref("branch"), false)
	default:
		s.repo(nameOf(o), kubernetes.Text(o, "spec", "url"), "refs/heads/master", false)
	}
}

// The repositories and refs that Zarf accepts (transform.GitURLSplitRef).
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
	url := kubernetes.Text(o, "spec", "url")
	switch digest, tag := kubernetes.Text(o, "spec", "ref", "digest"),
		kubernetes.Text(o, "spec", "ref", "tag"); {
	case digest != "":
		s.artifact(nameOf(o), url+"@"+digest)
	case kubernetes.Text(o, "spec", "ref", "semver") != "":
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

// helmRepository records a registry of charts, for the HelmReleases that name it.
func (s *sources) helmRepository(o model.Value) {
	url := kubernetes.Text(o, "spec", "url")
	if !strings.HasPrefix(url, "oci://") {
		s.outside = append(s.outside, url)
		return
	}
	repository := kubernetes.Text(o, "metadata", "namespace") + "/" +
		kubernetes.Text(o, "metadata", "name")
	s.charts[repository] = strings.TrimRight(url, "/")
}

// helmRelease adds the chart that a HelmRelease fetches from a registry.
func (s *sources) helmRelease(o model.Value) {
	spec, ok := kubernetes.Lookup(o, "spec", "chart", "spec")
	if !ok || kubernetes.Text(spec, "sourceRef", "kind") != "HelmRepository" {
		return
	}
	namespace := kubernetes.Text(spec, "sourceRef", "namespace")
	if namespace == "" {
		namespace = kubernetes.Text(o, "metadata", "namespace")
	}
	registry, ok := s.charts[namespace+"/"+kubernetes.Text(spec, "sourceRef", "name")]
	if !ok {
		return // it is not among the objects
	}
	version := kubernetes.Text(spec, "version")
	if !exact(version) {
		s.cannot("give the chart one version, such as 1.2.3", "a package cannot hold the chart of %s, "+
			"which is at no single version", nameOf(o))
		return
	}
	s.artifact(nameOf(o), registry+"/"+kubernetes.Text(spec, "chart")+":"+delivery.ChartTag(version))
}

// applicationSet adds the sources of the Applications that an ApplicationSet
// makes, and the repositories of its generators.
func (s *sources) applicationSet(o model.Value) {
	spec, _ := kubernetes.Lookup(o, "spec", "template", "spec")
	s.application(nameOf(o), spec)
	generators, _ := kubernetes.Lookup(o, "spec", "generators")
	for _, generator := range generators.Elems() {
		if git, ok := generator.Lookup("git"); ok {
			s.argoRepo(nameOf(o), kubernetes.Text(git, "repoURL"), kubernetes.Text(git, "revision"))
		}
	}
}

// application adds the sources of an Application of Argo CD. Zarf's agent assumes that every URL is
// a git repository unless it begins with oci://.
func (s *sources) application(of string, spec model.Value) {
	list, _ := spec.Lookup("sources")
	all := list.Elems()
	if source, ok := spec.Lookup("source"); ok {
		all = append([]model.Value{source}, all...)
	}
	for _, source := range all {
		url, revision := kubernetes.Text(source, "repoURL"), kubernetes.Text(source, "targetRevision")
		switch {
		case strings.HasPrefix(url, "oci://"):
			s.argoArtifact(of, strings.TrimRight(url, "/"), revision)
		case kubernetes.Text(source, "chart") != "":
			s.cannot(`take the chart as an artifact: repoURL: "oci://...", path: "."`,
				"Zarf takes %s, where %s has a chart from, for a git repository", url, of)
		default:
			s.argoRepo(of, url, revision)
		}
	}
}

// argoRepo adds a git repository at a revision. A revision without its full name may be a branch, a
// tag or a range of versions. The package then needs the whole repository.
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
		s.cannot("pin it with targetRevision",
			"a package cannot hold %s for %s, which is at no single version", name, of)
	default:
		s.artifact(of, name+":"+revision)
	}
}

// exact reports whether a version is one, not a range. Some charts have a v before it.
func exact(version string) bool { return delivery.Exact(strings.TrimPrefix(version, "v")) }

// fetched adds everything that the workload fetches at the site. It includes the images of its
// pods, of the namespace service's pods and of the reconciler's list. It also includes the
// repositories and artifacts that a GitOps agent among the objects pulls.
func (f *folder) fetched() {
	images, bad := kubernetes.Images(f.deployed())
	for _, b := range bad {
		f.report(diag.New(diag.UnsupportedManifests,
			fmt.Sprintf("the package cannot hold an image of %s: %s: %s", b.Object, b.Path, b.Why)).
			On("manifests").At(f.a.Ref.At("manifests"), "").
			Hinting("give it an image that is named in full, in the manifests or the chart's values"))
	}
	s := sourcesOf(f.deployed())
	f.sources(s)
	images = append(images, s.artifacts...)
	f.unpinned(images, f.a.Ref.At("manifests"))
	further := f.furtherImages()
	f.unpinned(further, f.a.Reconciler.Ref.At("zarf.images"))

	var names []string
	for _, image := range append(images, further...) {
		names = append(names, image.Name)
	}
	f.component.Images, f.component.Repos = sorted(names), sorted(s.repos)
}

// furtherImages returns the images that the reconciler names.
func (f *folder) furtherImages() []kubernetes.Image {
	var out []kubernetes.Image
	for i, text := range f.options.Images {
		image, err := kubernetes.ParseImage(text)
		if err != nil {
			at := f.a.Reconciler.Ref.At(fmt.Sprintf("zarf.images[%d]", i))
			f.report(diag.New(diag.BadSpec, err.Error()).On(at.String()).At(at, "").
				Hinting("name the image as docker pull takes it, such as registry.example.com/app:1.2.3"))
			continue
		}
		out = append(out, image)
	}
	return out
}

// unpinned warns about images without a digest. ref is the place of the images.
func (f *folder) unpinned(images []kubernetes.Image, ref model.Ref) {
	var names []string
	for _, image := range images {
		if !image.Pinned {
			names = append(names, image.Name)
		}
	}
	if len(names) > 0 {
		f.report(diag.New(diag.Unpinned, "images have no digest: "+kubernetes.Few(sorted(names))).At(ref,
			"").
			Hinting("add the digest, as in app:1.2.3@sha256:..., so that the package holds what was tested"))
	}
}

// deployed returns the objects that the component creates on the cluster, except a chart's
// tests, which do not run.
func (f *folder) deployed() []model.Value {
	var out []model.Value
	if f.a.Projection != nil && f.a.Manifests.Package == nil {
		for _, o := range f.a.Projection.Objects {
			if !kubernetes.IsTest(o) {
				out = append(out, o.Value)
			}
		}
	}
	manifests, _ := f.a.NamespaceService.Value.Lookup("manifests")
	out = append(out, manifests.Elems()...)
	for _, m := range manifests.Fields() {
		out = append(out, m.Value)
	}
	return out
}

// sources reports problems of the sources that GitOps agents pull.
func (f *folder) sources(s *sources) {
	for _, problem := range s.impossible {
		f.report(diag.New(diag.UnsupportedManifests,
			problem.what).On("manifests").At(f.a.Ref.At("manifests"), "").Hinting(problem.hint))
	}
	if len(s.unpinned) > 0 {
		f.report(diag.New(diag.Unpinned,
			"sources are at no commit, tag or digest: "+kubernetes.Few(sorted(s.unpinned))).
			On("manifests").At(f.a.Ref.At("manifests"), "").
			Hinting("pin them: the package holds what they are when it is made"))
	}
	if len(s.outside) > 0 {
		f.report(diag.New(diag.NoEffect, "a package cannot hold chart repositories, so the site must "+
			"reach them: "+kubernetes.Few(sorted(s.outside))).
			On("manifests").At(f.a.Ref.At("manifests"), "").Hinting("take the charts from an OCI registry"))
	}
}

// sorted returns the names sorted, each once.
func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
