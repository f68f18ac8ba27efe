package delivery

import (
	"cmp"
	"encoding/json"
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

// Content is a backend's content for an assignment's folder, in addition to the workspace.
type Content struct {
	// Reconciler are the objects of reconciler.yaml. Without objects, the folder has no such file.
	Reconciler []kubernetes.Object
	// Access is the service account that the reconciler uses for fetched objects, with its
	// permissions; nil if the assignment has none of its own.
	Access *kubernetes.Access
	// Elsewhere says that the objects of Reconciler go to a different cluster from the workspace,
	// so that kustomization.yaml does not list them.
	Elsewhere bool
	// Manifests are the objects of manifests.yaml.
	Manifests []model.Projected
	// Apart is a subfolder for manifests.yaml, which an object of Reconciler applies; "" if
	// it is applied with the folder.
	Apart string
	// NamespaceAnnotations are further annotations of the objects of the workspace.
	// ConfigAnnotations are further annotations of its platform config.
	NamespaceAnnotations, ConfigAnnotations map[string]string
}

// kustomizationHints are Twice's for a folder that one kustomization lists.
var kustomizationHints = map[string]string{"ServiceAccount": "let the manifests use the one of " +
	"the namespace service, or give that another name with serviceAccount: name"}

// Emission returns the assignment's folder: its workspace on the cluster, the files of its
// namespace service, its rendered manifests, and the reconciler's objects.
// kustomization.yaml lists everything that is applied with the folder.
func Emission(a *backends.Assignment, c Content) (backends.Emission, []diag.Diagnostic) {
	workspace, objects,
		ds := kubernetes.AnnotatedWorkspace(a, c.NamespaceAnnotations, c.ConfigAnnotations)
	manifests, rendered, problems := kubernetes.Manifests(a, c.Manifests)
	ds = append(append(ds, problems...), Twice(a, objects, rendered, kustomizationHints)...)
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
		var docs []any
		var identities []backends.Object
		for _, o := range c.Reconciler {
			docs, identities = append(docs, o), append(identities, o.Identity())
		}
		folder.Add(backends.File{Path: ReconcilerFile, Data: yaml.Must(docs...)}, identities,
			!c.Elsewhere)
	}
	folder.Add(backends.File{Path: kubernetes.KustomizationFile}, nil, false) // its place is taken
	ds = append(ds, folder.OfService(a)...)
	if ds = append(ds, folder.Twice(a.NamespaceService.Ref)...); diag.Errors(ds) {
		return backends.Emission{}, ds
	}
	for i := range folder.Files {
		if folder.Files[i].Path == kubernetes.KustomizationFile {
			folder.Files[i] = kubernetes.Kustomization(folder.Resources)
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
	list := kubernetes.Kustomization(names)
	list.Path = c.Apart + "/" + list.Path
	return append(out, list)
}

// Finish ends the Emit of a backend. It names the assignment in each diagnostic, sorts the files by
// path, and returns no emission with an error. shared is the data of the folder that Index needs,
// or nil. It contains only differences from the usual case, because the provenance record has it
// once for each assignment. If all fields of shared are empty, Shared is nil.
func Finish(a *backends.Assignment, e backends.Emission, shared any,
	ds []diag.Diagnostic) (backends.Emission, []diag.Diagnostic) {
	for i := range ds {
		ds[i] = ds[i].For(a.ID())
	}
	if diag.Errors(ds) {
		return backends.Emission{}, ds
	}
	Sorted(e.Files)
	if shared != nil {
		encoded, err := json.Marshal(shared)
		if err != nil {
			panic(fmt.Sprintf("delivery: writing a %T: %v", shared, err)) // it is made of strings and bools
		}
		if string(encoded) != "{}" {
			e.Shared = encoded
		}
	}
	return e, ds
}

// SharedOf returns the data that Finish received for a folder of the backend. It returns the zero
// value if another backend made the folder, or if the record is damaged. Index then treats a folder
// with a damaged record as a usual one.
func SharedOf[T any](f backends.Folder, backend string) T {
	var shared, none T
	if f.Backend != backend || len(f.Shared) == 0 || json.Unmarshal(f.Shared, &shared) != nil {
		return none
	}
	return shared
}

// Sorted returns the files sorted by path.
func Sorted(files []backends.File) []backends.File {
	slices.SortFunc(files, func(f, g backends.File) int { return strings.Compare(f.Path, g.Path) })
	return files
}

// FolderList returns the kustomization.yaml that lists folders, in their order.
func FolderList(folders []backends.Folder) backends.File {
	names := make([]string, len(folders))
	for i, f := range folders {
		names[i] = f.DeploymentTarget
	}
	return kubernetes.Kustomization(names)
}

// Entry returns the kustomization.yaml of a cluster's entry. It includes the content of the folder
// that the cluster follows, and other resources of the entry.
func Entry(ct *backends.ClusterType, resources ...string) backends.File {
	return kubernetes.Kustomization(append([]string{FromEntry(ct)}, resources...))
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

// AssignmentMeta returns the metadata of the object in assignments.yaml that delivers a
// folder to the cluster.
func AssignmentMeta(ct *backends.ClusterType, f backends.Folder,
	namespace string) kubernetes.Metadata {
	a := &backends.Assignment{Environment: ct.Environment, ClusterType: ct.Name,
		DeploymentTarget: f.DeploymentTarget, Workload: f.Workload, Workspace: f.Workspace,
		Namespace: f.Namespace}
	return kubernetes.Meta(a, backends.AssignmentName(ct.Environment, ct.Name, f.DeploymentTarget),
		namespace)
}

// Owner is an assignment, or a part of the cluster type, that needs an object with a name.
type Owner struct {
	Name string // the object's
	Of   string // a description of the object, for messages
	// Assignment that the object belongs to; "" for an object of the cluster type.
	Assignment string
}

// Collisions returns an error for each pair of owners of the same name.
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

// Rendered returns the objects that the assignment's manifests render to.
func Rendered(a *backends.Assignment) []model.Projected {
	if a.Projection == nil {
		return nil
	}
	return kubernetes.Items(a.Projection.Objects)
}

// Twice returns an error for each object that is in both the namespace service and the rendered
// manifests. kustomize refuses a folder that has an object twice, and an object belongs to only one
// release of Helm. hints has further ways out by kind of object.
func Twice(a *backends.Assignment, workspace, rendered []backends.Object,
	hints map[string]string) []diag.Diagnostic {
	made := map[backends.Object]bool{}
	for _, o := range workspace {
		made[o] = true
	}
	var ds []diag.Diagnostic
	for _, o := range rendered {
		if !made[o] {
			continue
		}
		hint := cmp.Or(hints[o.Kind],
			"leave it out of one of them, or give it another name in one of them")
		d := diag.New(diag.NameCollision,
			fmt.Sprintf("the namespace service and the rendered manifests of %s both create %s %s",
				a.DeploymentTarget, o.Kind, o.Name)).
			At(a.Ref.At("manifests"), "").At(a.NamespaceService.Ref, "").Hinting(hint).For(a.ID())
		ds = append(ds, d)
	}
	return ds
}

// Hooks returns a warning that names the rendered hooks of Helm and of Argo CD. It lists hooks that
// are applied as ordinary objects, and hooks that are left out. It returns nil if there are no such
// hooks.
func Hooks(a *backends.Assignment, ordinary, left []model.Projected) []diag.Diagnostic {
	var parts []string
	if names := hooksAmong(ordinary); len(names) > 0 {
		parts = append(parts, "applied as ordinary objects: "+kubernetes.Few(names))
	}
	if names := hooksAmong(left); len(names) > 0 {
		parts = append(parts, "left out: "+kubernetes.Few(names))
	}
	if parts == nil {
		return nil
	}
	var hints []string
	argo, others := kubernetes.Split(slices.Concat(ordinary, left), kubernetes.IsArgoHook)
	if slices.ContainsFunc(others, kubernetes.IsHook) {
		hints = append(hints, "let the reconciler fetch the chart where its hooks matter: remove "+
			"render: true from the deployment target")
	}
	if len(argo) > 0 {
		hints = append(hints,
			"only Argo CD runs its own hooks: deliver the workload with it, or remove "+
				kubernetes.ArgoHookAnnotation)
	}
	return []diag.Diagnostic{diag.New(diag.Hook,
		"hooks among the rendered manifests of "+a.DeploymentTarget+" are "+strings.Join(parts, "; ")).
		On("manifests").At(a.Ref.At("manifests"), "").
		Hinting(strings.Join(hints, "; ")).For(a.ID())}
}

func hooksAmong(objects []model.Projected) []string {
	var out []string
	for _, o := range objects {
		if !kubernetes.IsHook(o) {
			continue
		}
		events := strings.Join(o.Hooks, ", ")
		if events == "" {
			events = kubernetes.Annotation(o.Value, kubernetes.HelmHookAnnotation)
		}
		if events == "" {
			events = kubernetes.Annotation(o.Value, kubernetes.ArgoHookAnnotation)
		}
		kind, name := kubernetes.Text(o.Value, "kind"), kubernetes.Text(o.Value, "metadata", "name")
		out = append(out, fmt.Sprintf("%s %s (%s)", kind, name, events))
	}
	return out
}

// SameOnAll warns if a rendered chart contains the platform's values and clusters have values of
// their own. Such values reach only the platform config.
func SameOnAll(a *backends.Assignment) []diag.Diagnostic {
	own := slices.ContainsFunc(a.Clusters,
		func(c model.Cluster) bool { return len(c.ValuesOf(a.DeploymentTarget).Fields()) > 0 })
	if h := a.Manifests.Helm; !a.Render || h == nil || h.PlatformValues == "" || !own {
		return nil
	}
	const field = "manifests.helm.platformValues"
	return []diag.Diagnostic{diag.New(diag.NoEffect, "a rendered chart is the same on all clusters: "+
		"their own values reach the platform config alone").
		On(field).At(a.Ref.At(field), "").Hinting("let the reconciler install the chart: remove " +
		"render: true from the deployment target")}
}
