package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/kubetype"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// manifest is an object that the platform wrote itself, in the order of fields
// that people write.
type manifest struct {
	APIVersion string           `yaml:"apiVersion"`
	Kind       string           `yaml:"kind"`
	Metadata   manifestMetadata `yaml:"metadata"`
	Rest       yaml.Mapping     `yaml:",inline"`
}

type manifestMetadata struct {
	Metadata `yaml:",inline"`
	Rest     yaml.Mapping `yaml:",inline"`
}

// Identity returns what identifies the object on a cluster.
func (m manifest) Identity() backends.Object {
	return Object{APIVersion: m.APIVersion, Kind: m.Kind, Metadata: m.Metadata.Metadata}.Identity()
}

// manifests adds the service's own objects, a list or a struct of them, in its
// order.
func (w *workspace) manifests() {
	manifests, _ := w.assignment.NamespaceService.Value.Lookup("manifests")
	for i, m := range manifests.Elems() {
		w.manifest(m, fmt.Sprintf("manifests[%d]", i))
	}
	for _, f := range manifests.Fields() {
		w.manifest(f.Value, "manifests."+model.Label(f.Name))
	}
}

func (w *workspace) manifest(v model.Value, path string) {
	var texts [3]string
	for i, field := range [3]string{"apiVersion", "kind", "metadata.name"} {
		text, ok := lookup(v, strings.Split(field, ".")...)
		if !ok || text.Kind() != model.String || text.Text() == "" {
			w.report(diag.NotAnObject, path, "the manifest has no %s, so it is no Kubernetes object", field)
			return
		}
		texts[i] = text.Text()
	}
	if err := kubetype.Check(v); err != nil {
		for _, f := range err.Fields {
			w.report(diag.NotAnObject, model.JoinPath(path, f.Path), "%s of the manifest %s", f.Path, f.Problem)
		}
		return
	}
	for _, d := range Encrypted(w.assignment, v) {
		ref := w.assignment.NamespaceService.Ref.At(path)
		w.ds = append(w.ds, d.On(ref.String()).At(ref, ""))
	}
	m := manifest{APIVersion: texts[0], Kind: texts[1], Rest: rest(v, "apiVersion", "kind", "metadata")}
	given, _ := v.Lookup("metadata")
	m.Metadata.Metadata = w.metaIn(texts[2], w.namespaceOf(m, given))
	m.Metadata.Rest = rest(given, "name", "namespace", "labels", "annotations")
	for _, field := range []struct {
		name string
		own  map[string]string
	}{{"labels", m.Metadata.Labels}, {"annotations", m.Metadata.Annotations}} {
		theirs := map[string]string{}
		labels, _ := given.Lookup(field.name)
		for _, f := range labels.Fields() {
			theirs[f.Name] = f.Value.Text()
		}
		w.merge(field.own, theirs, path+".metadata."+field.name)
	}
	w.add(m, path)
}

// namespaceOf returns a manifest's namespace: the one that it gives, none where
// it is cluster-scoped, else the assignment's. An empty one is how a manifest
// says that its kind is cluster-scoped where kalypso does not know it.
func (w *workspace) namespaceOf(m manifest, metadata model.Value) string {
	namespace, ok := metadata.Lookup("namespace")
	switch {
	case ok:
		return namespace.Text()
	case clusterScoped(group(m.APIVersion), m.Kind):
		return ""
	}
	return w.assignment.Namespace
}

// lookup returns the value at a path of fields.
func lookup(v model.Value, path ...string) (model.Value, bool) {
	ok := true
	for _, field := range path {
		if v, ok = v.Lookup(field); !ok {
			break
		}
	}
	return v, ok
}

// rest returns the fields of a struct but for some, in their order.
func rest(v model.Value, but ...string) yaml.Mapping {
	var out yaml.Mapping
	for _, f := range v.Fields() {
		if !slices.Contains(but, f.Name) {
			out = append(out, yaml.Entry{Key: f.Name, Value: f.Value})
		}
	}
	return out
}
