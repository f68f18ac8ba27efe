package evaluate

import (
	"slices"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// registrations exports the registrations: what they refer to is evaluated apart.
func (x *exporter) registrations() []model.Registration {
	var out []model.Registration
	x.each("registrations", func(v cue.Value, ref model.Ref) {
		value, ok := x.read.entity(v, ref, "match")
		if !ok {
			return
		}
		var r struct {
			model.Registration
			Provides []string `json:"provides"`
			Layers   struct {
				Min int `json:"min"`
				Max int `json:"max"`
			} `json:"layers"`
		}
		decode(value, &r)
		r.Workloads, r.Configs = slices.Contains(r.Provides, "workloads"), slices.Contains(r.Provides, "configs")
		r.MinLayer, r.MaxLayer = r.Layers.Min, r.Layers.Max
		if r.Match, ok = x.limit(v, ref); !ok {
			return
		}
		if r.Git.Verify != nil {
			x.fail(ref.At("git.verify"), diag.New(diag.Unverifiable, "registrations are fetched by `kalypso lock`, which verifies no signatures").
				Hinting("remove verify; the lock file pins the commit that was reviewed"))
			return
		}
		if r.MaxLayer < r.MinLayer {
			x.fail(ref.At("layers"), diag.New(diag.WrongValue, "the highest layer of registration "+ref.Name+" is below its lowest").
				Hinting("raise layers.max, or lower layers.min"))
			return
		}
		out = append(out, r.Registration)
	})
	return out
}

// limit compiles the match of a registration; an absent one selects all.
func (x *exporter) limit(v cue.Value, ref model.Ref) (model.Selector, bool) {
	m := field(v, "match")
	if !m.Exists() {
		return model.Selector{Op: model.OpAll}, true
	}
	return x.selectors.selector(m, ref.At("match"), false)
}
