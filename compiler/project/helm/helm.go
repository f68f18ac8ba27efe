// Package helm renders Helm charts in process: a chart's archive and its values
// go in, Kubernetes objects come out, the same that `helm template --include-crds`
// prints for them. It is all of kalypso that knows Helm, so that another version
// of Helm is a change of this package alone.
//
// A render depends on its Request and on nothing else: there is no cluster to
// look things up on, no network, no environment and no file outside the chart,
// and what the cluster can do is what the request says. A chart that makes
// something up, such as a password or the time, is refused; where a hook has it that
// no installation or upgrade runs, such as a test, the hook says so.
//
// What is not bounded here is time and memory: a template may loop for ever. That
// is what worker processes are for, see package project.
package helm

import (
	"strings"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/internal/manifest"
	"github.com/kalypso-io/kalypso/compiler/project/internal/quiet"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// Request is a chart to render, and all that its output depends on.
type Request struct {
	// Chart is the chart's archive, a .tgz with its dependencies in charts/.
	Chart       []byte
	ReleaseName string
	Namespace   string
	// Values are merged into those of the chart, a null removes what the chart has.
	// They are null or a struct. As for Helm, all numbers are floats.
	Values model.Value
	// KubernetesVersion is what .Capabilities.KubeVersion says, such as "1.34.2";
	// "" for a cluster whose version is not known, which no chart may ask for.
	KubernetesVersion string
	// APIVersions are what .Capabilities.APIVersions has beside the APIs of
	// Kubernetes itself: group/version or group/version/Kind.
	APIVersions []string
}

// Render returns the objects that a chart makes, in the order in which Helm prints
// them: those of crds/ first, then by kind, then the hooks. Errors are
// *refusal.Errors. It may be called from several goroutines.
func Render(req Request) (objects []model.Projected, err error) {
	defer quiet.Begin()()
	defer func() {
		if p := recover(); p != nil {
			objects, err = nil, refusal.New(diag.Render, "the chart is beyond what Helm can read", "Helm panics: %v", p)
		}
	}()
	if err := checkArchive(req.Chart); err != nil {
		return nil, err
	}
	first, err := render(req, nil)
	if err != nil {
		return nil, err
	}
	return stable(req, first)
}

// sourced is an object with the template or file of the chart that makes it.
type sourced struct {
	model.Projected
	source string
}

// objects reads what was rendered.
func (r *rendered) objects() ([]sourced, error) {
	total := 0
	for _, text := range r.files {
		total += len(text)
	}
	if total > manifest.MaxSize {
		return nil, refusal.New(diag.Unbounded, "give the chart values with which it makes less",
			"chart %s renders to %d MiB, more than %d MiB", r.name, total>>20, manifest.MaxSize>>20)
	}
	printed, err := r.printed()
	if err != nil {
		return nil, err
	}
	var (
		reader  manifest.Reader
		objects []sourced
	)
	for _, p := range printed {
		values, err := reader.Read(p.source, []byte(p.text))
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			objects = append(objects, sourced{model.Projected{Value: v, Hooks: p.hooks}, p.source})
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
