// Package helm renders Helm charts in process. Its input is a chart's archive and its values.
// Its output is Kubernetes objects, the same that `helm template --include-crds` prints for
// them. Only this package knows Helm, so another version of Helm changes only this package.
//
// A render depends only on its Request. It cannot look anything up on a cluster, in the
// network, in the environment or in a file outside the chart. The request describes the
// capabilities of the cluster. A chart is refused if it makes something up, such as a password
// or the time. If only a hook does so that no installation or upgrade runs, such as a test, the
// render succeeds and the hook is marked as unstable.
//
// This package does not bound time and memory: a template may loop for ever. Worker processes
// bound them, see package project.
//
// For example, the package's tests render a chart app with one template, a ConfigMap config:
//
//	data:
//	  value: {{ .Values.now | default "x" }}
//
// Render returns this object as a [model.Projected], with data.value "x". If the template has
// {{ now | unixEpoch | quote }} instead, Render returns a *refusal.Error, because the chart uses
// now.
package helm

import (
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/internal/manifest"
	"github.com/kalypso-io/kalypso/compiler/project/internal/quiet"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// Request is a chart to render, with everything that its output depends on.
type Request struct {
	// Chart is the chart's archive, a .tgz with its dependencies in charts/. It is nil for a chart
	// with Files: the files of its folder, by their paths in it. As with `helm package`, the files
	// that .helmignore lists are not part of the chart.
	Chart       []byte
	Files       map[string][]byte
	ReleaseName string
	Namespace   string
	// Values are merged into the chart's values. A null removes a value of the chart. They are
	// null or a struct. As for Helm, all numbers are floats.
	Values model.Value
	// ValuesFiles are merged into the chart's values before Values, in their order.
	ValuesFiles []ValuesFile
	// KubernetesVersion is the value of .Capabilities.KubeVersion, such as "1.34.2". It is ""
	// if the version of the cluster is not known; then a chart that asks for it is refused.
	KubernetesVersion string
	// APIVersions are the entries of .Capabilities.APIVersions in addition to the APIs of
	// Kubernetes itself. Each is group/version or group/version/Kind.
	APIVersions []string
}

// ValuesFile is a file of values, as `helm template --values` reads it.
type ValuesFile struct {
	Name string
	// Data is the content; nil for a file of the chart, whose Name is relative to it.
	Data []byte
}

// Render returns the objects that a chart makes, in the order in which Helm prints them:
// the objects of crds/ first, then by kind, then the hooks. Errors are *refusal.Errors. It
// may be called from several goroutines.
func Render(req Request) (objects []model.Projected, err error) {
	defer quiet.Begin()()
	defer func() {
		if p := recover(); p != nil {
			objects, err = nil,
				refusal.New(diag.Render, "the chart is beyond what Helm can read", "Helm panics: %v", p)
		}
	}()
	files, err := chartFiles(req)
	if err != nil {
		return nil, err
	}
	first, err := render(req, files, nil)
	if err != nil {
		return nil, err
	}
	return stable(req, files, first)
}

// chartObject is an object with the template or file of the chart that makes it.
type chartObject struct {
	model.Projected
	source string
}

// objects reads the objects of a rendered chart.
func (r *renderOutput) objects() ([]chartObject, error) {
	total := 0
	for _, text := range r.files {
		total += len(text)
	}
	if total > manifest.MaxSize {
		return nil, refusal.New(diag.Unbounded, "give the chart values with which it makes less",
			"chart %s renders to %d MiB, more than %d MiB", r.name, total>>20, manifest.MaxSize>>20)
	}
	printed, err := r.parts()
	if err != nil {
		return nil, err
	}
	var (
		reader  manifest.Reader
		objects []chartObject
	)
	for _, p := range printed {
		values, err := reader.Read(p.source, []byte(p.text))
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			objects = append(objects, chartObject{model.Projected{Value: v, Hooks: p.hooks}, p.source})
		}
	}
	return objects, nil
}

// failed is the error of a chart that cannot be rendered.
func failed(err error) error {
	hint := "check the values that the chart gets, and the chart"
	if strings.Contains(err.Error(), "values don't meet") {
		hint = "the chart's values.schema.json says which values it takes"
	}
	return refusal.New(diag.Render, hint, "%v", err)
}
