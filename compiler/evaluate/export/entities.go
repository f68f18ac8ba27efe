package export

import (
	"slices"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// entity exports all fields of an entity but some, as data.
func (x *reader) entity(v cue.Value, ref model.Ref, but ...string) (model.Value, bool) {
	var out []model.Field
	ok := true
	for name, of := range cuevalue.Fields(v) {
		if slices.Contains(but, name) {
			continue
		}
		f, good := x.data(of, ref.At(model.Label(name)))
		out, ok = append(out, model.Field{Name: name, Value: f}), ok && good
	}
	return model.StructOf(out...), ok
}

func (x *Exporter) clusterTypes() []model.ClusterType {
	var out []model.ClusterType
	x.each("clusterTypes", func(v cue.Value, ref model.Ref) {
		if value, ok := x.read.entity(v, ref); ok {
			var c model.ClusterType
			decode(value, &c)
			x.checkLabels(c.Labels, ref.At("labels"))
			out = append(out, c)
		}
	})
	return out
}

func (x *Exporter) clusters() []model.Cluster {
	var out []model.Cluster
	x.each("clusters", func(v cue.Value, ref model.Ref) {
		value, ok := x.read.entity(v, ref)
		if !ok {
			return
		}
		var c model.Cluster
		decode(value, &c)
		out = append(out, c)
	})
	return out
}

func (x *Exporter) schedulingPolicies() []model.SchedulingPolicy {
	var out []model.SchedulingPolicy
	x.each("schedulingPolicies", func(v cue.Value, ref model.Ref) {
		value, ok := x.read.entity(v, ref, "deploymentTargets", "clusterTypes", "except")
		if !ok {
			return
		}
		var p model.SchedulingPolicy
		decode(value, &p)
		ok = x.side(v, ref, "deploymentTargets", &p.DeploymentTargets) && ok
		ok = x.side(v, ref, "clusterTypes", &p.ClusterTypes) && ok
		ok = x.excepts(v, ref, &p) && ok
		if ok {
			out = append(out, p)
		}
	})
	return out
}

// excepts compiles the pairs that a policy leaves out: one struct, or a list of them.
func (x *Exporter) excepts(v cue.Value, ref model.Ref, p *model.SchedulingPolicy) bool {
	of := cuevalue.Field(v, "except")
	if !of.Exists() {
		return true
	}
	ok := true
	pair := func(v cue.Value, at model.Ref) {
		e := model.Except{Path: at.Path}
		ok = x.side(v, at, "deploymentTargets", &e.DeploymentTargets) && ok
		ok = x.side(v, at, "clusterTypes", &e.ClusterTypes) && ok
		if e.DeploymentTargets.Op == model.OpAll && e.ClusterTypes.Op == model.OpAll {
			x.Fail(at, diag.New(diag.ExceptNothing, at.Path+" leaves out every pair of policy "+p.Name).
				Hinting("give it a selector of deploymentTargets, clusterTypes or both, or remove the policy"))
			ok = false
		}
		p.Except = append(p.Except, e)
	}
	if at := ref.At("except"); of.IncompleteKind() == cue.ListKind {
		before := len(x.Diagnostics)
		x.read.elements(v, ref, "except", pair)
		ok = ok && !diag.Errors(x.Diagnostics[before:])
	} else {
		x.note(of, at)
		pair(of, at)
	}
	return ok
}

// side compiles one selector of a policy; an absent one selects all.
func (x *Exporter) side(v cue.Value, ref model.Ref, name string, into *model.Selector) bool {
	s := cuevalue.Field(v, name)
	if !s.Exists() {
		*into = model.Selector{Op: model.OpAll}
		return true
	}
	var ok bool
	*into, ok = x.selectors.selector(s, ref.At(name), true)
	return ok
}

// registrations exports the registrations: what they refer to is evaluated apart.
func (x *Exporter) registrations() []model.Registration {
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
			x.Fail(ref.At("git.verify"), diag.New(diag.Unverifiable, "registrations are fetched by `kalypso lock`, which verifies no signatures").
				Hinting("remove verify; the lock file pins the commit that was reviewed"))
			return
		}
		if r.MaxLayer < r.MinLayer {
			x.Fail(ref.At("layers"), diag.New(diag.WrongValue, "the highest layer of registration "+ref.Name+" is below its lowest").
				Hinting("raise layers.max, or lower layers.min"))
			return
		}
		out = append(out, r.Registration)
	})
	return out
}

// limit compiles the match of a registration; an absent one selects all.
func (x *Exporter) limit(v cue.Value, ref model.Ref) (model.Selector, bool) {
	m := cuevalue.Field(v, "match")
	if !m.Exists() {
		return model.Selector{Op: model.OpAll}, true
	}
	return x.selectors.selector(m, ref.At("match"), false)
}
