package helm

import (
	"errors"
	"slices"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// capabilities returns the value of .Capabilities for the templates of a chart. If the version
// of the cluster is not known, it also returns an unknown, which notes whether a template read
// it.
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
	caps.APIVersions = slices.Compact(
		slices.Sorted(slices.Values(slices.Concat(caps.APIVersions, req.APIVersions))))
	return caps, nil, nil
}

// checkKubeVersion compares the kubeVersion of Chart.yaml with the version of the cluster. Like
// Helm, it ignores the kubeVersion of dependencies.
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
		return refusal.New(diag.Render,
			"take a version of the chart that fits the cluster type's kubernetesVersion",
			"chart %s is for Kubernetes %s, and the cluster type has %s", ch.Name(), want,
			known.KubeVersion.Version)
	}
	return nil
}

func versionNeeded(ch *chart.Chart, why string) error {
	return refusal.New(diag.KubernetesVersion, "give the cluster type, or the application's "+
		"kalypso.yaml, its kubernetesVersion, and in apiVersions the APIs that are installed there",
		"what chart %s renders to depends on the version of Kubernetes, which is not given: %s",
		ch.Name(), why)
}

// errUnknown ends a render that needs the unknown version.
var errUnknown = errors.New("the version of Kubernetes is not known")

// unknown is .Capabilities if the version of Kubernetes is not known. Each access to it ends
// the render with an error, so only the charts that really read it fail. The access may come
// from a template, from a text that passes through tpl, or from the condition of a dependency.
// Some callers, such as toYaml, cannot end a render: they leave a note instead.
type unknown struct{ asked *bool }

func (u *unknown) ask() error {
	if u.asked != nil {
		*u.asked = true
	}
	return errUnknown
}

// KubeVersion answers .Capabilities.KubeVersion in templates.
func (u *unknown) KubeVersion() (any, error) { return nil, u.ask() }

// APIVersions answers .Capabilities.APIVersions in templates. The versions that the request
// adds are not a full answer without the versions that Kubernetes itself has.
func (u *unknown) APIVersions() (any, error) { return nil, u.ask() }

// HelmVersion answers .Capabilities.HelmVersion in templates. It does not depend on the
// cluster, so it is known.
func (u *unknown) HelmVersion() any { return chartutil.DefaultCapabilities.HelmVersion }

// MarshalJSON is called by toJson and toYaml.
func (u *unknown) MarshalJSON() ([]byte, error) { return nil, u.ask() }

// MarshalYAML is called by toYamlPretty.
func (u *unknown) MarshalYAML() (any, error) { return nil, u.ask() }

// String is called when a template prints the whole value.
func (u *unknown) String() string { return u.ask().Error() }
