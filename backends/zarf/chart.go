package zarf

import (
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// chart adds a chart, which Zarf puts into the package at the version that
// kalypso.lock names, with the composed values. Credentials are those of the
// machine that makes the package.
func (f *folder) chart(h *model.Helm) {
	release := delivery.ReleaseName(f.a, h)
	if problems := validation.IsDNS1035Label(release); len(problems) > 0 {
		f.refuse("helm.releaseName", "Zarf takes no release called "+release+": a name begins with a letter",
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
		c.ValuesFiles = []string{f.in(valuesFile)}
	}
	f.component.Charts = append(f.component.Charts, c)
}
