package kubernetes

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// The annotation that makes Helm keep an object on the cluster when its release goes or
// drops the object (https://helm.sh/docs/howto/charts_tips_and_tricks).
const (
	policyAnnotation = "helm.sh/resource-policy"
	policyKeep       = "keep"
)

// Retained returns a projection with its CustomResourceDefinitions treated as the source says:
// marked with Helm's annotation to keep them, not marked, or left out. Backends translate the mark,
// also on other objects, for reconcilers other than Helm. A list that contains a definition is
// replaced by its items. Retained does not change the projection that it receives.
func Retained(p *model.Projection, crds model.CRDs) *model.Projection {
	if p == nil || !slices.ContainsFunc(Items(p.Objects),
		func(o model.Projected) bool { return IsDefinition(o.Value) }) {
		return p
	}
	out := *p
	out.Objects = nil
	for _, o := range Items(p.Objects) {
		if IsDefinition(o.Value) {
			switch crds {
			case model.SkipCRDs:
				continue
			case model.DeleteCRDs:
				o.Value = Annotate(o.Value, policyAnnotation, "")
			default:
				o.Value = Annotate(o.Value, policyAnnotation, policyKeep)
			}
		}
		out.Objects = append(out.Objects, o)
	}
	return &out
}

// WithoutCRDs returns a projection without the named CustomResourceDefinitions, because another
// assignment installs them.
func WithoutCRDs(p *model.Projection, crds map[string]bool) *model.Projection {
	if p == nil || len(crds) == 0 {
		return p
	}
	out := *p
	out.Objects = slices.DeleteFunc(Items(p.Objects), func(o model.Projected) bool {
		return IsDefinition(o.Value) && crds[Text(o.Value, "metadata", "name")]
	})
	return &out
}

// Keeps reports whether an object is to stay on the cluster when its assignment goes.
func Keeps(v model.Value) bool {
	policy := Text(v, "metadata", "annotations", policyAnnotation)
	return strings.ToLower(strings.TrimSpace(policy)) == policyKeep // as Helm reads it
}

// KeptOf returns the rendered objects of an assignment that stay on the cluster when the assignment
// goes, as "Kind name" or "Kind namespace/name", sorted. Objects in the assignment's own namespace
// stay only if that namespace stays.
func KeptOf(a *backends.Assignment) []string {
	if a.Projection == nil {
		return nil
	}
	items := Items(a.Projection.Objects)
	p := &projection{assignment: a, scopes: scopesOf(items)}
	var out []string
	for _, o := range items {
		if !Keeps(o.Value) {
			continue
		}
		kind, name := Text(o.Value, "kind"), Text(o.Value, "metadata", "name")
		if namespace := p.namespaceOf(o.Value); namespace != "" {
			name = namespace + "/" + name
		}
		out = append(out, kind+" "+name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// InNamespace reports whether an object of KeptOf is in a namespace.
func InNamespace(kept, namespace string) bool {
	_, name, _ := strings.Cut(kept, " ")
	return strings.HasPrefix(name, namespace+"/")
}

// IsDefinition reports whether an object is a CustomResourceDefinition.
func IsDefinition(v model.Value) bool {
	return IsCRD(backends.Object{Group: group(Text(v, "apiVersion")), Kind: Text(v, "kind")})
}

// DefinitionsOf returns the CustomResourceDefinitions of a projection: the digest of each
// definition by name. The digest does not cover labels and annotations, because they name the
// release. It returns nil if there is no projection.
func DefinitionsOf(p *model.Projection) map[string]string {
	if p == nil {
		return nil
	}
	out := map[string]string{}
	for _, o := range Items(p.Objects) {
		if IsDefinition(o.Value) {
			version, _ := o.Value.Lookup("apiVersion")
			spec, _ := o.Value.Lookup("spec")
			out[Text(o.Value, "metadata", "name")] = string(model.DigestOf(model.ListOf(version, spec)))
		}
	}
	return out
}

// Annotate returns an object with an annotation, which replaces one with the same key. A value of
// "" removes the annotation. Annotate does not change an object whose metadata is not a struct.
func Annotate(object model.Value, key, value string) model.Value {
	metadata, _ := object.Lookup("metadata")
	annotations, _ := metadata.Lookup("annotations")
	if metadata.Kind() != model.Struct || annotations.Kind() != model.Struct &&
		annotations.Kind() != model.Null {
		return object
	}
	fields := slices.DeleteFunc(slices.Clone(annotations.Fields()),
		func(f model.Field) bool { return f.Name == key })
	if value != "" {
		fields = append(fields, model.Field{Name: key, Value: model.StringOf(value)})
	}
	return replaced(object, model.StructOf(fields...), "metadata", "annotations")
}
