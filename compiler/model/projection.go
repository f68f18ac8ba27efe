package model

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
}

// ProjectedFile is a file of a projection. Its path is relative, with slashes.
type ProjectedFile struct {
	Path       string
	Data       []byte
	Executable bool
}
