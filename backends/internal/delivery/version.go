package delivery

import (
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Exact says whether v is one version of SemVer 2.0. Flux, Argo CD and Helm read
// anything else that is a version to them, such as 1.2, as a range or not, each
// in its own way.
func Exact(v string) bool {
	_, err := semver.StrictNewVersion(v)
	return err == nil
}

// isRange says whether v is a range of versions as Flux, Argo CD and Helm read
// it, all by the same library.
func isRange(v string) bool {
	_, err := semver.NewConstraint(v)
	return err == nil
}

// ChartTag returns the tag of a chart's version in an OCI registry: a tag cannot
// hold a plus sign, so Helm writes an underscore
// (https://helm.sh/docs/topics/registries).
func ChartTag(version string) string { return strings.ReplaceAll(version, "+", "_") }
