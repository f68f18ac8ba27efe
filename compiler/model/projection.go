package model

import (
	"slices"
	"strings"
)

// Projection is what a chart, an overlay or a folder of manifests renders to.
type Projection struct {
	// Objects are Kubernetes objects in the order of their application, with the
	// CRDs first.
	Objects []Projected
	// Files are those of an Ansible playbook's repository, by path, sorted.
	Files []ProjectedFile
	// Revision is what was rendered: a commit, a chart's version, or the digest of
	// an OCI manifest, as kalypso.lock has it.
	Revision string
}

// Projected is an object of a projection: a struct.
type Projected struct {
	Value Value
	// Hooks are the hooks of Helm that the object is for, such as "pre-install",
	// sorted; none for an ordinary object.
	Hooks []string
	// Unstable says why two renders of a chart differ in the object; "" where they do
	// not. Only a hook that is not Applied has it, and nobody may write such a hook.
	Unstable string
}

// Applied says whether an installation or an upgrade of a chart applies the object:
// each that is no hook, and hooks of these. Hooks of tests, deletions and rollbacks
// come later, if ever.
func (o Projected) Applied() bool {
	return len(o.Hooks) == 0 || slices.ContainsFunc(o.Hooks, func(hook string) bool {
		return strings.HasSuffix(hook, "-install") || strings.HasSuffix(hook, "-upgrade")
	})
}

// ProjectedFile is a file of a projection. Its path is relative, with slashes.
type ProjectedFile struct {
	Path       string
	Data       []byte
	Executable bool
}
