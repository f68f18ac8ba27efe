package export

import (
	"cuelang.org/go/cue"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/evaluate/internal/cuevalue"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// manifests exports where a deployment target's manifests are, without the values
// of a chart, which need not be data yet.
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
		ok = x.checkAnonymous(value, at)
	}
	return m, ok
}

// checkVerify reports sources that are to be verified and cannot be, whether they are
// assigned or not.
func (x *Exporter) checkVerify(m *model.Manifests, rendered bool, ref model.Ref) {
	locked := func(at string) {
		x.Fail(ref.At(at+".verify"), diag.New(diag.Unverifiable, "what is rendered is fetched by `kalypso lock`, which verifies no signatures").
			Hinting("remove verify, or let the reconciler fetch and verify the source: remove render"))
	}
	git := func(g *model.Git, at string) {
		if rendered && g != nil && g.Verify != nil {
			locked(at)
		} else if g.VerifiesNothing() {
			x.Fail(ref.At(at+".verify"), diag.New(diag.Unverifiable, "only a pinned tag can be verified").Hinting("pin the source with tag, or remove verify"))
		}
	}
	oci := func(o *model.OCI, at string) {
		if rendered && o != nil && o.Verify != nil {
			locked(at)
		} else if o.VerifiesNothing() {
			x.Fail(ref.At(at+".verify"), diag.New(diag.Unverifiable, "only a pinned tag or digest can be verified").Hinting("pin the source with tag or digest, or remove verify"))
		}
	}
	git(m.Git, "git")
	oci(m.OCI, "oci")
	if m.Kustomize != nil {
		git(m.Kustomize.Git, "kustomize.git")
		oci(m.Kustomize.OCI, "kustomize.oci")
	}
	if m.Ansible != nil {
		git(m.Ansible.Git, "ansible.git")
	}
}

// checkAnonymous reports sources that need no credentials, and name a secret.
func (x *Exporter) checkAnonymous(v model.Value, ref model.Ref) bool {
	ok := true
	anonymous, _ := v.Lookup("anonymous")
	if _, named := v.Lookup("secretRef"); named && anonymous.Text() == "true" {
		ok = false
		x.Fail(ref, diag.New(diag.NotAllowed, "the source is anonymous, and names a secret with its credentials").
			At(ref, "").On(ref.String()).Hinting("remove secretRef, or anonymous"))
	}
	for _, f := range v.Fields() {
		if f.Value.Kind() == model.Struct && f.Name != "values" && f.Name != "vars" {
			ok = x.checkAnonymous(f.Value, ref.At(f.Name)) && ok
		}
	}
	return ok
}
