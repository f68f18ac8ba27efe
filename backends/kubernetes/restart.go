package kubernetes

import (
	"slices"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/yaml"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// RestartAnnotation, on a pod template, has the digest of the platform config. If the digest
// changes, the template changes, and Kubernetes replaces its pods.
const RestartAnnotation = "kalypso.io/platform-config"

// restarted are the kinds of group apps whose pods are replaced. A Job does not allow
// changes, and each run of a CronJob reads the config again.
var restarted = []string{"Deployment", "StatefulSet", "DaemonSet"}

// configDigest returns the digest of the platform config: of its values, its format, and the
// values that override them on single clusters.
func configDigest(a *backends.Assignment) string {
	parts := []model.Value{model.StringOf(string(a.ConfigFormat)), a.Values}
	for _, c := range a.Clusters {
		if c.Values != nil {
			parts = append(parts, model.StringOf(c.Name), *c.Values)
		}
	}
	return string(model.DigestOf(model.ListOf(parts...)))
}

// RestartPatches returns the patches of Kustomize that restart fetched workloads when the platform
// config changes. It returns nil unless the assignment asks for restarts. A patch may name a kind
// that the manifests do not contain.
func RestartPatches(a *backends.Assignment) []model.KustomPatch {
	if !a.Restart {
		return nil
	}
	type annotated struct {
		Annotations map[string]string `yaml:"annotations"`
	}
	type template struct {
		Metadata annotated `yaml:"metadata"`
	}
	type spec struct {
		Template template `yaml:"template"`
	}
	out := make([]model.KustomPatch, len(restarted))
	for i, kind := range restarted {
		text, err := yaml.Marshal(struct {
			APIVersion string   `yaml:"apiVersion"`
			Kind       string   `yaml:"kind"`
			Metadata   Metadata `yaml:"metadata"`
			Spec       spec     `yaml:"spec"`
		}{"apps/v1", kind, Metadata{Name: "any"},
			spec{template{annotated{map[string]string{RestartAnnotation: configDigest(a)}}}}})
		if err != nil {
			panic("kubernetes: " + err.Error()) // only strings, which always marshal
		}
		out[i] = model.KustomPatch{Patch: string(text),
			Target: map[string]string{"group": "apps", "kind": kind}}
	}
	return out
}

// restarting returns the objects with the annotation on pod templates, and whether
// there are any.
func restarting(a *backends.Assignment, objects []model.Projected) ([]model.Projected, bool) {
	out, any := slices.Clone(objects), false
	for i, o := range out {
		if group(Text(o.Value, "apiVersion")) == "apps" &&
			slices.Contains(restarted, Text(o.Value, "kind")) {
			any = true
			out[i].Value = replaced(o.Value, model.StringOf(configDigest(a)),
				"spec", "template", "metadata", "annotations", RestartAnnotation)
		}
	}
	return out, any
}

// replaced returns a struct with a value at a path of fields. Fields on the path that are
// not structs become structs.
func replaced(of, value model.Value, path ...string) model.Value {
	if len(path) == 0 {
		return value
	}
	fields := slices.Clone(of.Fields())
	i := slices.IndexFunc(fields, func(f model.Field) bool { return f.Name == path[0] })
	if i < 0 {
		i, fields = len(fields), append(fields, model.Field{Name: path[0], Value: model.StructOf()})
	}
	fields[i].Value = replaced(fields[i].Value, value, path[1:]...)
	return model.StructOf(fields...)
}
