package kubernetes

import (
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// What follows says of objects what a workspace may bound.

// AsksToStay says whether an object tells a reconciler to leave it on the cluster when its
// assignment goes. A CustomResourceDefinition stays because kalypso says so.
func AsksToStay(v model.Value) bool {
	if Keeps(v) && !isDefinition(v) || strings.EqualFold(annotation(v, "kustomize.toolkit.fluxcd.io/prune"), "disabled") {
		return true
	}
	for option := range strings.SplitSeq(annotation(v, "argocd.argoproj.io/sync-options"), ",") {
		if option = strings.TrimSpace(option); option == "Prune=false" || option == "Delete=false" {
			return true
		}
	}
	return false
}

func annotation(v model.Value, name string) string { return text(v, "metadata", "annotations", name) }

// Lacks returns those of some labels that an object does not have.
func Lacks(v model.Value, labels []string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(label string) bool { return text(v, "metadata", "labels", label) != "" })
}

// sourceRefs are the fields in which Flux's objects name their source.
var sourceRefs = [][]string{{"spec", "sourceRef"}, {"spec", "chartRef"}, {"spec", "chart", "spec", "sourceRef"}}

// SourcesElsewhere returns the namespaces that an object of Flux takes its source from, where it
// names them.
func SourcesElsewhere(v model.Value) []string {
	if !strings.HasSuffix(group(text(v, "apiVersion")), ".toolkit.fluxcd.io") {
		return nil
	}
	var out []string
	for _, path := range sourceRefs {
		if namespace := text(v, append(slices.Clone(path), "namespace")...); namespace != "" {
			out = append(out, namespace)
		}
	}
	return out
}
