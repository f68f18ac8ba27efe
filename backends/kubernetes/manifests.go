package kubernetes

import (
	"bytes"
	"cmp"
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

// manifestOf returns an object as somebody wrote it, with kalypso's metadata in the place of
// its own name, namespace, labels and annotations.
func manifestOf(v model.Value, apiVersion, kind string, meta Metadata) manifest {
	given, _ := v.Lookup("metadata")
	return manifest{APIVersion: apiVersion, Kind: kind,
		Metadata: manifestMetadata{meta, rest(given, "name", "namespace", "labels", "annotations")},
		Rest:     rest(v, "apiVersion", "kind", "metadata")}
}

// Identity returns the identity of the object on a cluster: its group, kind, namespace and name.
func (m manifest) Identity() backends.Object {
	return Object{APIVersion: m.APIVersion, Kind: m.Kind, Metadata: m.Metadata.Metadata}.Identity()
}

func (w *workspace) manifest(v model.Value, path string) {
	var texts [3]string
	for i, field := range [3]string{"apiVersion", "kind", "metadata.name"} {
		text, ok := Lookup(v, strings.Split(field, ".")...)
		if !ok || text.Kind() != model.String || text.Text() == "" {
			w.report(diag.NotAnObject, path, "the manifest has no %s, so it is no Kubernetes object", field)
			return
		}
		texts[i] = text.Text()
	}
	if err := kubetype.Check(v); err != nil {
		for _, f := range err.Fields {
			w.report(diag.NotAnObject, model.JoinPath(path, f.Path), "%s of the manifest %s", f.Path,
				f.Problem)
		}
		return
	}
	for _, d := range Encrypted(w.assignment, v) {
		ref := w.assignment.NamespaceService.Ref.At(path)
		w.ds = append(w.ds, d.On(ref.String()).At(ref, ""))
	}
	given, _ := v.Lookup("metadata")
	// With an empty namespace, a manifest declares that its kind is cluster-scoped. kalypso
	// may not know the kind.
	namespace := w.assignment.Namespace
	if of, ok := given.Lookup("namespace"); ok {
		namespace = of.Text()
	} else if clusterScoped(group(texts[0]), texts[1]) {
		namespace = ""
	}
	m := manifestOf(v, texts[0], texts[1], w.metaIn(texts[2], namespace))
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

// Lookup returns the value at a path of fields. It returns false if a field does not exist.
func Lookup(v model.Value, path ...string) (model.Value, bool) {
	ok := true
	for _, field := range path {
		if v, ok = v.Lookup(field); !ok {
			break
		}
	}
	return v, ok
}

// rest returns the fields of a struct except some, in their order.
func rest(v model.Value, but ...string) yaml.Mapping {
	var out yaml.Mapping
	for _, f := range v.Fields() {
		if !slices.Contains(but, f.Name) {
			out = append(out, yaml.Entry{Key: f.Name, Value: f.Value})
		}
	}
	return out
}

// ManifestsFile is the file with the rendered objects.
const ManifestsFile = "manifests.yaml"

// Manifests returns manifests.yaml with objects of the assignment's projection, in their order, and
// their identities. An object without a namespace gets the assignment's, unless it is
// cluster-scoped: its kind is known to be, or a CRD among the objects says so. Each gets kalypso's
// label and annotation. The label replaces the one of Helm, which is no longer true. Without
// objects, Manifests returns no file.
//
// A document that is not an object, and an object that differs in each render, is a diagnostic
// about the assignment. With a diagnostic of severity error, Manifests returns no file. A Secret
// with its data in plain text is a warning, because everyone who may see the platform's output can
// read the file.
func Manifests(a *backends.Assignment, projected []model.Projected) (files []backends.File,
	objects []backends.Object, ds []diag.Diagnostic) {
	items := Items(projected)
	if a.Render && a.Restart {
		var any bool
		if items, any = restarting(a, items); !any {
			ds = backends.NoRestart(a,
				"none of the rendered manifests is a Deployment, StatefulSet or DaemonSet", "remove it")
		}
	}
	p := &projection{assignment: a, scopes: scopesOf(items), seen: map[backends.Object]bool{}}
	for _, o := range items {
		if o.Unstable == "" {
			p.add(o.Value)
		} else if !slices.ContainsFunc(p.ds,
			func(d diag.Diagnostic) bool { return d.Message == o.Unstable }) {
			p.ds = append(p.ds, diag.New(diag.Unstable, o.Unstable).On("manifests").Hinting(hintUnstable))
		}
	}
	if len(p.plaintext) > 0 {
		p.ds = append(p.ds, Plaintext("what is rendered", p.plaintext).On("manifests").
			Hinting("let the manifests refer to a Secret that exists, or let the reconciler fetch them: "+
				"remove render: true from the deployment target"))
	}
	for i := range p.ds {
		p.ds[i] = p.ds[i].At(a.Ref.At("manifests"), "").For(a.ID())
	}
	p.ds = append(p.ds, ds...)
	if len(p.docs) == 0 || diag.Errors(p.ds) {
		return nil, nil, p.ds
	}
	data, err := yaml.Marshal(p.docs...)
	if err != nil {
		p.ds = append(p.ds, diag.New(diag.NotRendered,
			"what was rendered cannot be written: "+err.Error()).At(a.Ref.At("manifests"), "").For(a.ID()))
		return nil, nil, p.ds
	}
	return []backends.File{{Path: ManifestsFile, Data: data}}, p.objects, p.ds
}

// SplitCRDs splits manifests.yaml, which contains the objects in their order, into the
// CustomResourceDefinitions and the other objects. A part without objects is empty. A separator
// cannot occur at the beginning of another line, because the lines of a document are indented or
// quoted.
func SplitCRDs(data []byte, objects []backends.Object) (crds, others []byte) {
	const separator = "---\n"
	docs := bytes.Split(data, []byte("\n"+separator))
	if len(docs) != len(objects) {
		panic(fmt.Sprintf("kubernetes: %d documents hold %d objects", len(docs), len(objects)))
	}
	var apart [2][][]byte
	for i, doc := range docs {
		part := 1
		if IsCRD(objects[i]) {
			part = 0
		}
		apart[part] = append(apart[part], append(bytes.TrimSuffix(doc, []byte("\n")), '\n'))
	}
	return bytes.Join(apart[0], []byte(separator)), bytes.Join(apart[1], []byte(separator))
}

// CRD returns the CustomResourceDefinition with a name.
func CRD(name string) backends.Object {
	return backends.Object{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}
}

// IsCRD reports whether an object is a CustomResourceDefinition.
func IsCRD(o backends.Object) bool {
	return o.Group == "apiextensions.k8s.io" && o.Kind == "CustomResourceDefinition"
}

// Items returns the projection with lists replaced by their items, as kubectl and the reconcilers
// apply them. An object of any kind is a list if it has a list of items. If the list is a hook, its
// items are hooks too.
func Items(projected []model.Projected) []model.Projected {
	out := make([]model.Projected, 0, len(projected))
	for _, o := range projected {
		items, ok := o.Value.Lookup("items")
		if !ok || items.Kind() != model.List {
			out = append(out, o)
			continue
		}
		list := make([]model.Projected, len(items.Elems()))
		for i, item := range items.Elems() {
			list[i] = o
			list[i].Value = item
		}
		out = append(out, Items(list)...)
	}
	return out
}

// PlacedObject is an object of a projection.
type PlacedObject struct {
	backends.Object        // its namespace is "" if the object is cluster-scoped
	Given           string // the namespace in its metadata, or ""
	// Guessed is set if kalypso does not know whether the kind has namespaces. It assumes that it
	// does.
	Guessed bool
}

// Identities returns the identities that the objects of a projection have on a cluster, hooks
// included. namespace is the namespace of objects that do not name one. A document that is not an
// object has no name.
func Identities(p *model.Projection, namespace string) []PlacedObject {
	if p == nil {
		return nil
	}
	items := Items(p.Objects)
	of := &projection{assignment: &backends.Assignment{Namespace: namespace}, scopes: scopesOf(items)}
	out := make([]PlacedObject, len(items))
	for i, o := range items {
		id := backends.Object{
			Group: group(Text(o.Value, "apiVersion")), Kind: Text(o.Value, "kind"),
			Namespace: of.namespaceOf(o.Value), Name: Text(o.Value, "metadata", "name"),
		}
		_, defined := of.scopes[id.Group+"/"+id.Kind]
		out[i] = PlacedObject{id, Text(o.Value, "metadata", "namespace"),
			id.Namespace != "" && !defined && isCustom(id.Group)}
	}
	return out
}

// Ordered returns an object with its fields in the order in which people write them, for
// package yaml.
func Ordered(v model.Value) yaml.Mapping {
	out := first(v, "apiVersion", "kind")
	if metadata, ok := v.Lookup("metadata"); ok && metadata.Kind() == model.Struct {
		out = append(out, yaml.Entry{Key: "metadata", Value: append(first(metadata, "name", "namespace",
			"labels", "annotations"), rest(metadata, "name", "namespace", "labels", "annotations")...)})
		return append(out, rest(v, "apiVersion", "kind", "metadata")...)
	}
	return append(out, rest(v, "apiVersion", "kind")...)
}

// first returns some fields of a struct, as far as it has them.
func first(v model.Value, names ...string) yaml.Mapping {
	var out yaml.Mapping
	for _, name := range names {
		if of, ok := v.Lookup(name); ok {
			out = append(out, yaml.Entry{Key: name, Value: of})
		}
	}
	return out
}

type projection struct {
	assignment *backends.Assignment
	scopes     map[string]bool // group/kind -> cluster-scoped
	docs       []any
	objects    []backends.Object
	seen       map[backends.Object]bool
	plaintext  []string // names of Secrets with their data in plain text
	ds         []diag.Diagnostic
}

// add adds an object.
func (p *projection) add(v model.Value) {
	apiVersion, kind, name := Text(v, "apiVersion"), Text(v, "kind"), Text(v, "metadata", "name")
	for _, f := range [...]struct{ name, value string }{{"apiVersion", apiVersion}, {"kind", kind},
		{"metadata.name", name}} {
		if f.value == "" {
			p.report(hintShape, "%s has no %s, so it is no Kubernetes object",
				strings.TrimSpace(cmp.Or(kind, "an object")+" "+name), f.name)
			return
		}
	}
	given, _ := v.Lookup("metadata")
	namespace := p.namespaceOf(v)
	m := manifestOf(v, apiVersion, kind, Meta(p.assignment, name, namespace))
	p.keep(m.Metadata.Labels, given, "labels", m)
	p.keep(m.Metadata.Annotations, given, "annotations", m)
	id := m.Identity()
	switch {
	case len(name) > maxName || len(namespace) > model.MaxLabel:
		p.report("give it a shorter one",
			"%s %.40s... has a name or a namespace that is too long for Kubernetes", kind, name)
		return
	case p.seen[id]:
		p.report("keep one of the two: remove the other from what is rendered, or give it another name "+
			"or namespace", "%s %s is there twice", kind, name)
		return
	}
	for _, d := range Encrypted(p.assignment, v) {
		p.ds = append(p.ds, d.On("manifests"))
	}
	p.plaintext = append(p.plaintext, PlainSecrets(v)...)
	p.seen[id] = true
	p.docs, p.objects = append(p.docs, m), append(p.objects, id)
}

// namespaceOf returns the namespace of an object. It is the assignment's if the object does not
// name one, and "" if the object is cluster-scoped.
func (p *projection) namespaceOf(v model.Value) string {
	of, kind := group(Text(v, "apiVersion")), Text(v, "kind")
	switch namespace := Text(v, "metadata", "namespace"); {
	case clusterScoped(of, kind) || p.scopes[of+"/"+kind]:
		return ""
	case namespace != "":
		return namespace
	}
	return p.assignment.Namespace
}

// maxName is how long the name of an object of any kind can be (a DNS subdomain,
// RFC 1123, as Kubernetes' apimachinery validates it).
const maxName = 253

// PlainSecrets returns the names of the Secrets in a document with data that is not
// encrypted.
func PlainSecrets(doc model.Value) []string {
	var names []string
	if items, isList := listItems(doc); isList {
		for _, item := range items {
			names = append(names, PlainSecrets(item)...)
		}
		return names
	}
	data, _ := doc.Lookup("data")
	literal, _ := doc.Lookup("stringData")
	if Text(doc, "apiVersion") == "v1" && Text(doc, "kind") == "Secret" &&
		len(data.Fields())+len(literal.Fields()) > 0 &&
		!kubetype.Encrypted(doc) && kubetype.Ciphertext(doc) == "" {
		names = append(names, Text(doc, "metadata", "name"))
	}
	return names
}

// Plaintext returns the warning that what, such as a file, contains Secrets.
func Plaintext(what string, names []string) diag.Diagnostic {
	return diag.New(diag.Plaintext, what+" holds Secrets in plain text: "+Few(names))
}

// Few returns a list of names for people. If there are many, it has only the first ones.
func Few(names []string) string {
	const maxShown = 8
	if len(names) <= maxShown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxShown], ", "), len(names)-maxShown)
}

// keep adds an object's own labels or annotations to kalypso's, which take precedence.
func (p *projection) keep(own map[string]string, metadata model.Value, field string, m manifest) {
	theirs, _ := metadata.Lookup(field)
	for _, f := range theirs.Fields() {
		if f.Value.Kind() != model.String {
			p.report(hintShape, "%s of %s %s has %s, which is no string: %s", field, m.Kind, m.Metadata.Name,
				f.Name, f.Value)
			continue
		}
		if _, taken := own[f.Name]; !taken {
			own[f.Name] = f.Value.Text()
		}
	}
}

const hintUnstable = "give the chart as a value what the hook makes up, " +
	"or let the reconciler install the chart: remove render: true from the deployment target"

const hintShape = "every manifest has apiVersion, kind and metadata.name"

func (p *projection) report(hint, format string, args ...any) {
	p.ds = append(p.ds,
		diag.New(diag.NotRendered, fmt.Sprintf(format, args...)).On("manifests").Hinting(hint))
}

// isCustom reports whether an API group is not one of Kubernetes itself, most of which have
// no dot.
func isCustom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// scopesOf returns the scopes of the kinds that CRDs define, by group/kind: true for
// cluster-scoped kinds. A CRD cannot define a kind of Kubernetes' own groups, most of which
// have no dot.
func scopesOf(projected []model.Projected) map[string]bool {
	scopes := map[string]bool{}
	for _, o := range projected {
		if IsDefinition(o.Value) && strings.Contains(Text(o.Value, "spec", "group"), ".") {
			scopes[Text(o.Value, "spec", "group")+"/"+Text(o.Value, "spec", "names", "kind")] = Text(o.Value,
				"spec", "scope") == "Cluster"
		}
	}
	return scopes
}

// Text returns the string at a path of fields. It returns "" if there is no string.
func Text(v model.Value, path ...string) string {
	of, ok := Lookup(v, path...)
	if !ok || of.Kind() != model.String {
		return ""
	}
	return of.Text()
}

// WithoutHooks splits a projection into the objects that are applied and the hooks of Helm that no
// installation or upgrade runs. Such hooks are tests, and the hooks of deletions and rollbacks.
func WithoutHooks(all []model.Projected) (applied, hooks []model.Projected) {
	return Split(all, model.Projected.Applied)
}

// Split splits a projection, in its order, into the objects to keep and the others.
func Split(all []model.Projected, keep func(model.Projected) bool) (kept, left []model.Projected) {
	for _, o := range all {
		if keep(o) {
			kept = append(kept, o)
		} else {
			left = append(left, o)
		}
	}
	return kept, left
}

// IsStable reports whether all renders of a chart have the object alike.
func IsStable(o model.Projected) bool { return o.Unstable == "" }

// IsTest reports whether an object is only a test of a chart. No installation runs it, not
// even with Helm.
func IsTest(o model.Projected) bool {
	return len(o.Hooks) > 0 && !slices.ContainsFunc(o.Hooks, func(hook string) bool {
		return hook != "test" && hook != "test-success" && hook != "test-failure"
	})
}
