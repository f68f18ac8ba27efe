package evaluate

import (
	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// manifests exports where a deployment target's manifests are, without the values
// of a chart, which need not be data yet.
func (x *exporter) manifests(target cue.Value, ref model.Ref) (m model.Manifests, ok bool) {
	of := field(target, "manifests")
	at := ref.At("manifests")
	x.note(of, at)
	value, ok := x.entity(of, at, "helm")
	if helm := field(of, "helm"); helm.Exists() {
		x.note(helm, at.At("helm"))
		chart, good := x.entity(helm, at.At("helm"), "values", "defaults")
		ok = ok && good
		value = model.StructOf(append(value.Fields(), model.Field{Name: "helm", Value: chart})...)
	}
	if ok {
		decode(value, &m)
	}
	return m, ok
}

// chartValues exports the values that a workload or a deployment target gives a
// chart.
func (x *exporter) chartValues(v cue.Value, ref model.Ref) (c model.ChartValues, ok bool) {
	helm := field(field(v, "manifests"), "helm")
	if !helm.Exists() {
		return c, true
	}
	before := len(x.ds)
	at := ref.At("manifests.helm")
	if values := field(helm, "values"); values.Exists() {
		c.Values = x.tree(values, at.At("values"))
	}
	if defaults := field(helm, "defaults"); defaults.Exists() {
		c.Defaults = x.tree(defaults, at.At("defaults"))
		x.finalOnly(c.Defaults, at.At("defaults"))
	}
	return c, !diag.Errors(x.ds[before:])
}
