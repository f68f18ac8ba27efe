package delivery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/internal/files"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The files that backends name.
const (
	ReconcilerFile  = "reconciler.yaml"
	AssignmentsFile = backends.AssignmentsFile
)

// Content is what a backend puts into an assignment's folder beside the workspace.
type Content struct {
	// Reconciler are the objects of reconciler.yaml, of which there is none without
	// them.
	Reconciler []kubernetes.Object
	// Access is what a service account may do as which the reconciler applies what it
	// fetches; nil for none.
	Access *kubernetes.Access
	// Elsewhere says that they go to another cluster than the workspace, so that
	// kustomization.yaml does not list them.
	Elsewhere bool
	// Manifests are the objects of manifests.yaml.
	Manifests []model.Projected
	// Apart is a folder in the assignment's that has manifests.yaml, where an object of
	// Reconciler applies it; "" where it is applied with the folder.
	Apart string
	// NamespaceAnnotations are further annotations of the objects of the workspace,
	// ConfigAnnotations those of its platform config.
	NamespaceAnnotations, ConfigAnnotations map[string]string
}

// Emission returns the assignment's folder: its workspace on the cluster, the
// files of its namespace service, what was rendered for it, and the reconciler's
// objects. kustomization.yaml lists what is applied with the folder.
func Emission(a *backends.Assignment, c Content) (backends.Emission, []diag.Diagnostic) {
	workspace, objects, ds := kubernetes.AnnotatedWorkspace(a, c.NamespaceAnnotations, c.ConfigAnnotations)
	manifests, rendered, problems := kubernetes.Manifests(a, c.Manifests)
	ds = append(append(ds, problems...), Twice(a, objects, rendered)...)
	if diag.Errors(ds) {
		return backends.Emission{}, ds
	}
	folder := files.Files{Files: workspace, Objects: append(objects, rendered...)}
	for _, f := range workspace {
		folder.Resources = append(folder.Resources, f.Path)
	}
	for _, f := range c.apart(manifests) {
		folder.Add(f, nil, c.Apart == "")
	}
	if c.Access != nil {
		file, identities := c.Access.File(a)
		folder.Add(file, identities, true)
	}
	if len(c.Reconciler) > 0 {
		var identities []backends.Object
		for _, o := range c.Reconciler {
			identities = append(identities, o.Identity())
		}
		folder.Add(backends.File{Path: ReconcilerFile, Data: yaml.Must(objectsOf(c.Reconciler)...)}, identities, !c.Elsewhere)
	}
	folder.Add(backends.File{Path: kubernetes.KustomizationFile}, nil, false) // its place is taken
	ds = append(ds, folder.OfService(a)...)
	if ds = append(ds, folder.Twice(a.NamespaceService.Ref)...); diag.Errors(ds) {
		return backends.Emission{}, ds
	}
	for i := range folder.Files {
		if folder.Files[i].Path == kubernetes.KustomizationFile {
			folder.Files[i] = Kustomization(folder.Resources)
		}
	}
	return backends.Emission{Files: folder.Files, Objects: folder.Objects}, ds
}

// apart puts the files of manifests into the folder that they are applied from.
func (c *Content) apart(manifests []backends.File) []backends.File {
	if c.Apart == "" {
		return manifests
	}
	var names []string
	out := make([]backends.File, 0, len(manifests)+1)
	for _, f := range manifests {
		names = append(names, f.Path)
		f.Path = c.Apart + "/" + f.Path
		out = append(out, f)
	}
	list := Kustomization(names)
	list.Path = c.Apart + "/" + list.Path
	return append(out, list)
}

func objectsOf(objects []kubernetes.Object) []any {
	docs := make([]any, len(objects))
	for i := range objects {
		docs[i] = objects[i]
	}
	return docs
}

// Sorted returns the files sorted by path.
func Sorted(files []backends.File) []backends.File {
	slices.SortFunc(files, func(f, g backends.File) int { return strings.Compare(f.Path, g.Path) })
	return files
}

// Kustomization returns the kustomization.yaml that lists resources.
func Kustomization(resources []string) backends.File {
	file, err := kubernetes.Kustomization(resources)
	if err != nil {
		panic(fmt.Sprintf("delivery: writing a kustomization: %v", err))
	}
	return file
}

// Entry returns the kustomization.yaml of a cluster's entry: it has what the folder that the
// cluster follows has, and other resources of the entry.
func Entry(ct *backends.ClusterType, resources ...string) backends.File {
	return Kustomization(append([]string{FromEntry(ct)}, resources...))
}

// FromEntry returns the path of the folder that a cluster follows, from the cluster's entry.
func FromEntry(ct *backends.ClusterType) string { return "../../../" + ct.Dir() }

// NoEntries returns the diagnostic that the clusters of a cluster type cannot have entries.
func NoEntries(ct *backends.ClusterType, why string) []diag.Diagnostic {
	return []diag.Diagnostic{diag.New(diag.NoEntries,
		fmt.Sprintf("clusters of cluster type %s cannot have entries of their own: %s", ct.Name, why)).
		At(ct.Ref.At("entries"), "").At(ct.Reconciler.Ref, "").On(ct.Ref.At("entries").String()).
		Hinting("give the clusters that differ a cluster type of their own, and remove entries")}
}

// ClusterTypeMeta returns the metadata of an object that belongs to a cluster
// type, not to one of its assignments.
func ClusterTypeMeta(name, namespace string) kubernetes.Metadata {
	return kubernetes.Metadata{
		Name: name, Namespace: namespace,
		Labels: map[string]string{"app.kubernetes.io/managed-by": "kalypso"},
	}
}

// AssignmentMeta returns the metadata of the object in assignments.yaml that
// brings a folder to the cluster.
func AssignmentMeta(ct *backends.ClusterType, f backends.Folder, namespace string) kubernetes.Metadata {
	a := &backends.Assignment{Environment: ct.Environment, ClusterType: ct.Name,
		DeploymentTarget: f.DeploymentTarget, Workload: f.Workload, Workspace: f.Workspace, Namespace: f.Namespace}
	return kubernetes.Meta(a, backends.AssignmentName(ct.Environment, ct.Name, f.DeploymentTarget), namespace)
}

// Owner is who wants an object to have a name.
type Owner struct {
	Name string // the object's
	Of   string // what the object is, for messages
	// Assignment that the object belongs to; "" for none.
	Assignment string
}

// Collisions returns an error for each two owners of one name.
func Collisions(ct *backends.ClusterType, owners []Owner) []diag.Diagnostic {
	var ds []diag.Diagnostic
	first := map[string]Owner{}
	for _, o := range owners {
		p, taken := first[o.Name]
		if !taken {
			first[o.Name] = o
			continue
		}
		d := diag.New(diag.NameCollision,
			fmt.Sprintf("%s and %s of cluster type %s would both be named %s", p.Of, o.Of, ct.Name, o.Name)).
			At(ct.Ref, "").Hinting("rename one of them")
		for _, id := range []string{p.Assignment, o.Assignment} {
			if id != "" {
				d = d.For(id)
			}
		}
		ds = append(ds, d)
	}
	return ds
}

// FolderID returns the assignment of a folder as its assignment's ID does.
func FolderID(ct *backends.ClusterType, deploymentTarget string) string {
	return ct.Environment + "/" + ct.Dir() + "/" + deploymentTarget
}
