package schedule

import "github.com/kalypso-io/kalypso/compiler/model"

// revisions are the fields that select the revision of a source; a source has one of them.
var revisions = []string{"branch", "tag", "semver", "commit", "digest"}

// revisionSlot replaces all of them in the path of a slot.
const revisionSlot = "revision"

// pinnable returns the fields that a pin can replace, by their path in it. These are the
// fields of schema.#Pin, if the manifests have the source.
func pinnable(version *string, m *model.Manifests) map[string]*string {
	fields := map[string]*string{"version": version}
	addGit(fields, "manifests.git.", m.Git)
	addOCI(fields, "manifests.oci.", m.OCI)
	if h := m.Helm; h != nil {
		addGit(fields, "manifests.helm.git.", h.Git)
		if h.Version != "" {
			fields["manifests.helm.version"] = &h.Version
		}
	}
	if k := m.Kustomize; k != nil {
		addGit(fields, "manifests.kustomize.git.", k.Git)
		addOCI(fields, "manifests.kustomize.oci.", k.OCI)
		// The overlay has the path, and its source does not have one.
		delete(fields, "manifests.kustomize.git.path")
		delete(fields, "manifests.kustomize.oci.path")
		fields["manifests.kustomize.path"] = &k.Path
	}
	return fields
}

func addGit(fields map[string]*string, path string, g *model.Git) {
	if g == nil {
		return
	}
	fields[path+"repo"] = &g.Repo
	fields[path+"branch"] = &g.Branch
	fields[path+"tag"] = &g.Tag
	fields[path+"semver"] = &g.Semver
	fields[path+"commit"] = &g.Commit
	fields[path+"path"] = &g.Path
}

func addOCI(fields map[string]*string, path string, o *model.OCI) {
	if o == nil {
		return
	}
	fields[path+"url"] = &o.URL
	fields[path+"tag"] = &o.Tag
	fields[path+"semver"] = &o.Semver
	fields[path+"digest"] = &o.Digest
	fields[path+"path"] = &o.Path
}

// copyManifests returns a copy of manifests for a pin. The fields that pinnable returns are
// copied, so the pin may change them; the other fields are shared.
func copyManifests(m model.Manifests) model.Manifests {
	m.Git, m.OCI, m.Helm, m.Kustomize = clone(m.Git), clone(m.OCI), clone(m.Helm), clone(m.Kustomize)
	if m.Helm != nil {
		m.Helm.Git = clone(m.Helm.Git)
	}
	if m.Kustomize != nil {
		m.Kustomize.Git, m.Kustomize.OCI = clone(m.Kustomize.Git), clone(m.Kustomize.OCI)
	}
	return m
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
