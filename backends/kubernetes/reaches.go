package kubernetes

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// What follows says what an object has a controller do elsewhere, with the controller's rights.

// reaching are the fields in which objects name the namespaces that a controller reads from or
// writes to for them, by the end of their API group. * stands for each element of a list.
var reaching = map[string][]string{
	".fluxcd.io": {
		"spec.sourceRef.namespace", "spec.chartRef.namespace", "spec.chart.spec.sourceRef.namespace",
		"spec.imageRepositoryRef.namespace",
		"spec.sources.*.namespace", "spec.eventSources.*.namespace", "spec.resources.*.namespace",
		"spec.targetNamespace", "spec.storageNamespace",
	},
	"argoproj.io":           {"spec.destination.namespace", "spec.template.spec.destination.namespace"},
	"monitoring.coreos.com": {"spec.namespaceSelector.matchNames.*"},
}

// Reaches returns the namespaces that an object names for what controllers do for it; "*" is
// for all of them.
func Reaches(v model.Value) []string {
	of := group(text(v, "apiVersion"))
	var out []string
	for end, fields := range reaching {
		if !strings.HasSuffix(of, end) {
			continue
		}
		for _, field := range fields {
			out = append(out, textsAt(v, strings.Split(field, "."))...)
		}
	}
	if of == "monitoring.coreos.com" {
		if every, _ := lookup(v, "spec", "namespaceSelector", "any"); every.Text() == "true" {
			out = append(out, "*")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ActsAsFlux says whether an object has Flux apply what it fetches with Flux's own rights, on
// the cluster that it runs on.
func ActsAsFlux(v model.Value) bool {
	if kind := text(v, "kind"); !strings.HasSuffix(group(text(v, "apiVersion")),
		".toolkit.fluxcd.io") || kind != "Kustomization" && kind != "HelmRelease" {
		return false
	}
	_, elsewhere := lookup(v, "spec", "kubeConfig")
	return text(v, "spec", "serviceAccountName") == "" && !elsewhere
}

// FilesOf returns the fields in which an object names files of the pods that act on it, sorted:
// with them Prometheus or Alertmanager sends its own token, its own certificates or what else it
// can read to whom the object says.
func FilesOf(v model.Value) []string {
	if group(text(v, "apiVersion")) != "monitoring.coreos.com" {
		return nil
	}
	spec, _ := v.Lookup("spec")
	out := filesIn(spec, nil)
	slices.Sort(out)
	return slices.Compact(out)
}

// free are fields of Prometheus' objects whose keys are anybody's.
var free = []string{"labels", "annotations", "matchLabels", "nodeSelector", "externalLabels",
	"params", "headers", "httpHeaders", "expandedParams"}

// filesIn adds the fields that name files anywhere in a value: those that end in File, such as
// caFile of a tlsConfig, but for logs, and lists of targets.
func filesIn(v model.Value, out []string) []string {
	for _, elem := range v.Elems() {
		out = filesIn(elem, out)
	}
	for _, f := range v.Fields() {
		file := strings.HasSuffix(f.Name, "File") && !strings.HasSuffix(f.Name, "LogFile") &&
			f.Value.Kind() == model.String && f.Value.Text() != ""
		if file || f.Name == "fileSDConfigs" && len(f.Value.Elems()) > 0 {
			out = append(out, f.Name)
		} else if !slices.Contains(free, f.Name) {
			out = filesIn(f.Value, out)
		}
	}
	return out
}

// SecretsOf returns the secrets that an object has the External Secrets Operator read or write,
// each as "STORE/KEY", with "*" for stores and keys that are found by what they are.
func SecretsOf(v model.Value) []string {
	if group(text(v, "apiVersion")) != "external-secrets.io" {
		return nil
	}
	spec, _ := v.Lookup("spec")
	for _, field := range []string{"externalSecretSpec", "pushSecretSpec"} { // of what makes them in many namespaces
		if of, ok := spec.Lookup(field); ok {
			spec = of
		}
	}
	var out []string
	for _, read := range elems(spec, "data", "dataFrom") {
		stores := textsAt(read, []string{"sourceRef", "storeRef", "name"})
		if len(stores) == 0 {
			stores = textsAt(spec, []string{"secretStoreRef", "name"})
		}
		keys := append(textsAt(read, []string{"remoteRef", "key"}), textsAt(read, []string{"extract", "key"})...)
		if _, found := read.Lookup("find"); found {
			keys = append(keys, "*")
		}
		for _, store := range stores {
			for _, key := range keys {
				out = append(out, store+"/"+key)
			}
		}
	}
	for _, ref := range elems(spec, "secretStoreRefs") {
		store := text(ref, "name")
		if store == "" {
			store = "*"
		}
		for _, key := range textsAt(spec, []string{"data", "*", "match", "remoteRef", "remoteKey"}) {
			out = append(out, store+"/"+key)
		}
		if len(elems(spec, "dataTo")) > 0 {
			out = append(out, store+"/*")
		}
	}
	return out
}

// elems returns the elements of lists of a struct.
func elems(v model.Value, fields ...string) []model.Value {
	var out []model.Value
	for _, field := range fields {
		list, _ := v.Lookup(field)
		out = append(out, list.Elems()...)
	}
	return out
}

// textsAt returns the texts at a path of fields, in which * stands for each element of a list.
func textsAt(v model.Value, path []string) []string {
	for i, field := range path {
		if field == "*" {
			var out []string
			for _, elem := range v.Elems() {
				out = append(out, textsAt(elem, path[i+1:])...)
			}
			return out
		}
		v, _ = v.Lookup(field)
	}
	if v.Kind() != model.String || v.Text() == "" {
		return nil
	}
	return []string{v.Text()}
}
