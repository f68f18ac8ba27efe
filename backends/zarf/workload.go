package zarf

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// workload adds the objects and files that the assignment deploys.
func (f *folder) workload() {
	m := f.a.Manifests
	switch {
	case m.Package != nil:
		f.machineFiles(m.Package)
	case f.a.Projection == nil:
		f.report(diag.New(diag.NotLocked,
			"what the manifests of "+f.a.DeploymentTarget+" render to is not known, so a package cannot "+
				"hold its images").
			At(f.a.Ref.At("manifests"), "").Hinting("run kalypso lock"))
	case f.a.Render:
		f.rendered()
	case m.Git != nil:
		f.kustomization(m.Git, m.Git.Path, "git")
	case m.Kustomize != nil:
		f.overlay(m.Kustomize)
	case m.Helm != nil:
		f.chart(m.Helm)
	default:
		f.report(delivery.Unsupported(f.a, "", "the manifests have no source"))
	}
}

// definitionsFile contains the rendered CustomResourceDefinitions.
const definitionsFile = "definitions.yaml"

// rendered adds the rendered objects. Hooks stay hooks: Zarf applies the manifests as a release of
// Helm, which runs them. No release runs tests by itself. The definitions of custom resources are a
// release of their own, since Helm looks up the kinds of all objects before it applies the first.
func (f *folder) rendered() {
	tests, applied := kubernetes.Split(f.a.Projection.Objects, kubernetes.IsTest)
	if len(tests) > 0 {
		f.report(diag.New(diag.Hook,
			"the tests among the rendered manifests of "+f.a.DeploymentTarget+
				" are left out: Zarf runs none").
			On("manifests").At(f.a.Ref.At("manifests"), ""))
	}
	argo, _ := kubernetes.Split(kubernetes.Items(applied), kubernetes.IsArgoHook)
	f.report(delivery.Hooks(f.a, argo, nil)...)
	files, objects, ds := kubernetes.Manifests(f.a, applied)
	f.report(ds...)
	f.report(delivery.Twice(f.a, f.objects, objects, nil)...)
	for _, written := range files {
		definitions, others := kubernetes.SplitCRDs(written.Data, objects)
		for _, part := range []struct {
			name, file string
			data       []byte
		}{
			{definitionsName, definitionsFile, definitions},
			{workloadName, kubernetes.ManifestsFile, others},
		} {
			if len(part.data) > 0 {
				f.add([]backends.File{{Path: part.file, Data: part.data}}, nil)
				f.component.Manifests = append(f.component.Manifests,
					manifest{Name: part.name, Namespace: f.a.Namespace, Files: []string{f.pathOf(part.file)}})
			}
		}
	}
	f.objects = append(f.objects, objects...)
}

// overlay adds a Kustomize overlay, which Zarf builds when it creates the package.
func (f *folder) overlay(k *model.Kustomize) {
	for _, change := range []struct {
		field string
		given bool
	}{
		{"patches", len(k.Patches) > 0},
		{"images", len(k.Images) > 0},
		{"namePrefix", k.NamePrefix != ""},
	} {
		if change.given {
			f.refuse("kustomize."+change.field,
				"Zarf builds an overlay as it is in the repository, without changes", render)
		}
	}
	if k.Git == nil {
		f.refuse("kustomize", "Zarf builds overlays of git repositories only", render)
		return
	}
	f.kustomization(k.Git, k.Path, "kustomize.git")
}

// render is the hint for manifests that Zarf cannot fetch.
const render = "render it: set render: true on the deployment target"

func (f *folder) refuse(field, message, hint string) {
	f.report(delivery.Unsupported(f.a, field, message).Hinting(hint))
}

var commit = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// kustomization adds a folder of a git repository as Kustomize fetches it
// (https://github.com/kubernetes-sigs/kustomize/blob/master/examples/remoteBuild.md).
func (f *folder) kustomization(g *model.Git, at, field string) {
	if g.Verify != nil {
		f.refuse(field+".verify", "Zarf verifies no signatures of git", "remove verify: the package "+
			"holds the commit that kalypso.lock names")
	}
	url, ok := kustomizeURL(g.Repo)
	if !ok {
		f.refuse(field+".repo", "Kustomize, with which Zarf builds the folder, cannot read "+g.Repo+
			" as a repository", render)
	}
	if strings.ContainsAny(at, "?#") {
		f.refuse(model.JoinPath(strings.TrimSuffix(field, ".git"), "path"),
			"Kustomize cannot read "+at+" as a folder of a repository", render)
	}
	revision := f.a.Projection.Revision
	if !commit.MatchString(revision) {
		f.report(diag.New(diag.NotLocked,
			fmt.Sprintf("the manifests of %s are at no commit: %q", f.a.DeploymentTarget, revision)).
			At(f.a.Ref.At("manifests."+field), "").Hinting("run kalypso lock"))
	}
	if kind := defined(f.a.Projection.Objects); kind != "" {
		f.refuse(field, "the manifests bring the definition of "+kind+" and objects of it, which Helm "+
			"cannot install in one release, as Zarf would", render)
	}
	if at = delivery.Path(at); at == "." {
		at = ""
	}
	f.component.Manifests = append(f.component.Manifests, manifest{
		Name: workloadName, Namespace: f.a.Namespace,
		Kustomizations: []string{url + "//" + at + "?ref=" + revision},
	})
}

// kustomizeURL returns a repository's URL in a form that both Zarf and Kustomize accept.
// Zarf reads git@host:path as a path.
func kustomizeURL(repo string) (string, bool) {
	scheme, rest, ok := strings.Cut(repo, "://")
	if !ok {
		host, at, isSCP := strings.Cut(repo, ":")
		if !isSCP {
			return "", false
		}
		scheme, rest = "ssh", host+"/"+strings.TrimPrefix(at, "/")
	}
	rest = strings.TrimRight(rest, "/")
	readable := scheme == "https" || scheme == "http" || scheme == "ssh"
	return scheme + "://" + rest, readable && strings.Contains(rest, "/") &&
		!strings.Contains(rest, "//") && !strings.ContainsAny(rest, "?#")
}

// defined returns a kind whose definition and an object of it are both among the objects. It
// returns "" if there is no such kind.
func defined(objects []model.Projected) string {
	kinds := map[[2]string]bool{}
	for _, o := range objects {
		if kubernetes.Text(o.Value, "kind") == "CustomResourceDefinition" {
			kinds[[2]string{kubernetes.Text(o.Value, "spec", "group"),
				kubernetes.Text(o.Value, "spec", "names", "kind")}] = true
		}
	}
	for _, o := range objects {
		group, _, _ := strings.Cut(kubernetes.Text(o.Value, "apiVersion"), "/")
		if kind := kubernetes.Text(o.Value, "kind"); kinds[[2]string{group, kind}] {
			return kind
		}
	}
	return ""
}

// chart adds a chart, which Zarf puts into the package at the version in kalypso.lock, with the
// composed values. The credentials for it are on the machine that makes the package.
func (f *folder) chart(h *model.Helm) {
	release := delivery.ReleaseName(f.a, h)
	if problems := validation.IsDNS1035Label(release); len(problems) > 0 {
		f.refuse("helm.releaseName",
			"Zarf takes no release called "+release+": a name begins with a letter",
			"give the release another name with releaseName")
	}
	c := chart{
		Name: workloadName, Version: f.a.Projection.Revision,
		Namespace: f.a.Namespace, ReleaseName: release,
	}
	switch {
	case h.OCI != "":
		c.URL = delivery.ChartURL(h)
	case h.Chart == "":
		f.refuse("helm.chart", "a chart repository holds many charts, and chart does not say which",
			"name the chart with chart")
	case strings.HasSuffix(strings.TrimRight(h.Repo, "/"), ".git"):
		f.refuse("helm.repo", "Zarf takes "+h.Repo+" for a git repository", render)
	default:
		c.URL, c.RepoName = h.Repo, h.Chart
	}
	if _, err := semver.NewVersion(c.Version); err != nil {
		f.report(diag.New(diag.NotLocked, "the chart of "+f.a.DeploymentTarget+" is at no version").
			At(f.a.Ref.At("manifests.helm.version"), "").Hinting("run kalypso lock"))
	}
	if values := delivery.ChartValues(f.a, h); values != nil {
		f.files = append(f.files, backends.File{Path: valuesFile, Data: yaml.Must(*values)})
		c.ValuesFiles = []string{f.pathOf(valuesFile)}
	}
	f.component.Charts = append(f.component.Charts, c)
}
