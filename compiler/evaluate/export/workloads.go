package export

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/check"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
)

// Workloads exports the workloads, with their deployment targets of the environment.
func (x *Exporter) Workloads(environment string) []model.Workload {
	return entities(x, "workloads", func(v cue.Value, ref model.Ref) (model.Workload,
		bool) {
		var w struct {
			model.Workload
			Enforce string `json:"enforce"`
		}
		if x.Faulty(ref, "deploymentTargets") ||
			!x.read.decode(&w, v, ref, "deploymentTargets", "requires", "manifests") {
			return w.Workload, false
		}
		if w.Application == "" {
			w.Application = w.Name
		}
		x.checkLabels(w.Labels, ref.At("labels"))
		if r := cuevalue.Field(v, "requires"); r.Exists() {
			if w.Requires = x.contracts.contract(r, ref.At("requires"), w.Enforce); w.Requires == nil {
				return w.Workload, false
			}
		}
		var ok bool
		if w.Chart, ok = x.trees.chartValues(v, ref); !ok {
			return w.Workload, false
		}
		w.Targets = x.targets(v, &w.Workload, environment)
		return w.Workload, true
	})
}

// targets exports a workload's deployment targets of the environment. An invalid target does
// not affect the others.
func (x *Exporter) targets(v cue.Value, w *model.Workload,
	environment string) []model.DeploymentTarget {
	var out []model.DeploymentTarget
	all := cuevalue.Field(v, "deploymentTargets")
	if all.Exists() && cuevalue.IsUnknown(all) {
		x.read.unknown(all, model.Ref{Collection: "workloads", Name: w.Name, Path: "deploymentTargets"})
	}
	for name, of := range cuevalue.Fields(all) {
		ref := w.TargetRef(name)
		x.note(of, ref)
		if x.Faulty(ref) {
			continue // reported with its workload
		}
		if cuevalue.IsUnknown(of) {
			x.read.unknown(of, ref)
			continue
		}
		if t, in, ok := x.target(of, w, ref); ok {
			x.Found.Uses = append(x.Found.Uses,
				check.Use{Ref: ref.At("environment"), Name: in, Elsewhere: x.Published[w.Name]})
			if in == environment {
				out = append(out, t)
			}
		}
	}
	slices.SortFunc(out,
		func(a, b model.DeploymentTarget) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// target exports a deployment target, and returns the name of its environment.
func (x *Exporter) target(v cue.Value, w *model.Workload, ref model.Ref) (model.DeploymentTarget,
	string, bool) {
	before := len(x.Diagnostics)
	value, ok := x.read.entity(v, ref, "requires", "manifests")
	chart, good := x.trees.chartValues(v, ref)
	manifests, whole := x.manifests(v, ref)
	render, _ := cuevalue.Field(v, "render").Bool()
	x.checkVerify(&manifests, render, ref.At("manifests"))
	if !ok || !good || !whole || diag.Errors(x.Diagnostics[before:]) {
		return model.DeploymentTarget{}, "", false
	}
	var t struct {
		model.DeploymentTarget
		Environment string `json:"environment"`
		Enforce     string `json:"enforce"`
	}
	decode(value, &t)
	t.FullName, t.Chart, t.Manifests = model.FullName(w.Name, t.Name), chart, manifests
	t.Render = t.Render || manifests.Helm != nil && manifests.Helm.Path != ""
	x.checkLabels(t.Labels, ref.At("labels"))
	labels := map[string]string{}
	maps.Copy(labels, w.Labels)
	maps.Copy(labels, t.Labels)
	t.Labels = labels
	if r := cuevalue.Field(v, "requires"); r.Exists() {
		if t.Requires = x.contracts.contract(r, ref.At("requires"), t.Enforce); t.Requires == nil {
			return model.DeploymentTarget{}, "", false
		}
	}
	return t.DeploymentTarget, t.Environment, true
}

// impliedKeys are facts whose names are not allowed as names of labels.
var impliedKeys = []string{"environment", "workspace", "workload", "deploymentTarget",
	"clusterType"}

func (x *Exporter) checkLabels(labels map[string]string, ref model.Ref) {
	for _, key := range impliedKeys {
		if _, there := labels[key]; there {
			at := ref.At(model.Label(key))
			x.Fail(at, diag.New(diag.ImpliedLabel,
				"label "+key+" is named like an implied key").On(at.String()).
				Hinting("give the label another name"))
		}
	}
}

// manifests exports the source of a deployment target's manifests. It leaves out the values of
// a chart, which may not be data yet.
func (x *Exporter) manifests(target cue.Value, ref model.Ref) (m model.Manifests, ok bool) {
	of := cuevalue.Field(target, "manifests")
	at := ref.At("manifests")
	x.note(of, at)
	value, ok := x.read.entity(of, at, "helm")
	if helm := cuevalue.Field(of, "helm"); helm.Exists() {
		x.note(helm, at.At("helm"))
		chart, good := x.read.entity(helm, at.At("helm"), "values", "defaults")
		ok = ok && good
		value = model.StructOf(append(value.Fields(), model.Field{Name: "helm", Value: chart})...)
	}
	if ok {
		decode(value, &m)
		ok = x.checkAnonymous(value, at) && (m.Helm == nil ||
			x.chart(m.Helm, cuevalue.Field(of, "helm"), at.At("helm")))
	}
	return m, ok
}

// chart checks that a chart has a version exactly if its source has versions. It names the files of
// a chart in the platform's folder from the platform's root.
func (x *Exporter) chart(h *model.Helm, v cue.Value, at model.Ref) bool {
	before := len(x.Diagnostics)
	versions := h.Git == nil && h.Path == ""
	switch {
	case versions && h.Version == "":
		x.Fail(at, x.At(diag.New(diag.Missing, "required field version is missing"), v).
			On(at.At("version").String()).
			Hinting(`name a version of the chart, or a range of versions: version: "..."`))
	case !versions && h.Version != "":
		x.Fail(at.At("version"), diag.New(diag.NotAllowed,
			"the chart of a folder has the version that its Chart.yaml says, and no other").
			On(at.At("version").String()).
			Hinting("remove version; a commit, a tag or a branch says which chart of a git repository"))
	case !versions && h.Chart != "":
		x.Fail(at.At("chart"), diag.New(diag.NotAllowed,
			"chart names a chart of a chart repository or an OCI registry, and this one is in a folder").
			On(at.At("chart").String()).Hinting("name the folder with path, and remove chart"))
	}
	if !versions && (h.SecretRef != "" || h.Anonymous) {
		x.Fail(at, x.At(diag.New(diag.NotAllowed,
			"secretRef and anonymous are for a chart repository or an OCI registry, and this chart is in "+
				"a folder"), v).On(at.String()).
			Hinting("write them into git, or remove them: kalypso reads the platform's own folder"))
	}
	if h.Path != "" {
		named := cuevalue.Field(v, "path")
		h.Path = x.fileOf(h.Path, named, at.At("path"))
		files := cuevalue.Field(v, "valuesFiles")
		for i := range h.ValuesFiles {
			of := files.LookupPath(cue.MakePath(cue.Index(i)))
			h.ValuesFiles[i] = x.fileOf(h.ValuesFiles[i], of, at.At(fmt.Sprintf("valuesFiles[%d]", i)))
		}
	}
	return !diag.Errors(x.Diagnostics[before:])
}

// fileOf returns the name of a file or folder of the platform from its root. In v, it is named
// from the folder of the CUE file.
func (x *Exporter) fileOf(name string, v cue.Value, at model.Ref) string {
	fromRoot, ok := source.NamedFrom(x.Written(v), name)
	if !ok {
		x.Fail(at, diag.New(diag.NotAllowed, name+" is named in several folders").On(at.String()).
			Hinting("it is found from the folder of the CUE file that names it: name it in one"))
	}
	return fromRoot
}

// checkVerify reports sources that must be verified and cannot be. It also reports sources that
// are not assigned.
func (x *Exporter) checkVerify(m *model.Manifests, rendered bool, ref model.Ref) {
	locked := func(at string) {
		x.Fail(ref.At(at+".verify"),
			diag.New(diag.Unverifiable,
				"what is rendered is fetched by `kalypso lock`, which verifies no signatures").
				Hinting("remove verify, or let the reconciler fetch and verify the source: remove render"))
	}
	git := func(g *model.Git, at string) {
		if rendered && g != nil && g.Verify != nil {
			locked(at)
		} else if g.VerifiesNothing() {
			x.Fail(ref.At(at+".verify"),
				diag.New(diag.Unverifiable,
					"only a pinned tag can be verified").Hinting("pin the source with tag, or remove verify"))
		}
	}
	oci := func(o *model.OCI, at string) {
		if rendered && o != nil && o.Verify != nil {
			locked(at)
		} else if o.VerifiesNothing() {
			x.Fail(ref.At(at+".verify"),
				diag.New(diag.Unverifiable,
					"only a pinned tag or digest can be verified").Hinting("pin the source with tag or digest, "+
					"or remove verify"))
		}
	}
	git(m.Git, "git")
	oci(m.OCI, "oci")
	if m.Helm != nil {
		git(m.Helm.Git, "helm.git")
	}
	if m.Kustomize != nil {
		git(m.Kustomize.Git, "kustomize.git")
		oci(m.Kustomize.OCI, "kustomize.oci")
	}
	if m.Ansible != nil {
		git(m.Ansible.Git, "ansible.git")
	}
}

// checkAnonymous reports sources that need no credentials, but name a secret.
func (x *Exporter) checkAnonymous(v model.Value, ref model.Ref) bool {
	ok := true
	anonymous, _ := v.Lookup("anonymous")
	if _, named := v.Lookup("secretRef"); named && anonymous.Text() == "true" {
		ok = false
		x.Fail(ref, diag.New(diag.NotAllowed,
			"the source is anonymous, and names a secret with its credentials").
			At(ref, "").On(ref.String()).Hinting("remove secretRef, or anonymous"))
	}
	for _, f := range v.Fields() {
		if f.Value.Kind() == model.Struct && f.Name != "values" && f.Name != "vars" {
			ok = x.checkAnonymous(f.Value, ref.At(f.Name)) && ok
		}
	}
	return ok
}
