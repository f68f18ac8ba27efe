package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/project/internal/manifest"
	"github.com/kalypso-io/kalypso/compiler/project/internal/refusal"
)

// renderOutput is the output of the templates of a chart, before it is read.
type renderOutput struct {
	name  string            // of the chart
	files map[string]string // by the template's full path, such as app/templates/service.yaml
	crds  []chart.CRD
	chart *chart.Chart // as it was rendered
}

// render loads and renders a chart, in a given world unless it is nil. The steps are the same
// as in Helm's install action when it runs on the client only.
func render(req Request, files []*loader.BufferedFile, w *world) (*renderOutput, error) {
	ch, err := load(files)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ValidateReleaseName(req.ReleaseName); err != nil {
		return nil, failed(fmt.Errorf("release name %q: %w", req.ReleaseName, err))
	}
	values, err := helmValues(req.Values)
	if err != nil {
		return nil, failed(err)
	}
	for _, f := range slices.Backward(req.ValuesFiles) {
		below, err := f.read(ch)
		if err != nil {
			return nil, err
		}
		values = chartutil.MergeTables(values, below)
	}
	if err := chartutil.ProcessDependenciesWithMerge(ch, values); err != nil {
		return nil, failed(err)
	}
	caps, unknown, err := capabilities(req)
	if err != nil {
		return nil, err
	}
	if err := checkKubeVersion(ch, caps); err != nil {
		return nil, err
	}
	top, err := topValues(req, ch, values, caps)
	if err != nil {
		return nil, err
	}
	outputs, err := execute(ch, top, w)
	if unknown != nil &&
		(*unknown.asked || err != nil && strings.Contains(err.Error(), errUnknown.Error())) {
		return nil, versionNeeded(ch, where(err))
	}
	if err != nil {
		return nil, failed(err)
	}
	for name := range outputs {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(outputs, name)
		}
	}
	return &renderOutput{ch.Name(), outputs, ch.CRDObjects(), ch}, nil
}

// read returns the values of a file, which may be a file of the chart.
func (f ValuesFile) read(ch *chart.Chart) (chartutil.Values, error) {
	data := f.Data
	if data == nil {
		n := slices.IndexFunc(ch.Raw,
			func(of *chart.File) bool { return of.Name == path.Clean(f.Name) })
		if n < 0 {
			return nil, refusal.New(diag.BadSource, "name a file of the chart, from its folder",
				"chart %s has no file of values %s", ch.Name(), f.Name)
		}
		data = ch.Raw[n].Data
	}
	if err := manifest.Check(f.Name, data); err != nil {
		return nil, err
	}
	values, err := chartutil.ReadValues(data)
	if err != nil {
		return nil, refusal.New(diag.BadSource, "correct the file of values",
			"the file of values %s cannot be read: %v", f.Name, err)
	}
	return values, nil
}

// where returns the place of a template at which a render ended.
func where(err error) string {
	if err == nil {
		return "a template prints .Capabilities"
	}
	// template: app/templates/ingress.yaml:3:7: executing …
	if _, rest, ok := strings.Cut(err.Error(), "template: "); ok {
		if place, _, ok := strings.Cut(rest, ": "); ok {
			return place + " looks at .Capabilities"
		}
	}
	return "a template looks at .Capabilities"
}

// helmValues returns values as Helm reads them from a file: numbers are floats.
func helmValues(v model.Value) (map[string]any, error) {
	values := map[string]any{}
	if v.Kind() == model.Null {
		return values, nil
	}
	if v.Kind() != model.Struct {
		return nil, fmt.Errorf("the values of a chart are a %s, not a struct", v.Kind())
	}
	if err := json.Unmarshal(v.AppendJSON(nil), &values); err != nil {
		return nil, fmt.Errorf("the values are beyond what Helm can hold: %w", err)
	}
	return values, nil
}

// topValues returns the value of the dot in templates.
func topValues(req Request, ch *chart.Chart, values map[string]any, caps any) (chartutil.Values,
	error) {
	options := chartutil.ReleaseOptions{Name: req.ReleaseName, Namespace: req.Namespace, Revision: 1,
		IsInstall: true}
	// Schemas are checked here, because Helm would fetch the addresses in them.
	top, err := chartutil.ToRenderValuesWithSchemaValidation(ch, values, options, nil, true)
	if err != nil {
		return nil, failed(err)
	}
	top["Capabilities"] = caps
	merged, err := top.Table("Values")
	if err != nil {
		merged = chartutil.Values{}
	}
	return top, checkSchemas(ch, merged)
}

// execute executes the templates of a chart.
func execute(ch *chart.Chart, top chartutil.Values, w *world) (map[string]string, error) {
	if w == nil {
		return engine.Render(ch, top)
	}
	rewriteTemplates(ch)
	return engine.RenderWithClientProvider(ch, top, w)
}

func rewriteTemplates(ch *chart.Chart) {
	for _, t := range ch.Templates {
		t.Data = []byte(rewrite(string(t.Data), byTemplate))
	}
	for _, d := range ch.Dependencies() {
		rewriteTemplates(d)
	}
}

// outputPart is a part of the output of `helm template`.
type outputPart struct {
	source string // the template or file that it is from
	text   string
	hooks  []string
}

// parts returns the output of `helm template --include-crds`, in its order. Helm trims the
// white space at the ends of each output and then prints a line feed after it. Without that
// line feed, a block scalar at the end of a document would lose its own.
func (r *renderOutput) parts() ([]outputPart, error) {
	var out []outputPart
	for _, crd := range r.crds {
		out = append(out, outputPart{source: crd.Filename, text: string(crd.File.Data) + "\n"})
	}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		if err := manifest.Check(name, []byte(r.files[name])); err != nil {
			return nil, err
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(r.files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, failed(err)
	}
	for _, m := range manifests {
		out = append(out, outputPart{source: m.Name, text: m.Content + "\n"})
	}
	if n := len(out); n > 0 {
		out[n-1].text = strings.TrimRightFunc(out[n-1].text, unicode.IsSpace) + "\n"
	}
	for _, h := range hooks {
		var events []string
		for _, e := range h.Events {
			events = append(events, e.String())
		}
		slices.Sort(events)
		out = append(out,
			outputPart{source: h.Path, text: h.Manifest + "\n", hooks: slices.Compact(events)})
	}
	return out, nil
}

// templates returns the templates of a chart and its dependencies by their full
// paths.
func templates(ch *chart.Chart) map[string]string {
	all := map[string]string{}
	for _, t := range ch.Templates {
		all[path.Join(ch.ChartFullPath(), t.Name)] = string(t.Data)
	}
	for _, d := range ch.Dependencies() {
		for name, text := range templates(d) {
			all[name] = text
		}
	}
	return all
}
