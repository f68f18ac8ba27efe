package evaluate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

func field(v cue.Value, name string) cue.Value { return v.LookupPath(cue.MakePath(cue.Str(name))) }

// entity exports all fields of an entity but some, as data.
func (x *reader) entity(v cue.Value, ref model.Ref, but ...string) (model.Value, bool) {
	var out []model.Field
	ok := true
	for name, of := range fields(v) {
		if slices.Contains(but, name) {
			continue
		}
		f, good := x.data(of, ref.At(model.Label(name)))
		out, ok = append(out, model.Field{Name: name, Value: f}), ok && good
	}
	return model.StructOf(out...), ok
}

func (x *exporter) gitOps(env *model.Environment) {
	x.each("environments", func(v cue.Value, ref model.Ref) {
		value, ok := x.read.entity(v, ref, policyFields...)
		if !ok {
			return
		}
		var e struct {
			Description string        `json:"description"`
			After       []string      `json:"after"`
			GitOps      *model.GitOps `json:"gitops"`
			Removals    struct {
				Max json.RawMessage `json:"max"` // an int, or a text
			} `json:"removals"`
		}
		decode(value, &e)
		if ref.Name != env.Name && len(x.writtenIn(v, ownFolder(env.Name))) < len(x.written(v)) { // the base declares it
			x.withoutEffect(v, ref, env.Name, append([]string{"after", "gitops", "removals"}, policyFields...), "on environment "+ref.Name)
		}
		if e.GitOps != nil && !x.checkGitOps(e.GitOps, ref.Name, ref.At("gitops")) || ref.Name != env.Name {
			return
		}
		x.ownPolicy(v, ref)
		if x.writtenIn(field(v, "rings"), ownFolder(ref.Name)) != nil {
			env.Rings = x.policies.rings(v, ref)
		}
		env.Description, env.After, env.GitOps = e.Description, e.After, e.GitOps
		env.MaxRemovals = strings.Trim(string(e.Removals.Max), `"`)
	})
}

// checkGitOps reports fields that are missing for one way to keep the tree, or
// belong to the other, and completes the rest.
func (x *exporter) checkGitOps(g *model.GitOps, environment string, ref model.Ref) bool {
	switch {
	case g.OCI == "" && g.Branch == "":
		x.fail(ref, diag.New(diag.Missing, "required field branch is missing").Hinting(`name the branch that holds the tree: branch: "..."`))
	case g.OCI == "" && g.Tag != "":
		x.fail(ref.At("tag"), diag.New(diag.NotAllowed, "tag is for a tree in an OCI registry, and this one is in a git repository").
			Hinting("name the branch that holds the tree with branch, and remove tag"))
	case g.OCI != "" && g.Branch != "":
		x.fail(ref.At("branch"), diag.New(diag.NotAllowed, "branch is for a tree in a git repository, and this one is in an OCI registry").
			Hinting("name the artifact's tag with tag, and remove branch"))
	default:
		if g.OCI != "" && g.Tag == "" {
			g.Tag = environment
		}
		return true
	}
	return false
}

func (x *exporter) clusterTypes() []model.ClusterType {
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

func (x *exporter) clusters() []model.Cluster {
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

func (x *exporter) workloads(environment string) []model.Workload {
	var out []model.Workload
	x.each("workloads", func(v cue.Value, ref model.Ref) {
		if x.faulty(ref, "deploymentTargets") {
			return
		}
		value, ok := x.read.entity(v, ref, "deploymentTargets", "requires", "manifests")
		if !ok {
			return
		}
		var w struct {
			model.Workload
			Enforce string `json:"enforce"`
		}
		decode(value, &w)
		if w.Application == "" {
			w.Application = w.Name
		}
		x.checkLabels(w.Labels, ref.At("labels"))
		if r := field(v, "requires"); r.Exists() {
			if w.Requires = x.contracts.contract(r, ref.At("requires"), w.Enforce); w.Requires == nil {
				return
			}
		}
		if w.Chart, ok = x.trees.chartValues(v, ref); !ok {
			return
		}
		w.Targets = x.targets(v, &w.Workload, environment)
		out = append(out, w.Workload)
	})
	return out
}

// targets exports a workload's deployment targets of the environment. Those that
// are sick leave the others alone.
func (x *exporter) targets(v cue.Value, w *model.Workload, environment string) []model.DeploymentTarget {
	var out []model.DeploymentTarget
	all := field(v, "deploymentTargets")
	if all.Exists() && isUnknown(all) {
		x.read.unknown(all, model.Ref{Collection: "workloads", Name: w.Name, Path: "deploymentTargets"})
	}
	for name, of := range fields(all) {
		ref := w.TargetRef(name)
		x.note(of, ref)
		if x.faulty(ref) {
			continue // reported with its workload
		}
		if isUnknown(of) {
			x.read.unknown(of, ref)
			continue
		}
		if t, in, ok := x.target(of, w, ref); ok {
			x.found.uses = append(x.found.uses, Use{ref.At("environment"), in, x.published[w.Name]})
			if in == environment {
				out = append(out, t)
			} else {
				x.checkPlace(t.FullName, in, environment, ref)
			}
		}
	}
	slices.SortFunc(out, func(a, b model.DeploymentTarget) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// checkPlace warns of a deployment target that is written in the folder of an
// environment that it is not for: its own does not see it.
func (x *exporter) checkPlace(fullName, of, environment string, ref model.Ref) {
	at := x.positions.Of(ref)
	hidden := len(at) > 0 && !slices.ContainsFunc(at, func(p model.Position) bool {
		return !strings.HasPrefix(p.File, source.Environments+"/"+environment+"/")
	})
	if hidden {
		x.report(diag.New(diag.Unassigned, fmt.Sprintf("deployment target %s is for environment %s, which does not load the files of %s", fullName, of, environment)).
			At(ref, "").On(ref.String()).Hinting(fmt.Sprintf("move it to a file at the platform's root or in %s/%s", source.Environments, of)))
	}
}

func (x *exporter) target(v cue.Value, w *model.Workload, ref model.Ref) (model.DeploymentTarget, string, bool) {
	before := len(x.ds)
	value, ok := x.read.entity(v, ref, "requires", "manifests")
	chart, good := x.trees.chartValues(v, ref)
	manifests, whole := x.manifests(v, ref)
	render, _ := field(v, "render").Bool()
	x.checkVerify(&manifests, render, ref.At("manifests"))
	if !ok || !good || !whole || diag.Errors(x.ds[before:]) {
		return model.DeploymentTarget{}, "", false
	}
	var t struct {
		model.DeploymentTarget
		Environment string `json:"environment"`
		Enforce     string `json:"enforce"`
	}
	decode(value, &t)
	t.FullName, t.Chart, t.Manifests = model.FullName(w.Name, t.Name), chart, manifests
	x.checkLabels(t.Labels, ref.At("labels"))
	labels := map[string]string{}
	for _, side := range []map[string]string{w.Labels, t.Labels} {
		for k, l := range side {
			labels[k] = l
		}
	}
	t.Labels = labels
	if r := field(v, "requires"); r.Exists() {
		if t.Requires = x.contracts.contract(r, ref.At("requires"), t.Enforce); t.Requires == nil {
			return model.DeploymentTarget{}, "", false
		}
	}
	return t.DeploymentTarget, t.Environment, true
}

func (x *exporter) schedulingPolicies() []model.SchedulingPolicy {
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
func (x *exporter) excepts(v cue.Value, ref model.Ref, p *model.SchedulingPolicy) bool {
	of := field(v, "except")
	if !of.Exists() {
		return true
	}
	ok := true
	pair := func(v cue.Value, at model.Ref) {
		e := model.Except{Path: at.Path}
		ok = x.side(v, at, "deploymentTargets", &e.DeploymentTargets) && ok
		ok = x.side(v, at, "clusterTypes", &e.ClusterTypes) && ok
		if e.DeploymentTargets.Op == model.OpAll && e.ClusterTypes.Op == model.OpAll {
			x.fail(at, diag.New(diag.ExceptNothing, at.Path+" leaves out every pair of policy "+p.Name).
				Hinting("give it a selector of deploymentTargets, clusterTypes or both, or remove the policy"))
			ok = false
		}
		p.Except = append(p.Except, e)
	}
	if at := ref.At("except"); of.IncompleteKind() == cue.ListKind {
		before := len(x.ds)
		x.read.elements(v, ref, "except", pair)
		ok = ok && !diag.Errors(x.ds[before:])
	} else {
		x.note(of, at)
		pair(of, at)
	}
	return ok
}

// side compiles one selector of a policy; an absent one selects all.
func (x *exporter) side(v cue.Value, ref model.Ref, name string, into *model.Selector) bool {
	s := field(v, name)
	if !s.Exists() {
		*into = model.Selector{Op: model.OpAll}
		return true
	}
	var ok bool
	*into, ok = x.selectors.selector(s, ref.At(name), true)
	return ok
}

func (x *exporter) namespaceServices() []model.NamespaceService {
	out := []model.NamespaceService{}
	x.each("namespaceServices", func(v cue.Value, ref model.Ref) {
		s := model.NamespaceService{Name: ref.Name}
		pattern := field(v, "pattern")
		s.HasPattern = pattern.Exists()
		s.Facts = factsOf(v, dependentParts(v)...)
		s.PatternFacts = factsOf(v, pattern)
		if x.usesFact(ref, "namespace", "the pattern makes it", pattern) || x.usesFact(ref, "values", "they are composed for the namespace", pattern) ||
			x.usesFact(ref, "rendered", "the namespace is what charts render with", pattern) {
			return
		}
		if s.Facts == nil {
			value, ok := x.read.entity(v, ref)
			if !ok {
				return
			}
			s.Spec = &value
		} else {
			x.noteAll(v, ref)
		}
		out = append(out, s)
	})
	ref := model.Ref{Collection: "namespaceServices", Name: defaultNamespaceService}
	if !slices.ContainsFunc(out, func(s model.NamespaceService) bool { return s.Name == defaultNamespaceService }) &&
		!x.invalid[ref] && (x.wants == nil || x.wants(ref)) {
		out = append(out, x.defaultNamespaceService())
		slices.SortFunc(out, func(a, b model.NamespaceService) int { return strings.Compare(a.Name, b.Name) })
	}
	return out
}

// dependentParts are what of an entity may be a function of the assignment: its
// regular fields, and itself where it is unknown which those are.
func dependentParts(v cue.Value) []cue.Value {
	var out []cue.Value
	if isUnknown(v) {
		out = append(out, v)
	}
	for _, of := range fields(v) {
		out = append(out, of)
	}
	return out
}

func (x *exporter) reconcilers() []model.Reconciler {
	var out []model.Reconciler
	group := entityShape("reconcilers").oneOf[0]
	x.each("reconcilers", func(v cue.Value, ref model.Ref) {
		r := model.Reconciler{Name: ref.Name}
		for _, backend := range group {
			if field(v, backend).Exists() {
				r.Backend = backend
			}
		}
		r.Facts = factsOf(v, dependentParts(v)...)
		if r.Facts == nil {
			value, ok := x.read.entity(v, ref)
			if !ok {
				return
			}
			r.Spec, _ = value.Lookup(r.Backend)
		} else {
			x.noteAll(v, ref)
		}
		out = append(out, r)
	})
	return out
}
