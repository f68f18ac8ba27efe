package flux

import (
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
		spec.change(s.Overlay)
	}
	for _, p := range kubernetes.RestartPatches(a) {
		spec.Patches = append(spec.Patches, patch{Patch: p.Patch, Target: p.Target})
	}
	return kubernetes.Object{APIVersion: kustomizeAPI, Kind: "Kustomization",
		Metadata: kubernetes.Meta(a, name, o.Namespace), Spec: spec}
}

// change adds the changes to an overlay.
func (k *kustomization) change(to *model.Kustomize) {
	k.NamePrefix = to.NamePrefix
	for _, p := range to.Patches {
		k.Patches = append(k.Patches, patch{Patch: p.Patch, Target: p.Target})
	}
	for _, i := range to.Images {
		k.Images = append(k.Images, image(i))
	}
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
		Patches []patch `yaml:"patches"`
	} `yaml:"kustomize"`
}

type chartTemplate struct {
	Spec chart `yaml:"spec"`
}

type chart struct {
	Chart     string        `yaml:"chart"`
	Version   string        `yaml:"version"`
	SourceRef kindReference `yaml:"sourceRef"`
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
// written: Flux derives others, and a change of them would install it anew.
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
	action := helmAction{DisableWait: !o.Wait, Strategy: strategy{Name: "RetryOnFailure", RetryInterval: o.RetryInterval}}
	upgrade := action
	upgrade.CRDs = "CreateReplace"
	if h.CRDs == model.SkipCRDs {
		action.CRDs, upgrade.CRDs = "Skip", "Skip"
	}
	spec := helmRelease{
		Interval: o.Interval, Timeout: o.Timeout,
		ReleaseName:        delivery.ReleaseName(a, h),
		TargetNamespace:    a.Namespace,
		StorageNamespace:   a.Namespace,
		ServiceAccountName: o.ServiceAccountName,
		DriftDetection:     driftDetection{Mode: "enabled"},
		Install:            action, Upgrade: upgrade,
		Values: delivery.ChartValues(withClusterValues(a, h, variables)),
	}
	if patches := kubernetes.RestartPatches(a); len(patches) > 0 {
		spec.PostRenderers = make([]postRenderer, 1)
		for _, p := range patches {
			spec.PostRenderers[0].Kustomize.Patches = append(spec.PostRenderers[0].Kustomize.Patches,
				patch{Patch: p.Patch, Target: p.Target})
		}
	}
	ref := kindReference{Kind: source.Kind, Name: name}
	if source.Kind == ociKind {
		spec.ChartRef = &ref
	} else {
		spec.Chart = &chartTemplate{Spec: chart{Chart: h.Chart, Version: h.Version, SourceRef: ref}}
	}
	return kubernetes.Object{APIVersion: helmAPI, Kind: "HelmRelease",
		Metadata: kubernetes.Meta(a, name, o.Namespace), Spec: spec}, ds
}
