package kubernetes

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The files that Workspace returns.
const (
	NamespaceFile      = "namespace.yaml"
	PlatformConfigFile = "platform-config.yaml"
)

// Workspace returns the files of the assignment's workspace, sorted, with the
// identities of their objects, in the files' order: namespace.yaml holds all
// that the namespace service asks for, and platform-config.yaml the ConfigMap
// "platform-config".
//
// What the namespace service or the values ask for and cannot be is a
// diagnostic about the assignment; with one of severity error the files are
// incomplete.
func Workspace(a *backends.Assignment) (files []backends.File, objects []backends.Object, ds []diag.Diagnostic) {
	return AnnotatedWorkspace(a, nil, nil)
}

// AnnotatedWorkspace is Workspace with further annotations, which the namespace
// service cannot replace: those of the objects in namespace.yaml, and those of the
// platform config.
func AnnotatedWorkspace(a *backends.Assignment, namespaceFile,
	platformConfig map[string]string) (files []backends.File, objects []backends.Object, ds []diag.Diagnostic) {
	w := &workspace{assignment: a, annotations: namespaceFile}
	if w.decode() {
		w.namespaceService()
		files = append(files, w.file(NamespaceFile))
		w.annotations = platformConfig
		w.platformConfig()
		files = append(files, w.file(PlatformConfigFile))
	}
	return files, w.objects, w.diagnostics()
}

// Namespace returns namespace.yaml of Workspace alone.
func Namespace(a *backends.Assignment) (file backends.File, objects []backends.Object, ds []diag.Diagnostic) {
	w := &workspace{assignment: a}
	if w.decode() {
		w.namespaceService()
		file = w.file(NamespaceFile)
	}
	return file, w.objects, w.diagnostics()
}

// PlatformConfig returns platform-config.yaml of Workspace alone.
func PlatformConfig(a *backends.Assignment) (file backends.File, objects []backends.Object, ds []diag.Diagnostic) {
	w := &workspace{assignment: a}
	w.platformConfig()
	return w.file(PlatformConfigFile), w.objects, w.diagnostics()
}

func (w *workspace) decode() bool {
	err := w.assignment.NamespaceService.Decode(&w.service)
	if err != nil {
		w.misfit("", "the namespace service cannot be read: %v", err)
	}
	return err == nil
}

// namespaceService adds all that the namespace service asks for.
func (w *workspace) namespaceService() {
	w.namespace()
	w.resourceQuota()
	w.limitRange()
	w.networkPolicies()
	w.serviceAccount()
	w.roleBindings()
	w.secrets()
	w.manifests()
}

// file returns a file with the objects that were added since the last one.
func (w *workspace) file(path string) backends.File {
	data, err := yaml.Marshal(w.docs...)
	if err != nil {
		w.misfit("", "%s cannot be written: %v", path, err)
	}
	w.docs = nil
	return backends.File{Path: path, Data: data}
}

// workspace collects the objects of an assignment's workspace.
type workspace struct {
	assignment  *backends.Assignment
	annotations map[string]string // of the objects that are added
	service     service
	docs        []any
	objects     []backends.Object
	ds          []diag.Diagnostic
}

// object is a document that knows which object it is.
type object interface{ Identity() backends.Object }

// add appends an object that the service asks for at a path. Two objects of one
// identity are a diagnostic: kustomize refuses a folder that has them.
func (w *workspace) add(o object, path string) {
	id := o.Identity()
	if slices.Contains(w.objects, id) {
		w.misfit(path, "the namespace service makes %s %s twice", id.Kind, id.Name)
		return
	}
	w.objects = append(w.objects, id)
	w.docs = append(w.docs, o)
}

// meta returns the metadata of an object in the assignment's namespace.
func (w *workspace) meta(name string) Metadata {
	return w.metaIn(model.ShortName(name, model.MaxLabel), w.assignment.Namespace)
}

// metaIn returns the metadata of an object in a namespace, "" for none.
func (w *workspace) metaIn(name, namespace string) Metadata {
	meta := Meta(w.assignment, name, namespace)
	maps.Copy(meta.Annotations, w.annotations)
	return meta
}

// merge adds the service's labels or annotations, which stand at path, to
// kalypso's own, and reports those that would replace one.
func (w *workspace) merge(own, theirs map[string]string, path string) {
	for _, key := range sortedKeys(theirs) {
		if mine, ok := own[key]; ok && mine != theirs[key] {
			w.misfit(model.JoinPath(path, model.Label(key)), "%s is kalypso's own here: it is %q, and "+
				"cannot be %q", key, mine, theirs[key])
			continue
		}
		own[key] = theirs[key]
	}
}

// misfit reports fields of the namespace service that do not fit together.
func (w *workspace) misfit(path, format string, args ...any) {
	w.report(diag.BadSpec, path, format, args...)
}

// report reports something about the namespace service's value at a path.
func (w *workspace) report(code diag.Code, path, format string, args ...any) {
	ref := w.assignment.NamespaceService.Ref.At(path)
	w.ds = append(w.ds, diag.New(code, fmt.Sprintf(format, args...)).On(ref.String()).At(ref, ""))
}

// diagnostics returns what was reported, as about the assignment.
func (w *workspace) diagnostics() []diag.Diagnostic {
	for i := range w.ds {
		w.ds[i] = w.ds[i].For(w.assignment.ID())
		w.ds[i].Environment = w.assignment.Environment
	}
	return w.ds
}
