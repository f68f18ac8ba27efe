package helm

import (
	"errors"
	"slices"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// capabilities returns what a chart sees as .Capabilities, and for a cluster whose
// version is not known whatever tells that it was looked at.
func capabilities(req Request) (any, *unknown, error) {
	if req.KubernetesVersion == "" {
		u := &unknown{asked: new(bool)}
		return u, u, nil
	}
	version, err := chartutil.ParseKubeVersion(req.KubernetesVersion)
	if err != nil {
		return nil, nil, refusal.New(diag.KubernetesVersion, `a version is like "1.34.2"`,
			"%q is no version of Kubernetes", req.KubernetesVersion)
	}
	caps := chartutil.DefaultCapabilities.Copy()
	caps.KubeVersion = *version
	// Sorted: Helm gets its own from a map.
	caps.APIVersions = slices.Compact(slices.Sorted(slices.Values(slices.Concat(caps.APIVersions, req.APIVersions))))
	return caps, nil, nil
}

// checkKubeVersion holds the kubeVersion of Chart.yaml against the cluster's. As
// in Helm, those of dependencies are not looked at.
func checkKubeVersion(ch *chart.Chart, caps any) error {
	want := ch.Metadata.KubeVersion
	if want == "" {
		return nil
	}
	known, ok := caps.(*chartutil.Capabilities)
	if !ok {
		return versionNeeded(ch, "its Chart.yaml has kubeVersion: "+want)
	}
	if !chartutil.IsCompatibleRange(want, known.KubeVersion.Version) {
		return refusal.New(diag.Render, "take a version of the chart that fits the cluster type's kubernetesVersion",
			"chart %s is for Kubernetes %s, and the cluster type has %s", ch.Name(), want, known.KubeVersion.Version)
	}
	return nil
}

func versionNeeded(ch *chart.Chart, why string) error {
	return refusal.New(diag.KubernetesVersion, "give the cluster type, or the application's "+
		"kalypso.yaml, its kubernetesVersion, and in apiVersions the APIs that are installed there",
		"what chart %s renders to depends on the version of Kubernetes, which is not given: %s", ch.Name(), why)
}

// errUnknown ends a render that needs to know what is not known.
var errUnknown = errors.New("the version of Kubernetes is not known")

// unknown is .Capabilities where the version of Kubernetes is not known. It
// answers by ending the render, so that only charts fail that really look, from
// wherever: a template, a text that goes through tpl, a dependency that is
// switched on. What cannot end a render, as toYaml cannot, leaves a note.
type unknown struct{ asked *bool }

func (u *unknown) ask() error {
	if u.asked != nil {
		*u.asked = true
	}
	return errUnknown
}

// KubeVersion is what templates call for .Capabilities.KubeVersion.
func (u *unknown) KubeVersion() (any, error) { return nil, u.ask() }

// APIVersions is what templates call for .Capabilities.APIVersions: those that
// the request adds are no answer without those that the version has.
func (u *unknown) APIVersions() (any, error) { return nil, u.ask() }

// HelmVersion is what templates call for .Capabilities.HelmVersion, which is
// known.
func (u *unknown) HelmVersion() any { return chartutil.DefaultCapabilities.HelmVersion }

// MarshalJSON is called by toJson and toYaml.
func (u *unknown) MarshalJSON() ([]byte, error) { return nil, u.ask() }

// MarshalYAML is called by toYamlPretty.
func (u *unknown) MarshalYAML() (any, error) { return nil, u.ask() }

// String is called where the whole is printed.
func (u *unknown) String() string { return u.ask().Error() }
