package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends/internal/delivery"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// What Fleet's controller does to the values of a chart whatever disablePreProcess
// says (processLabelValues in internal/cmd/controller/target of Fleet 0.15): a text
// that begins with clusterLabels becomes the value of a label of the cluster, and
// values that are nested deeper than maxDepth are an error.
const (
	clusterLabels = "global.fleet.clusterLabels."
	maxDepth      = 50
)

// checkValues reports values that Fleet would change or refuse.
func (f *folder) checkValues(values model.Value, at model.Ref) {
	path, why := misread(values, 0)
	if why == "" {
		return
	}
	if path != "" {
		path = " at " + path
	}
	f.ds = append(f.ds, diag.New(diag.UnsupportedManifests,
		fmt.Sprintf("Fleet cannot pass on the chart's values%s: %s", path, why)).
		On("manifests.helm.values").At(at, "").At(f.assignment.Ref.At("manifests.helm"), "").
		Hinting("render the chart: set render: true on the deployment target"))
}

// misread returns the first value that Fleet does not take as it is, and why; ""
// where there is none.
func misread(v model.Value, depth int) (path, why string) {
	if depth > maxDepth {
		return "", fmt.Sprintf("they are nested more than %d deep", maxDepth)
	}
	for _, field := range v.Fields() {
		var inner string
		switch field.Value.Kind() {
		case model.String:
			if strings.HasPrefix(field.Value.Text(), clusterLabels) {
				why = "it would replace a text that begins with " + clusterLabels
			}
		case model.Struct:
			inner, why = misread(field.Value, depth+1)
		case model.List:
			inner, why = misreadElement(field.Value, depth+1)
		}
		if why != "" {
			return model.JoinPath(model.Label(field.Name), inner), why
		}
	}
	return "", ""
}

// misreadElement is misread for a list. Fleet looks at the structs in it, and at
// nothing else.
func misreadElement(list model.Value, depth int) (path, why string) {
	for _, e := range list.Elems() {
		if e.Kind() == model.Struct {
			if path, why = misread(e, depth); why != "" {
				return path, why
			}
		}
	}
	return "", ""
}

// hasNull says whether the values of a HelmOp hold a null, for all clusters or for one.
func (op *helmOp) hasNull() bool {
	return op.Helm.hasNull() || slices.ContainsFunc(op.Targets, func(t target) bool { return t.Helm.hasNull() })
}

func (h *helm) hasNull() bool { return h != nil && h.Values != nil && delivery.HasNull(*h.Values) }

// asTexts gives a HelmOp its values as texts, one for each key. Fleet's agent changes the HelmOps
// that a release before Fleet 0.15 made, and all that it rolls back, by a merge patch, which takes
// null for "no such key" (createPatch in pkg/kube/client.go of Helm). Fleet itself keeps the nulls
// that it reads from a text. The text of a key for one cluster takes the place of the one for all.
func (op *helmOp) asTexts() {
	all := *op.Helm.Values
	op.Helm.TemplateValues, op.Helm.Values, op.Helm.DisablePreProcess = texts(all), nil, false
	for _, t := range op.Targets {
		if t.Helm == nil {
			continue
		}
		there := delivery.Merge(all, *t.Helm.Values)
		fields := slices.Clone(t.Helm.Values.Fields())
		for i, f := range fields {
			fields[i].Value, _ = there.Lookup(f.Name)
		}
		t.Helm.TemplateValues, t.Helm.Values = texts(model.StructOf(fields...)), nil
	}
}

// texts returns the fields of a struct as texts of YAML in which Fleet finds no template.
func texts(values model.Value) map[string]string {
	out := map[string]string{}
	for _, f := range values.Fields() {
		out[f.Name] = strings.ReplaceAll(string(yaml.Must(f.Value)), "${", "${ `${` }")
	}
	return out
}

// checkLabels reports that Fleet may read no texts of values: it passes them over on a cluster
// that has no labels but Rancher's (preprocessHelmValues in internal/cmd/controller/target).
func (f *folder) checkLabels(s delivery.Source) {
	for label := range f.everywhere().ClusterSelector.MatchLabels {
		if !strings.Contains(label, "cattle.io/") {
			return
		}
	}
	const field = "fleet.clusterSelector"
	const text = "Fleet passes over a null in the chart's values on clusters that have no labels but Rancher's"
	f.ds = append(f.ds, delivery.Unsupported(f.assignment, s.Field+".values", text).
		At(f.assignment.Reconciler.Ref.At(field), "").
		Hinting("add a label of your own to clusterSelector, or render the chart: set render: true on the deployment target"))
}

// under returns a struct that holds v at a path of names with dots between them.
func under(path string, v model.Value) model.Value {
	for _, name := range slices.Backward(strings.Split(path, ".")) {
		v = model.StructOf(model.Field{Name: name, Value: v})
	}
	return v
}

// isArchive says whether Fleet takes a chart's name for the URL of an archive.
func isArchive(chart string) bool { return strings.HasSuffix(strings.ToLower(chart), ".tgz") }
