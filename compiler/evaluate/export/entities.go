package export

import (
	"slices"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
)

func (x *Exporter) clusterType(v cue.Value, ref model.Ref) (c model.ClusterType, ok bool) {
	ok = x.read.decode(&c, v, ref, "clusters")
	x.checkLabels(c.Labels, ref.At("labels"))
	of, good := x.selectors.optional(v, ref, "clusters", true)
	if cuevalue.Field(v, "clusters").Exists() {
		c.Clusters = &of
	}
	return c, ok && good
}

func (x *Exporter) cluster(v cue.Value, ref model.Ref) (c model.Cluster, ok bool) {
	ok = x.read.decode(&c, v, ref)
	return c, ok
}

func (x *Exporter) inventory(v cue.Value, ref model.Ref) (i model.Inventory, ok bool) {
	ok = x.read.decode(&i, v, ref, "labels")
	x.checkLabels(i.Columns.Labels, ref.At("columns.labels"))
	var good bool
	i.Labels, good = x.selectors.optional(v, ref, "labels", false)
	return i, ok && good
}

func (x *Exporter) workspace(v cue.Value, ref model.Ref) (w model.Workspace, ok bool) {
	const clusterTypes = "clusterTypes"
	if cuevalue.Field(v, clusterTypes).IncompleteKind() != cue.StructKind {
		ok = x.read.decode(&w, v, ref)
		w.Complete()
		return w, ok
	}
	ok = x.read.decode(&w, v, ref, clusterTypes)
	w.Complete()
	of, selected := x.selectors.optional(v, ref, clusterTypes, true)
	w.SelectedTypes = &of
	return w, ok && selected
}

func (x *Exporter) schedulingPolicy(v cue.Value, ref model.Ref) (p model.SchedulingPolicy, ok bool) {
	if !x.read.decode(&p, v, ref, "deploymentTargets", "clusterTypes", "clusters", "except") {
		return p, false
	}
	var targets, types, clusters bool
	p.DeploymentTargets, targets = x.selectors.optional(v, ref, "deploymentTargets", true)
	p.ClusterTypes, types = x.selectors.optional(v, ref, "clusterTypes", true)
	p.Clusters, clusters = x.selectors.clusters(v, ref)
	ok = x.excepts(v, ref, &p) && targets && types && clusters
	return p, ok
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
		var targets, types, clusters bool
		e.DeploymentTargets, targets = x.selectors.optional(v, at, "deploymentTargets", true)
		e.ClusterTypes, types = x.selectors.optional(v, at, "clusterTypes", true)
		e.Clusters, clusters = x.selectors.clusters(v, at)
		ok = ok && targets && types && clusters
		if e.DeploymentTargets.Op == model.OpAll && e.ClusterTypes.Op == model.OpAll && e.Clusters == nil {
			x.Fail(at, diag.New(diag.ExceptNothing, at.Path+" leaves out every pair of policy "+p.Name).
				Hinting("give it a selector of deploymentTargets, clusterTypes or clusters, or remove the policy"))
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

// registration exports a registration. What it refers to is evaluated apart.
func (x *Exporter) registration(v cue.Value, ref model.Ref) (model.Registration, bool) {
	var r struct {
		model.Registration
		Provides []string `json:"provides"`
		Layers   struct {
			Min int `json:"min"`
			Max int `json:"max"`
		} `json:"layers"`
	}
	if !x.read.decode(&r, v, ref, "match") {
		return r.Registration, false
	}
	r.Workloads, r.Configs = slices.Contains(r.Provides, "workloads"), slices.Contains(r.Provides, "configs")
	r.MinLayer, r.MaxLayer = r.Layers.Min, r.Layers.Max
	var ok bool
	if r.Match, ok = x.selectors.optional(v, ref, "match", false); !ok {
		return r.Registration, false
	}
	switch {
	case r.Git.Verify != nil:
		x.Fail(ref.At("git.verify"),
			diag.New(diag.Unverifiable, "registrations are fetched by `kalypso lock`, which verifies no signatures").
				Hinting("remove verify; the lock file pins the commit that was reviewed"))
		return r.Registration, false
	case r.MaxLayer < r.MinLayer:
		x.Fail(ref.At("layers"), diag.New(diag.WrongValue,
			"the highest layer of registration "+ref.Name+" is below its lowest").
			Hinting("raise layers.max, or lower layers.min"))
		return r.Registration, false
	}
	return r.Registration, true
}
