package flux

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// workloadKustomization applies the manifests of a git or OCI source.
func workloadKustomization(a *backends.Assignment, o options, name string, source kubernetes.Object,
	s delivery.Source) kubernetes.Object {
	path := ""
	if s.Git != nil {
		path = s.Git.Path
	} else {
		path = s.OCI.Path
	}
	spec := kustomization{
		Interval: o.Interval, RetryInterval: o.RetryInterval, Timeout: o.Timeout,
		ServiceAccountName: o.ServiceAccountName,
		TargetNamespace:    a.Namespace,
		SourceRef:          kindReference{Kind: source.Kind, Name: name},
		Path:               dotSlash(path), Prune: o.Prune, Wait: o.Wait,
		Decryption: o.Decryption.object(),
	}
	if s.Overlay != nil {
		spec.NamePrefix = s.Overlay.NamePrefix
		for _, p := range s.Overlay.Patches {
			spec.Patches = append(spec.Patches, patch{Patch: p.Patch, Target: p.Target})
		}
	}
	spec.Images = images(delivery.Images(a, s.Overlay))
	for _, p := range kubernetes.RestartPatches(a) {
		spec.Patches = append(spec.Patches, patch{Patch: p.Patch, Target: p.Target})
	}
	return kubernetes.Object{APIVersion: kustomizeAPI, Kind: "Kustomization",
		Metadata: kubernetes.Meta(a, name, o.Namespace), Spec: spec}
}

// images returns replacements of images as Flux writes them.
func images(all []model.KustomImage) (out []image) {
	for _, i := range all {
		out = append(out, image(i))
	}
	return out
}

// untagged warns of images of the cluster type without a tag and a digest. Flux replaces an element
// of the same name in the source's kustomization.yaml as a whole, with the tag that it may have.
func untagged(a *backends.Assignment) (ds []diag.Diagnostic) {
	for i, image := range a.Images {
		if image.NewTag == "" && image.Digest == "" {
			ds = append(ds, diag.New(diag.NoEffect, fmt.Sprintf("a tag of %s in images of the source's "+
				"own kustomization.yaml has no effect: Flux replaces them by the images of cluster type %s",
				image.Name, a.ClusterType)).
				At(a.ImageRef(i), "").At(a.Ref.At("manifests"), "").For(a.ID()).
				Hinting("add newTag or digest, or render the manifests: set render: true on the "+
					"deployment target"))
		}
	}
	return ds
}

// dotSlash returns a path as the flux command writes it: ./path.
func dotSlash(elem ...string) string {
	if path := delivery.Path(elem...); path != "." {
		return "./" + path
	}
	return "./"
}

// helmRelease is the spec of a HelmRelease
// (https://fluxcd.io/flux/components/helm/helmreleases).
type helmRelease struct {
	Interval           string         `yaml:"interval"`
	Timeout            string         `yaml:"timeout,omitempty"`
	ReleaseName        string         `yaml:"releaseName"`
	TargetNamespace    string         `yaml:"targetNamespace"`
	StorageNamespace   string         `yaml:"storageNamespace"`
	ServiceAccountName string         `yaml:"serviceAccountName,omitempty"`
	Chart              *chartTemplate `yaml:"chart,omitempty"`
	ChartRef           *kindReference `yaml:"chartRef,omitempty"`
	DriftDetection     driftDetection `yaml:"driftDetection"`
	Install            helmAction     `yaml:"install"`
	Upgrade            helmAction     `yaml:"upgrade"`
	PostRenderers      []postRenderer `yaml:"postRenderers,omitempty"`
	Values             *model.Value   `yaml:"values,omitempty"`
}

type postRenderer struct {
	Kustomize struct {
		Patches []patch `yaml:"patches,omitempty"`
		Images  []image `yaml:"images,omitempty"`
	} `yaml:"kustomize"`
}

type chartTemplate struct {
	Spec chart `yaml:"spec"`
}

type chart struct {
	Chart     string        `yaml:"chart"`
	Version   string        `yaml:"version,omitempty"`
	SourceRef kindReference `yaml:"sourceRef"`
	// ReconcileStrategy is "Revision" for a chart that changes without a new version.
	ReconcileStrategy string `yaml:"reconcileStrategy,omitempty"`
}

type driftDetection struct {
	Mode string `yaml:"mode"`
}

type helmAction struct {
	CRDs        string   `yaml:"crds,omitempty"`
	DisableWait bool     `yaml:"disableWait,omitempty"`
	Strategy    strategy `yaml:"strategy"`
}

type strategy struct {
	Name          string `yaml:"name"`
	RetryInterval string `yaml:"retryInterval,omitempty"`
}

// releaseObject installs a chart. The release's name and namespaces are always
// written: Flux derives others, and a change of them would install it again.
func releaseObject(a *backends.Assignment, o options, name string, source kubernetes.Object,
	h *model.Helm, variables []variable) (kubernetes.Object, []diag.Diagnostic) {
	var ds []diag.Diagnostic
	if !o.Prune {
		d := diag.New(diag.NoEffect, "prune: false has no effect on Helm releases: Helm deletes what a "+
			"new chart no longer holds").
			On("flux.prune").At(a.Reconciler.Ref.At("flux.prune"), "").For(a.ID())
		ds = append(ds, d)
	}
	// Failures are retried and never undone, as the controller's documentation
	// recommends: an undone upgrade hides its reason.
	action := helmAction{DisableWait: !o.Wait,
		Strategy: strategy{Name: "RetryOnFailure", RetryInterval: o.RetryInterval}}
	upgrade := action
	upgrade.CRDs = "CreateReplace"
	if h.CRDs == model.SkipCRDs {
		action.CRDs, upgrade.CRDs = "Skip", "Skip"
	}
	// A release with variables gets the assignment's values with variables in them. The
	// application's values are escaped, so that Flux does not read a text in them as a
	// variable.
	composed, values := *a, *h
	if len(variables) > 0 && h.PlatformValues != "" {
		composed.Values = withVariables(a.Values, variables, variable.value)
		if h.Values != nil {
			escaped := escape(*h.Values)
			values.Values = &escaped
		}
	}
	spec := helmRelease{
		Interval: o.Interval, Timeout: o.Timeout,
		ReleaseName:        delivery.ReleaseName(a, h),
		TargetNamespace:    a.Namespace,
		StorageNamespace:   a.Namespace,
		ServiceAccountName: o.ServiceAccountName,
		DriftDetection:     driftDetection{Mode: "enabled"},
		Install:            action, Upgrade: upgrade,
		Values: delivery.ChartValues(&composed, &values),
	}
	patches := kubernetes.RestartPatches(a)
	if replaced := delivery.Images(a, nil); len(patches)+len(replaced) > 0 {
		spec.PostRenderers = make([]postRenderer, 1)
		changes := &spec.PostRenderers[0].Kustomize
		changes.Images = images(replaced)
		for _, p := range patches {
			changes.Patches = append(changes.Patches, patch{Patch: p.Patch, Target: p.Target})
		}
	}
	ref := kindReference{Kind: source.Kind, Name: name}
	switch {
	case source.Kind == ociKind:
		spec.ChartRef = &ref
	case h.Git != nil:
		spec.Chart = &chartTemplate{Spec: chart{Chart: dotSlash(h.Git.Path), SourceRef: ref,
			ReconcileStrategy: "Revision"}}
	default:
		spec.Chart = &chartTemplate{Spec: chart{Chart: h.Chart, Version: h.Version, SourceRef: ref}}
	}
	return kubernetes.Object{APIVersion: helmAPI, Kind: "HelmRelease",
		Metadata: kubernetes.Meta(a, name, o.Namespace), Spec: spec}, ds
}

// sourceObject returns the object that fetches the manifests or the chart.
func sourceObject(a *backends.Assignment, o options, name string,
	s delivery.Source) (kubernetes.Object, []diag.Diagnostic) {
	object := kubernetes.Object{APIVersion: sourceAPI, Metadata: kubernetes.Meta(a, name, o.Namespace)}
	secret, ds := o.SecretFor(a, s, backend)
	switch {
	case s.Git != nil:
		url, ok := gitURL(s.Git.Repo)
		if !ok {
			field := s.Field + ".repo"
			ds = append(ds, delivery.Unsupported(a, field, "Flux fetches git repositories by https, http "+
				"or ssh, not "+s.Git.Repo))
		}
		object.Kind, object.Spec = gitKind, gitSpec(o, url, s.Git, secret)
	case s.OCI != nil:
		object.Kind, object.Spec = ociKind, ociSpec(o, s.OCI, secret)
	case s.Helm.OCI != "":
		object.Kind, object.Spec = ociKind, chartSpec(o, s.Helm, secret)
	default:
		object.Kind, object.Spec = helmKind, helmRepository{
			Interval: o.Interval, Timeout: o.fetchTimeout, URL: s.Helm.Repo, SecretRef: referenceTo(secret),
		}
	}
	return object, ds
}

func gitSpec(o options, url string, g *model.Git, secret string) gitRepository {
	spec := gitRepository{
		Interval: o.Interval, Timeout: o.fetchTimeout, URL: url,
		Ref:       gitRef{Branch: g.Branch, Tag: g.Tag, Semver: g.Semver, Commit: g.Commit},
		SecretRef: referenceTo(secret),
	}
	if g.Verify != nil {
		spec.Verify = &gitVerify{Mode: g.Verify.Mode, SecretRef: reference{g.Verify.SecretRef}}
	}
	return spec
}

func ociSpec(o options, c *model.OCI, secret string) ociRepository {
	spec := ociRepository{
		Interval: o.Interval, Timeout: o.fetchTimeout, URL: c.URL,
		Ref:       ociRef{Tag: c.Tag, Semver: c.Semver, Digest: c.Digest},
		SecretRef: referenceTo(secret),
	}
	if v := c.Verify; v != nil {
		spec.Verify = &ociVerify{Provider: v.Provider, SecretRef: referenceTo(v.SecretRef)}
		for _, id := range v.MatchOIDCIdentity {
			spec.Verify.MatchOIDCIdentity = append(spec.Verify.MatchOIDCIdentity,
				oidcIdentity{Issuer: id.Issuer, Subject: id.Subject})
		}
	}
	return spec
}

// chartSpec fetches a chart as an archive, because helm-controller does not accept the
// extracted files.
func chartSpec(o options, h *model.Helm, secret string) ociRepository {
	ref := ociRef{Semver: h.Version}
	if delivery.Exact(h.Version) {
		ref = ociRef{Tag: delivery.ChartTag(h.Version)}
	}
	return ociRepository{
		Interval: o.Interval, Timeout: o.fetchTimeout, URL: delivery.ChartURL(h),
		LayerSelector: &layerSelector{MediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
			Operation: "copy"},
		Ref:       ref,
		SecretRef: referenceTo(secret),
	}
}

// gitURL returns a repository's URL in a form that Flux accepts. Flux supports only these
// schemes, and not git@host:path.
func gitURL(repo string) (string, bool) {
	scheme, _, found := strings.Cut(repo, "://")
	switch {
	case found:
		return repo, scheme == "https" || scheme == "http" || scheme == "ssh"
	default:
		host, path, ok := strings.Cut(repo, ":")
		return "ssh://" + host + "/" + strings.TrimPrefix(path, "/"), ok
	}
}

// withoutHours returns a duration in minutes and smaller units, because the timeouts of sources
// have no hours. It does not change a duration without hours.
func withoutHours(duration string) (string, error) {
	if duration == "" {
		return "", nil
	}
	d, err := time.ParseDuration(duration)
	if err != nil || !strings.Contains(duration, "h") {
		return duration, err
	}
	out := fmt.Sprintf("%dm", d/time.Minute)
	if rest := d % time.Minute; rest >= time.Second {
		out += rest.Truncate(time.Millisecond).String()
	} else if rest >= time.Millisecond {
		out += fmt.Sprintf("%dms", rest/time.Millisecond)
	}
	return out, nil
}

// rendered returns the folder of a rendered workload. Flux applies it with the folder, CRDs and
// namespaces first (https://fluxcd.io/flux/components/kustomize/kustomizations), or apart, with a
// Kustomization of its own. Flux does not know the hooks of Helm and Argo CD.
//
// Flux deletes objects that leave a Kustomization right after it has applied the other objects,
// unless the object says otherwise by then. Objects that move to another Kustomization would be
// deleted before that one applies them: handover marks them first.
func rendered(a *backends.Assignment, o options, _ []variable) (delivery.Content,
	[]diag.Diagnostic) {
	applied, left := kubernetes.WithoutHooks(delivery.Rendered(a))
	content := delivery.Content{Manifests: annotated(applied)}
	ordinary, _ := kubernetes.Split(applied, isHook)
	ds := append(delivery.Hooks(a, ordinary, left), delivery.SameOnAll(a)...)
	switch {
	case o.Rendered == "apart":
		problems := apart(a, o, &content)
		return content, append(ds, problems...)
	case o.ServiceAccountName != "":
		const field = "flux.serviceAccountName"
		d := diag.New(diag.UnsupportedManifests, "rendered manifests cannot be applied in the name of "+
			"a service account: Flux itself applies the folder, which creates the namespace").
			On(field).At(a.Reconciler.Ref.At(field), "").At(a.Ref.At("render"), "").
			Hinting(`let Flux apply them apart: rendered: "apart" on the reconciler, or remove serviceAccountName`)
		ds = append(ds, d)
	case o.Rendered == "handover":
		for i := range content.Manifests {
			content.Manifests[i].Value = kubernetes.Annotate(content.Manifests[i].Value, pruneAnnotation,
				"disabled")
		}
	}
	return content, ds
}

// apart lets a Kustomization of their own apply the manifests. The folder's Kustomization then
// applies only that Kustomization. It uses the service account that the workspace or the reconciler
// names, or one with the permissions of the workspace. Without an account, the manifests are
// applied with the folder.
func apart(a *backends.Assignment, o options, content *delivery.Content) []diag.Diagnostic {
	name, ds := nameOf(a, o)
	if a.GitOps == nil {
		ds = append(ds, delivery.NeedsGitOps(a.Environment,
			"what Flux applies apart from the folder").At(a.Reconciler.Ref.At("flux.rendered"), ""))
	}
	if diag.Errors(ds) {
		return ds
	}
	access, ds := delivery.AccessOf(a, &o.ServiceAccountName, name, o.Namespace)
	if diag.Errors(ds) || o.ServiceAccountName == "" {
		return ds
	}
	ct := &backends.ClusterType{Environment: a.Environment, Name: a.ClusterType, Folder: a.Folder,
		GitOps: a.GitOps}
	content.Access, content.Apart = access, "manifests"
	content.Reconciler = []kubernetes.Object{{APIVersion: kustomizeAPI, Kind: "Kustomization",
		Metadata: kubernetes.Meta(a, name, o.Namespace), Spec: kustomization{
			Interval: o.Interval, RetryInterval: o.RetryInterval, Timeout: o.Timeout,
			ServiceAccountName: o.ServiceAccountName,
			SourceRef:          treeRef(ct),
			Path:               dotSlash(delivery.FolderPath(ct, a.DeploymentTarget), content.Apart),
			Prune:              o.Prune, Wait: o.Wait,
			Decryption: o.Decryption.object(),
		}}}
	return ds
}

// isHook reports whether an object is a hook of a chart, or one of Argo CD's.
func isHook(o model.Projected) bool { return len(o.Hooks) > 0 || kubernetes.IsArgoHook(o) }

// annotated marks the Jobs among hooks for replacement, because Kubernetes does not allow
// changes of a Job. Helm creates such a Job again for each release, and Argo CD for each
// sync. annotated also marks objects that must stay, so that Flux does not prune them, even
// with the Kustomization.
func annotated(objects []model.Projected) []model.Projected {
	out := slices.Clone(objects)
	for i, o := range out {
		if isHook(o) && kubernetes.Text(o.Value, "kind") == "Job" {
			out[i].Value = kubernetes.Annotate(out[i].Value, "kustomize.toolkit.fluxcd.io/force", "enabled")
		}
		if kubernetes.Keeps(o.Value) {
			out[i].Value = kubernetes.Annotate(out[i].Value, pruneAnnotation, "disabled")
		}
	}
	return out
}

// pruneAnnotation, with the value disabled, keeps an object on the cluster after it has left its
// Kustomization.
const pruneAnnotation = "kustomize.toolkit.fluxcd.io/prune"
